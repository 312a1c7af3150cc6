"""Comments that silence nothing, name rules that do not exist, or are only meant to silence some.

Only what this run could have found counts: a rule that is switched off, or does not hold for the library in use, may be
needed elsewhere. A selector of several rules, or none, is judged only if all of them are on that are on by default and
hold here. A bare ``# noqa`` and the codes of other tools are not ours to judge, and neither is what silences these
rules.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Diagnostic, Edit, Fix, Span
from nnx_lint.misspelt import misspelt
from nnx_lint.selection import EVERYTHING, matches, nearest
from nnx_lint.suppressions import OURS
from nnx_rules.registry import Family
from nnx_rules.rules import REGISTRY
from nnx_rules.rules.comments import MISSPELT_SUPPRESSION, UNKNOWN_SUPPRESSION, UNUSED_SUPPRESSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nnx_lint.comments import Comment
    from nnx_lint.misspelt import Misspelt
    from nnx_lint.selection import FileOptions
    from nnx_lint.source import SourceFile
    from nnx_lint.suppressions import Selector, Suppression, Suppressions
    from nnx_rules.registry import Rule

_REASON = re.compile(r"[\s:;,–—-]*")
_INSTRUCTION = re.compile(r"[\w-]+\s*:|noqa", re.IGNORECASE)


def about(source: SourceFile, suppressions: Suppressions, options: FileOptions) -> Iterator[Diagnostic]:
    """What is wrong with the suppression comments of a file, of which each knows whether it silenced anything."""
    if options.selected(MISSPELT_SUPPRESSION):
        for comment, text in suppressions.others:
            yield from (_misspelt(source, found, options) for found in misspelt(text, comment.span.start))
    for suppression in suppressions.all:
        unused: list[Selector] = []
        for selector in suppression.selectors:
            if selector.used:
                continue
            rules = [rule for rule in REGISTRY if matches(selector.word, rule)]
            if rules:
                if not (suppression.noqa and suppression.bare) and _expected(selector, rules, options):
                    unused.append(selector)
            elif options.selected(UNKNOWN_SUPPRESSION) and not (suppression.noqa and not OURS.match(selector.word)):
                yield _unknown(source, selector, REGISTRY, options)
        if options.selected(UNUSED_SUPPRESSION) and (unused or not suppression.selectors):
            yield _unused(source, suppression, unused, options)


def _misspelt(source: SourceFile, found: Misspelt, options: FileOptions) -> Diagnostic:
    return Diagnostic(
        MISSPELT_SUPPRESSION,
        source.path,
        found.span,
        MISSPELT_SUPPRESSION.message_for(comment=source.segment(found.span)),
        MISSPELT_SUPPRESSION.help_for(meant=found.meant),
        Fix(f"Write `{found.meant}`", (Edit(found.span, found.meant),), Applicability.UNSAFE),
        level=options.severity(MISSPELT_SUPPRESSION),
    )


def _expected(selector: Selector, rules: Sequence[Rule], options: FileOptions) -> bool:
    """Whether this run would have shown what the selector, which stands for these rules, silences."""
    if any(rule.family is Family.COMMENTS for rule in rules) and selector.word != EVERYTHING:
        return False
    libraries = (options.library,) if options.library else ("flax", "nnxkit")
    holding = [rule for rule in rules if any(rule.versions.holds(library, options.version) for library in libraries)]
    if len(rules) > 1:
        holding = [rule for rule in holding if rule.default and rule.family is not Family.COMMENTS]
    return bool(holding) and all(map(options.selected, holding))


def _unknown(source: SourceFile, selector: Selector, rules: Iterable[Rule], options: FileOptions) -> Diagnostic:
    hint = nearest(selector.word, [key for rule in rules for key in (rule.name, rule.code, *rule.aliases)])
    return Diagnostic(
        UNKNOWN_SUPPRESSION,
        source.path,
        selector.span,
        UNKNOWN_SUPPRESSION.message_for(name=selector.word),
        UNKNOWN_SUPPRESSION.help_for(hint=f"did you mean `{hint}`?" if hint else "`nnx-lint rules` lists all of them"),
        Fix(f"Write `{hint}`", (Edit(selector.span, hint),), Applicability.UNSAFE) if hint else None,
        level=options.severity(UNKNOWN_SUPPRESSION),
    )


def _unused(
    source: SourceFile, suppression: Suppression, unused: Sequence[Selector], options: FileOptions
) -> Diagnostic:
    if len(unused) == len(suppression.selectors):
        span, what = suppression.span, f"`{source.segment(suppression.span)}`"
    else:
        span = Span(unused[0].span.start, unused[-1].span.end)
        what = " and ".join(f"`{selector.word}`" for selector in unused)
    edit = _removal(source, suppression, unused)
    return Diagnostic(
        UNUSED_SUPPRESSION,
        source.path,
        span,
        UNUSED_SUPPRESSION.message_for(what=what),
        UNUSED_SUPPRESSION.help_for(),
        Fix(f"Remove {what}", (edit,)) if edit else None,
        level=options.severity(UNUSED_SUPPRESSION),
    )


def _removal(source: SourceFile, suppression: Suppression, unused: Sequence[Selector]) -> Edit | None:
    """Takes selectors out of a comment; one that is left empty goes, other text in it stays.

    The comment is written anew as a whole, so that two suppressions in one are never taken out at the same time.
    """
    comment, selectors, text = suppression.comment, suppression.selectors, source.text

    def rewritten(start: int, end: int, by: str) -> Edit:
        return Edit(comment.span, text[comment.span.start : start] + by + text[end : comment.span.end])

    if len(unused) < len(selectors):
        between = text[selectors[0].span.end : selectors[1].span.start]
        kept = (source.segment(selector.span) for selector in selectors if selector not in unused)
        return rewritten(selectors[0].span.start, selectors[-1].span.end, between.join(kept))

    start, end = suppression.span.start, suppression.span.end
    before, after = text[comment.span.start : start], text[end : comment.span.end]
    if before.strip():
        return rewritten(comment.span.start + len(before.rstrip()), end, "")
    if after.lstrip().startswith("#"):
        return rewritten(start, end + len(after) - len(after.lstrip()), "")
    reason = _REASON.match(after)
    skipped = reason.end() if reason else 0
    if not after[skipped:].strip():
        return _comment_removal(source, comment)
    if _INSTRUCTION.match(after, skipped):
        return None  # a comment of its own, `# type: ...`, would speak to some other tool
    return rewritten(start, end + skipped, "# ")


def _comment_removal(source: SourceFile, comment: Comment) -> Edit:
    """Removes a comment with the white space before it, or with its line if there is nothing else on it."""
    start, end = source.line_start(comment.line), comment.span.end
    if not comment.alone:
        code = source.text[start : comment.span.start]
        return Edit(Span(start + len(code.rstrip()), end), "")
    if comment.line < source.line_count:
        return Edit(Span(start, source.line_start(comment.line + 1)), "")
    return Edit(Span(start, end), "")
