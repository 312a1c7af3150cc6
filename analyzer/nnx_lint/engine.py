"""The engine: from files to findings.

Files that cannot concern NNX are left out by their text and by what they import; the rest are executed abstractly,
and every event goes to the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint import relevance
from nnx_lint.model.interpreter import Interpreter
from nnx_lint.model.modules import Project
from nnx_lint.reporting import Findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.diagnostics import Diagnostic
    from nnx_lint.selection import Options
    from nnx_lint.source import SourceFile


def check(files: Sequence[SourceFile], *, roots: Sequence[str], options: Options) -> list[Diagnostic]:
    """Check files as one project; findings in order of file and place.

    Args:
        files: what to check. Files with syntax errors are skipped: they have no tree.
        roots: the paths that the user named.
        options: which rules to report, and the library and version that the code runs on.
    """
    from nnx_lint import rules

    rules.load()
    project = Project(files)
    findings = Findings(options, {source.path for source in files})
    interpreter = Interpreter(project, findings.publish)
    relevant = relevance.relevant_modules(project)
    for source, module in project.checked:
        if id(module) in relevant and source.tree is not None:
            interpreter.check(module)
    return sorted(findings.found.values(), key=lambda item: (item.path, item.span.start, item.span.end, item.rule.code))
