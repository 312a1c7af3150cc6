"""Which rules a run reports: selectors such as ``NNX101``, ``NNX1``, ``data-in-static-attribute`` and ``ALL``.

The command line and suppression comments use the same words for rules, so that what is printed can be pasted into
either. Where ``--select`` and ``--ignore`` both name a rule, the more specific selector wins whatever the order, and
``--ignore`` wins a draw: ``--select NNX101 --ignore NNX1`` reports NNX101.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nnx_rules.registry import Rule, Version

EVERYTHING = "ALL"
PREFIX = "NNX"


@dataclass(frozen=True, slots=True)
class Options:
    """What the engine is asked for.

    ``selected`` says whether a rule is reported; a rule that is not need not be computed. ``library`` (``"flax"`` or
    ``"nnxkit"``) and ``version`` fix what the checked code runs on; ``None`` leaves it to the code's own imports, and
    to the newest version.
    """

    selected: Callable[[Rule], bool]
    library: str | None = None
    version: Version | None = None


class SelectionError(Exception):
    """A selector names no rule."""


def matches(selector: str, rule: Rule) -> bool:
    """Whether a selector covers a rule."""
    if selector.startswith(PREFIX):
        return rule.code.startswith(selector)
    return selector == rule.name or selector in rule.aliases or selector == EVERYTHING


def selected_rules(select: Sequence[str], ignore: Sequence[str], rules: Iterable[Rule]) -> frozenset[str]:
    """The codes of the rules to report; without ``select`` these start from the rules that are on by default.

    Raises:
        SelectionError: a selector matches no rule; the message suggests the nearest one.
    """
    rules = list(rules)
    for selector in (*select, *ignore):
        if not any(matches(selector, rule) for rule in rules):
            raise SelectionError(_unknown(selector, rules))
    return frozenset(rule.code for rule in rules if _is_selected(rule, select, ignore))


def _is_selected(rule: Rule, select: Sequence[str], ignore: Sequence[str]) -> bool:
    wanted = max((_specificity(selector) for selector in select if matches(selector, rule)), default=-1)
    unwanted = max((_specificity(selector) for selector in ignore if matches(selector, rule)), default=-1)
    if not select:
        return rule.default and unwanted < 0
    return wanted > unwanted


def _specificity(selector: str) -> int:
    """From ``ALL`` over ever longer prefixes to a single rule, by code or name."""
    if selector == EVERYTHING:
        return 0
    return len(selector) if selector.startswith(PREFIX) else len("NNX101")


def _unknown(selector: str, rules: Sequence[Rule]) -> str:
    known = [EVERYTHING, *(f"{PREFIX}{family}" for family in sorted({rule.code[3] for rule in rules}))]
    for rule in rules:
        known += (rule.code, rule.name, *rule.aliases)
    hint = nearest(selector, known)
    return f"no rule matches {selector!r}" + (f"; did you mean {hint!r}?" if hint else "; see `nnx-lint rules`")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that looks most like this one, whatever its case."""
    import difflib

    by_fold = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(word.casefold(), by_fold, n=1)
    return by_fold[close[0]] if close else None
