"""Streams that are asked for by name before something draws from them (NNX536).

``nnx.Rngs(0)`` has one stream, the default, and draws every other one from it; ``"dropout" in rngs`` is false for it.
What is done only for a stream of that name is left out for most callers.

Invariants: the other branch certainly gives up on the streams. It makes a key of a constant, it says ``None`` where
the first one makes a layer with them, or it puts streams in their place that start at a constant for this name; one
that draws from another stream, or raises, is fine.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.events import AttributeSet, Called
from nnx_lint.model.expressions import text_of
from nnx_lint.model.naming import value_at
from nnx_lint.model.unions import options
from nnx_lint.model.values import Const
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.program import ancestors, assigned_in, block_of, canonical_of, statement_of
from nnx_lint.rules.randomness.reading import is_rngs
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import rngs as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame


DEFAULT = "default"
"""The stream that ``nnx.Rngs(0)`` has."""


class Asked(NamedTuple):
    """A test for a stream: the test itself, the streams as written, the name, and what is done if there is one."""

    test: ast.Compare
    streams: str
    name: str
    then: list[ast.AST]

    @property
    def text(self) -> str:
        """What is false for the default stream alone, also where the test is for its contrary."""
        return f"{text_of(self.test.left)} in {self.streams}"


KEYS = ("jax.random.key", "jax.random.PRNGKey")
"""What makes a key of a number."""


@judges_calls(rules.DEFAULT_STREAM_IGNORED, *KEYS)
def constant_key(event: Called, report: Reporter) -> None:
    """``rngs.noise() if "noise" in rngs else jax.random.key(0)``."""
    call, frame = event.node, event.frame
    if not isinstance(call, ast.Call) or not all(_is_constant(frame, item) for item in call.args):
        return
    asked = _asked(frame, call) or _asked_before(frame, call)
    if asked is None or not any(_draws(node, asked.streams) for node in asked.then):
        return
    fixed = isinstance(asked.test.left, ast.Constant)
    mend = f"`{asked.streams}.{asked.name}()`" if fixed else f"`{asked.streams}[{asked.name}]()`"
    so = "the key is always the same"
    report(event.frame.module, asked.test, test=asked.text, stream=asked.name, so=so, mend=mend)


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
    report(event.frame.module, asked.test, test=asked.text, stream=asked.name, so=so, mend=mend)


@judges_calls(rules.DEFAULT_STREAM_IGNORED, "nnx.Rngs")
def constant_stream(event: Called, report: Reporter) -> None:
    """``if "dropout" not in rngs: rngs = nnx.Rngs(params=rngs.params(), dropout=jax.random.key(1))``."""
    call = event.node
    asked = _asked(event.frame, call) if isinstance(call, ast.Call) else None
    if asked is None or not isinstance(call, ast.Call) or not _replaces(event.frame, call, asked.streams):
        return
    seed = next((item.value for item in call.keywords if item.arg == asked.name), None)
    drawn = [item.value for item in call.keywords if item.arg not in {None, asked.name}]
    constant = seed is not None and _is_constant_seed(event.frame, seed)
    if not constant or not any(_draws(item, asked.streams) for item in drawn):
        return
    mend = f"layers draw `{asked.name}` from the default stream"
    so = f"`{asked.name}` starts at the same key for every seed"
    report(event.frame.module, asked.test, test=asked.text, stream=asked.name, so=so, mend=mend)


def _is_constant(frame: Frame, node: ast.expr) -> bool:
    """Whether a seed is a number, or a parameter that is one unless a caller says otherwise."""
    if not isinstance(node, ast.Name) or frame.func is None or assigned_in(frame.func.node)[node.id]:
        return isinstance(node, ast.Constant)
    return isinstance(frame.func.defaults.get(node.id), Const)


def _replaces(frame: Frame, call: ast.Call, streams: str) -> bool:
    """Whether a call makes what the name of the streams stands for from here on."""
    outer = next(iter(ancestors(frame.module, call)), None)
    targets = outer.targets if isinstance(outer, ast.Assign) and outer.value is call else []
    return any(text_of(target) == streams for target in targets)


def _is_constant_seed(frame: Frame, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.Constant) and isinstance(node.value, int)
    constant = bool(node.args) and not node.keywords and all(isinstance(item, ast.Constant) for item in node.args)
    return constant and canonical_of(frame.env, node.func) in KEYS


def _asked(frame: Frame, node: ast.AST) -> Asked | None:
    """The test for a stream that a node is done without."""
    inner: ast.AST = node
    for outer in ancestors(frame.module, node):
        if isinstance(outer, (ast.If, ast.IfExp)):
            return _test_of(frame, outer, inner)
        inner = outer
    return None


def _asked_before(frame: Frame, node: ast.AST) -> Asked | None:
    """The same for what follows, where with such a stream the function has ended."""
    statement = statement_of(frame.module, node)
    if not isinstance(statement, ast.Return):
        return None
    for item in reversed(block_of(frame.module, statement)):
        if isinstance(item, ast.If) and item.lineno < statement.lineno and not item.orelse:
            return _test_of(frame, item, None) if isinstance(item.body[-1], ast.Return) else None
    return None


def _test_of(frame: Frame, outer: ast.If | ast.IfExp, inner: ast.AST | None) -> Asked | None:
    """The test of a condition for a stream, if a node in it, or what follows on it (``None``), has none."""
    then, other = (_listed(outer.body), _listed(outer.orelse))
    parts = outer.test.values if isinstance(outer.test, ast.BoolOp) and isinstance(outer.test.op, ast.And) else None
    for part in parts or [outer.test]:
        if not isinstance(part, ast.Compare) or len(part.ops) != 1:
            continue
        name, streams = _name(part.left), part.comparators[0]
        denied = isinstance(part.ops[0], ast.NotIn)
        known = value_at(frame, streams) if isinstance(part.ops[0], ast.In) or denied else None
        if known is None or name is None or not any(is_rngs(item) for item in options(known)):
            continue
        with_stream, without = (other, then) if denied else (then, other)
        given_up = any(item is inner for item in without) or (inner is None and not denied)
        if given_up and not _asks_for_default(frame):
            return Asked(part, text_of(streams), name, with_stream)
    return None


def _asks_for_default(frame: Frame) -> bool:
    """Whether the function looks for the default stream too, which all that is drawn from may be."""
    nodes = walk(frame.func.node) if frame.func is not None else ()
    return any(DEFAULT in (getattr(node, "attr", None), getattr(node, "value", None)) for node in nodes)


def _name(node: ast.expr) -> str | None:
    """The name of a stream, or of the parameter that is one."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    return node.id if isinstance(node, ast.Name) else None


def _listed(body: list[ast.stmt] | ast.expr) -> list[ast.AST]:
    return [*body] if isinstance(body, list) else [body]


def _draws(node: ast.AST, streams: str) -> bool:
    return any(text_of(owner) == streams for item in walk(node) if (owner := _drawn_from(item)) is not None)


def _drawn_from(node: ast.AST) -> ast.expr | None:
    """What a stream is taken from: ``rngs.noise``, ``rngs["noise"]``, ``getattr(rngs, name)``."""
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return node.value
    named = isinstance(node, ast.Call) and is_name(node.func, "getattr")
    return node.args[0] if isinstance(node, ast.Call) and named and len(node.args) == 2 else None


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
