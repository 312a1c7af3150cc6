"""Comparisons with NaN (NNX876): ``if loss == jnp.nan`` never stops a training that has diverged.

Invariant: what stands there is NaN by its name, in a library of numbers.
"""

from __future__ import annotations

import ast

from nnx_lint.diagnostics import Applicability, Fix
from nnx_lint.model.events import Used
from nnx_lint.model.values import Ext
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.edits import replace
from nnx_lint.rules.program import in_test
from nnx_lint.syntax.dotted import dotted_name, last_name
from nnx_rules.rules import variables as rules


@judges(rules.NAN_COMPARISON, Used, when=lambda event: event.what == "an equality", of=(Ext,))
def nan_comparison(event: Used, report: Reporter) -> None:
    node, module = event.node, event.frame.module
    if not isinstance(node, ast.Compare) or in_test(event.frame):
        return  # a test may show just that
    sides = [node.left, node.comparators[0]]
    name = next((dotted_name(each) for each in sides if last_name(each).lower() == "nan"), None)
    other = next((each for each in sides if last_name(each).lower() != "nan"), None)
    if name is None or other is None:
        return
    differs = isinstance(node.ops[0], ast.NotEq)
    package, dot, _ = name.rpartition(".")
    asked = f"{package}{dot}isnan({module.source.segment(other)})"
    text = f"not {asked}" if differs and package == "math" else f"~{asked}" if differs else asked
    fix = Fix(f"Write `{text}`", replace(module.source, node, text), Applicability.UNSAFE) if dot else None
    shown, always = module.source.segment(node), "true" if differs else "false"
    report(module, node, fix=fix, name=shown, always=always, mend=text)
