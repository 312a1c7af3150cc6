"""The last step of a check: what comments silence is dropped, and what is wrong with the comments is added.

Reading comments takes longer than anything else that is done to most files, so it is done only where a comment may
matter, and what it needs is imported only then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.selection import FileOptions
    from nnx_lint.source import SourceFile


def silence(
    source: SourceFile, findings: Iterable[Diagnostic], options: FileOptions, *, complete: bool = True
) -> list[Diagnostic]:
    """What is left of the findings in a file after its comments, and the findings about the comments themselves.

    Args:
        source: the file.
        findings: all findings in this file.
        options: those of the file; they decide whether a comment can be called useless.
        complete: whether ``findings`` are all that the file has. Where its analysis ended early, no comment is useless.
    """
    findings = list(findings)
    if not _may_matter(source.text, findings):
        return findings
    from nnx_lint.suppressions import Suppressions

    suppressions = Suppressions(source)
    left = [finding for finding in findings if not suppressions.cover(finding, source)]
    if complete and source.error is None:
        from nnx_lint.rules.comments import about

        judged = list(about(source, suppressions, options))
        left += [finding for finding in judged if not suppressions.cover(finding, source)]
    return left


def _may_matter(text: str, findings: list[Diagnostic]) -> bool:
    """Whether there may be a comment that silences a finding, or one of ours that is worth judging."""
    if "# nnx" in text or "#nnx" in text or "nnx:" in text:
        return True
    folded = text.casefold()
    if "noqa" not in folded:
        return False
    import re

    return bool(findings) or re.search(r"noqa\s*:[^\n]*nnx\d", folded) is not None
