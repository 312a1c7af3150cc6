"""Modules of Linen beside those of NNX (NNX831): what needs a bridge, and what the bridge needs.

Invariants: a class counts as one of Linen by what its bases resolve to; a Linen module that an NNX module only keeps,
to call its ``init`` and ``apply`` with variables, is left alone.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import AttributeSet, Called
from nnx_lint.model.expressions import text_of
from nnx_lint.model.values import ClassVal, Const, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.bindings import names_of_first
from nnx_lint.rules.intermediates.sowing import is_module
from nnx_lint.rules.program import ancestors, calls_in, canonical_of, given, is_tried, resolved
from nnx_lint.rules.randomness.reading import is_rngs
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from nnx_lint.model.modules import Env

LINEN = "flax.linen."


def linen_class(env: Env, node: ast.expr | None) -> str | None:
    """The name of the class of Linen that an expression names, or of a class of the project below one."""
    name = canonical_of(env, node) or ""
    if name.startswith(LINEN):
        short = name.rpartition(".")[2]
        return short if short[:1].isupper() else None
    value = resolved(env, node)
    cls = value.cls if isinstance(value, ClassVal) else None
    if not isinstance(cls, UserClass):
        return None
    bases = (canonical_of(item.env, base) or "" for item in cls.lineage for base in item.node.bases)
    return cls.name if any(base.startswith(LINEN) for base in bases) else None


@judges(rules.LINEN_IDIOM, AttributeSet)
def linen_module_attribute(event: AttributeSet, report: Reporter) -> None:
    call, cls = event.value_node, event.obj.cls
    if not isinstance(call, ast.Call) or not is_module(event.obj) or cls.is_open or not isinstance(cls, UserClass):
        return
    short = linen_class(event.frame.env, call.func)
    if short is None or not _is_called(cls, event.name):
        return
    problem = f"`{cls.name}.{event.name}` is a Linen `{short}`, which an NNX module cannot call"
    mend = f"use a layer of NNX, or wrap it: `nnx.bridge.ToNNX({short}(...), rngs=rngs)`"
    report(event.frame.module, call, problem=problem, mend=mend)


def _is_called(cls: UserClass, name: str) -> bool:
    """Whether a method of a class calls an attribute of its own object, as an NNX module is called."""
    bodies = (method for item in cls.lineage for method in item.node.body)
    for method in bodies:
        own = names_of_first(method) if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) else ()
        called = (call.func for call in calls_in(method) if own and isinstance(call.func, ast.Attribute))
        if any(func.attr == name and isinstance(func.value, ast.Name) and func.value.id in own for func in called):
            return True
    return False


@judges_calls(rules.LINEN_IDIOM, f"{LINEN}*")
def linen_module_in_call(event: Called, report: Reporter) -> None:
    """A layer of Linen that a method of an NNX module makes and calls at once: it has no parameters and no streams.

    Where a file wraps NNX modules for Linen, the layer may belong to the Linen module around them.
    """
    frame, call = event.frame, event.node
    short, cls = linen_class(frame.env, call.func) if isinstance(call, ast.Call) else None, frame.cls
    if short is None or cls is None or not cls.derives_from("nnx.Module") or cls.is_open:
        return
    outer = next(iter(ancestors(frame.module, call)), None)
    called = isinstance(outer, ast.Call) and outer.func is call
    if not called or frame.module.mentions("ToLinen", "to_linen") or is_tried(frame.module, call):
        return
    problem = f"`{cls.name}` is an NNX module, and cannot call a Linen `{short}`"
    mend = "make a layer of NNX in the constructor, and call that"
    report(frame.module, call, problem=problem, mend=mend)


@judges_calls(rules.LINEN_IDIOM, "nnx.bridge.ToNNX")
def linen_class_to_nnx(event: Called, report: Reporter) -> None:
    node = event.nodes[0] if event.nodes else None
    short = linen_class(event.frame.env, node)
    if short is not None and node is not None:
        problem = f"`nnx.bridge.ToNNX` wraps an instance, and gets the class `{short}`"
        mend = f"make one: `nnx.bridge.ToNNX({text_of(node)}(...), rngs=rngs)`"
        report(event.frame.module, event.node, problem=problem, mend=mend)


@judges_calls(rules.LINEN_IDIOM, "nnx.bridge.ToLinen", "nnx.bridge.to_linen", "nnx.bridge.to_linen_class")
def instance_to_linen(event: Called, report: Reporter) -> None:
    value = event.args[0] if event.args else event.keywords.get("nnx_class")
    if isinstance(value, Obj) and is_module(value):
        problem = f"`{event.name}` is given {value.describe()}, and takes a class, of which it makes an instance itself"
        mend = f"hand over the class and its arguments: `nnx.bridge.to_linen({value.cls.name}, ...)`"
        report(event.frame.module, event.node, problem=problem, mend=mend)


@judges_calls(rules.LINEN_IDIOM, "nnx.bridge.ToLinen")
def arguments_to_linen(event: Called, report: Reporter) -> None:
    """Arguments of the class one by one, where they are taken together."""
    args = given(event)
    for place, name, kind in ((1, "args", "tuple"), (2, "kwargs", "dict")):
        value, node = args.get(place, name), args.node_of(place, name)
        if not isinstance(value, Const) or not isinstance(value.value, (int, float)) or node is None:
            continue
        taken = "arguments" if kind == "tuple" else "keyword arguments"
        problem = f"`{event.name}` takes the {taken} of the class as one {kind}"
        first = text_of(args.node_of(0, "nnx_class") or event.node)
        single = f"`nnx.bridge.to_linen({first}, ...)`"
        mend = f"`{event.name}({first}, args=(...))`, or {single}, which takes them one by one"
        report(event.frame.module, node, problem=f"{problem}, and gets {value.describe()}", mend=mend)
        return


@judges_calls(rules.LINEN_IDIOM, "nnx.bridge.ToLinen", "nnx.bridge.to_linen")
def streams_to_linen(event: Called, report: Reporter) -> None:
    """Streams among the arguments of the class, which gets some by the name ``rngs`` from the bridge."""
    args = given(event)
    together = event.subject == "nnx.bridge.ToLinen"
    taken = args.get(1, "args") if together else None
    placed = taken.items if isinstance(taken, Seq) else [] if together else args.positional[1:]
    skips = {"skip_rng", "**"} & args.keywords.keys()
    if not skips and any(map(is_rngs, placed)) and not is_tried(event.frame.module, event.node):
        problem = f"`{event.name}` hands its own `rngs` to the class, and is given some by position besides"
        mend = "leave them out: it makes them of the streams that Linen has"
        report(event.frame.module, event.node, problem=problem, mend=mend)
