"""Streams that are asked for by name before something draws from them (NNX536).

``nnx.Rngs(0)`` has one stream, the default, and draws every other one from it; ``"dropout" in rngs`` is false for it.
What is done only for a stream of that name is left out for most callers.

Invariants: the other branch certainly gives up on the streams. It makes a key of a constant, or it says ``None`` where
the first one makes a layer with them; one that draws from another stream, or raises, is fine.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.events import AttributeSet, Called
from nnx_lint.model.expressions import text_of
from nnx_lint.model.values import Const, options
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.program import ancestors
from nnx_lint.rules.randomness.reading import is_rngs
from nnx_lint.rules.traces.captures import value_at
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import rngs as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame


class Asked(NamedTuple):
    """A test for a stream: the test itself, the streams as written, the name, and what is done if there is one."""

    test: ast.Compare
    streams: str
    name: str
    then: list[ast.AST]


@judges_calls(rules.DEFAULT_STREAM_IGNORED, "jax.random.key", "jax.random.PRNGKey")
def constant_key(event: Called, report: Reporter) -> None:
    """``rngs.noise() if "noise" in rngs else jax.random.key(0)``."""
    call = event.node
    if not isinstance(call, ast.Call) or not all(isinstance(item, ast.Constant) for item in call.args):
        return
    asked = _asked(event.frame, call)
    if asked is None or not any(_draws(node, asked.streams) for node in asked.then):
        return
    mend = f"`{asked.streams}.{asked.name}()`"
    so = "the key is always the same"
    report(event.frame.module, asked.test, test=text_of(asked.test), stream=asked.name, so=so, mend=mend)


@judges(rules.DEFAULT_STREAM_IGNORED, AttributeSet, of=(Const,))
def layer_left_out(event: AttributeSet, report: Reporter) -> None:
    """``self.dropout = nnx.Dropout(rate, rngs=rngs)`` if there is such a stream, else ``None``."""
    target = _target(event.node)
    if not isinstance(event.value, Const) or event.value.value is not None or target is None:
        return
    asked = _asked(event.frame, event.node)
    made = [_value(node) for node in asked.then if _target(node) == target] if asked is not None else []
    if asked is None or not any(value is not None and _is_given(value, asked.streams) for value in made):
        return
    mend, so = f"the layer draws `{asked.name}` from the default stream", f"`{target}` is left out"
    report(event.frame.module, asked.test, test=text_of(asked.test), stream=asked.name, so=so, mend=mend)


def _asked(frame: Frame, node: ast.AST) -> Asked | None:
    """The test for a stream that a node is done without."""
    inner: ast.AST = node
    for outer in ancestors(frame.module, node):
        if isinstance(outer, (ast.If, ast.IfExp)):
            return _test_of(frame, outer, inner)
        inner = outer
    return None


def _test_of(frame: Frame, outer: ast.If | ast.IfExp, inner: ast.AST) -> Asked | None:
    then, other = (_listed(outer.body), _listed(outer.orelse))
    parts = outer.test.values if isinstance(outer.test, ast.BoolOp) and isinstance(outer.test.op, ast.And) else None
    for part in parts or [outer.test]:
        if not isinstance(part, ast.Compare) or len(part.ops) != 1 or not isinstance(part.left, ast.Constant):
            continue
        name, streams = part.left.value, part.comparators[0]
        denied = isinstance(part.ops[0], ast.NotIn) and parts is None
        known = value_at(frame, streams) if isinstance(part.ops[0], ast.In) or denied else None
        if known is None or not isinstance(name, str) or not any(is_rngs(item) for item in options(known)):
            continue
        with_stream, without = (other, then) if denied else (then, other)
        if any(item is inner for item in without):
            return Asked(part, text_of(streams), name, with_stream)
    return None


def _listed(body: list[ast.stmt] | ast.expr) -> list[ast.AST]:
    return [*body] if isinstance(body, list) else [body]


def _draws(node: ast.AST, streams: str) -> bool:
    return any(
        isinstance(item, (ast.Attribute, ast.Subscript)) and text_of(item.value) == streams for item in walk(node)
    )


def _target(node: ast.AST) -> str | None:
    """The attribute that a statement assigns."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return text_of(targets[0]) if len(targets) == 1 and isinstance(targets[0], ast.Attribute) else None


def _value(node: ast.AST) -> ast.expr | None:
    return node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None


def _is_given(value: ast.expr, streams: str) -> bool:
    """Whether a call is given the streams."""
    given = [*value.args, *(item.value for item in value.keywords)] if isinstance(value, ast.Call) else []
    return any(isinstance(item, (ast.Name, ast.Attribute)) and text_of(item) == streams for item in given)
