"""``nnx-lint rule`` and ``nnx-lint rules``: what can be read about rules in a terminal."""

from __future__ import annotations

import sys

from nnx_lint.cli import CLEAN, UsageError


def rule(words: list[str]) -> int:
    """Print the page of a rule."""
    from nnx_lint.pages import page
    from nnx_lint.selection import nearest
    from nnx_rules.rules import REGISTRY

    if len(words) != 1:
        raise UsageError("`nnx-lint rule` takes one code or name, such as `nnx-lint rule NNX101`")
    found = REGISTRY.get(words[0]) or REGISTRY.get(words[0].upper())
    if found is None:
        hint = nearest(words[0], [key for rule in REGISTRY for key in (rule.code, rule.name, *rule.aliases)])
        raise UsageError(
            f"there is no rule {words[0]!r}" + (f"; did you mean {hint!r}?" if hint else "; see `nnx-lint rules`")
        )
    sys.stdout.write(page(found))
    return CLEAN


def rules(words: list[str]) -> int:
    """Print the list of rules."""
    from nnx_lint.pages import rule_list
    from nnx_rules.rules import REGISTRY

    if words:
        raise UsageError("`nnx-lint rules` takes no arguments")
    sys.stdout.write(rule_list(REGISTRY))
    return CLEAN
