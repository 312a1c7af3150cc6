"""Names of random streams: one that does not exist (NNX501), one that looks like a slip (NNX513), one that
``nnx.reseed`` does not find (NNX527).
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Edit, Fix, Related, Span
from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.classes import LibClass, UserClass, method_of
from nnx_lint.model.events import Called
from nnx_lint.model.expressions import text_of
from nnx_lint.model.values import Const, Obj, Value
from nnx_lint.reporting import Reporter, judges_calls, related
from nnx_lint.rules.program import canonical_of, resolved
from nnx_lint.rules.randomness.reading import (
    Streams,
    asked_for,
    carry_made,
    drawn_by,
    drawn_from_parameter,
    drawn_when_called,
    is_rngs,
    kept_streams,
    stream_name,
    streams_asked,
    streams_of,
    streams_parameter,
)
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import rngs as rules
from nnx_rules.signatures import SIGNATURES
from nnx_rules.streams import LATE, LATE_BEFORE, METHODS, SAMPLERS

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module

SIMILAR = 0.8
"""How alike two names are that somebody mixed up by a slip."""


def draws_stream(event: Called) -> bool:
    """Whether a method of an ``nnx.Rngs`` is called, which may be a stream."""
    callee = event.callee
    draws = isinstance(callee, BoundMethod) and (callee.name not in METHODS or callee.name in SAMPLERS)
    return draws and isinstance(callee, BoundMethod) and is_rngs(callee.receiver)


# -- streams that do not exist -----------------------------------------------------------------------------------------


@judges_calls(rules.MISSING_STREAM, BoundMethod, when=draws_stream)
def missing_stream(event: Called, report: Reporter) -> None:
    frame = event.frame
    asked = ((name, owner) for name, owner in streams_asked(event.node) if is_rngs(resolved(frame.env, owner)))
    name = stream_name(event.callee) or next((name for name, _ in asked), None)
    rngs: Value | None = event.callee.receiver if isinstance(event.callee, BoundMethod) else None
    if streams_of(rngs) is None and frame.func is not None and frame.func.name != "__call__":
        rngs = _kept(event)  # of the forward pass it is said where the object is made
    streams = streams_of(rngs)
    if name is None or streams is None or streams.has_default or name in streams.names:
        return
    if (id(_kept(event)), name) not in report.memory(Told):
        _report(event, report, event.node, name, streams, rngs)


class Told(set[tuple[int, str]]):
    """The streams that were said to be missing where an object was made, with the ``nnx.Rngs`` that lack them, by
    identity: neither the next object nor the calls of one say it again.
    """


def _kept(event: Called) -> Value | None:
    """The streams that an object has kept since it was made, where one of them is called."""
    found = (kept_streams(event.frame, owner) for _, owner in streams_asked(event.node))
    return next((rngs for rngs in found if rngs is not None), None)


@judges_calls(rules.MISSING_STREAM, "class", *(name for name, item in SIGNATURES.items() if "rngs" in item.keywords))
def missing_stream_of_layer(event: Called, report: Reporter) -> None:
    obj = event.result
    if not isinstance(obj, Obj) or obj.args is None:
        return
    if obj.cls.made_as is not None:
        rngs = obj.args.get("rngs")
    elif isinstance(obj.cls, UserClass):
        parameter = streams_parameter(obj.cls) if any(map(is_rngs, obj.args.values())) else None
        rngs = obj.args.get(parameter.arg) if parameter is not None else None
    else:
        return
    streams = streams_of(rngs)
    if streams is None or streams.has_default:
        return
    drawn = (
        [each.stream for each in drawn_from_parameter(obj.cls)]
        if isinstance(obj.cls, UserClass) and obj.cls.made_as is None
        else drawn_by(obj)
    )
    library, version = report.runs_on(event.frame.module)
    late = LATE if library == "flax" and version is not None and version < LATE_BEFORE else frozenset[str]()
    for name in dict.fromkeys(drawn):
        if name not in streams.names and name not in late:
            _report(event, report, event.node, name, streams, rngs)
            return
    for name, place, call in drawn_when_called(obj.cls) if isinstance(obj.cls, UserClass) else ():
        if name not in streams.names and (id(rngs), name) not in report.memory(Told):
            report.memory(Told).add((id(rngs), name))
            where = (related(place, call, "each call of it draws from the stream here"),)
            _report(event, report, event.node, name, streams, rngs, where)
            return


@judges_calls(rules.MISSING_STREAM, ".initialize_carry")
def missing_stream_of_carry(event: Called, report: Reporter) -> None:
    found = carry_made(event)
    streams = streams_of(found[1]) if found is not None else None
    if found is not None and streams is not None and not streams.has_default and "carry" not in streams.names:
        _report(event, report, event.node, "carry", streams, found[1])


def _report(
    event: Called,
    report: Reporter,
    node: ast.AST,
    name: str,
    streams: Streams,
    rngs: Value | None,
    places: tuple[Related, ...] = (),
) -> None:
    module = event.frame.module
    report(module, node, fix=lambda: _declared(module, rngs, name), related=places, name=name, streams=streams)


def _declared(module: Module, rngs: Value | None, name: str) -> Fix | None:
    """Declare a stream where the ``nnx.Rngs`` was made, if that is in the same file."""
    call = rngs.node if isinstance(rngs, Obj) else None
    origin = rngs.origin if isinstance(rngs, Obj) else None
    if not isinstance(call, ast.Call) or origin is None or origin[0] is not module or not name.isidentifier():
        return None
    count = len(call.args) + len(call.keywords)
    text = f", {name}={count}" if count else "0"
    end = module.source.span(call).end - 1
    return Fix(f"Declare the stream `{name}`", (Edit(Span(end, end), text),), Applicability.UNSAFE)


# -- slips -------------------------------------------------------------------------------------------------------------


@judges_calls(rules.STREAM_TYPO, BoundMethod, when=draws_stream)
def stream_typo(event: Called, report: Reporter) -> None:
    name = stream_name(event.callee)
    streams = streams_of(event.owner) or streams_of(_kept(event))
    module = event.frame.module
    near = _near(name, streams) if name is not None and streams is not None else None
    if name is not None and near is not None:
        report(module, event.node, fix=lambda: _renamed(module, event.node, name, near), name=name, near=near)


@judges_calls(rules.STREAM_TYPO, "class")
def stream_typo_in_class(event: Called, report: Reporter) -> None:
    """An object is given streams, and it or a part of it asks for one by another name."""
    obj = event.result
    cls = obj.cls if isinstance(obj, Obj) else None
    if not isinstance(obj, Obj) or obj.args is None or not isinstance(cls, UserClass) or cls.made_as is not None:
        return
    parameter = streams_parameter(cls) if any(map(is_rngs, obj.args.values())) else None
    streams = streams_of(obj.args.get(parameter.arg)) if parameter is not None else None
    if streams is None or len(streams.names) < 2:
        return
    for name, module, call in asked_for(cls):
        near = _near(name, streams)
        if near is not None:
            report(module, call, fix=partial(_renamed, module, call, name, near), name=name, near=near)


def _near(name: str, streams: Streams) -> str | None:
    """The stream that looks like what is meant by a name that the default stream answers for."""
    if name in streams.names or not streams.has_default:
        return None
    import difflib

    others = [each for each in streams.names if each != "default"]
    return next(iter(difflib.get_close_matches(name, others, n=1, cutoff=SIMILAR)), None)


def _renamed(module: Module, node: ast.AST, name: str, near: str) -> Fix | None:
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr != name:
        return None
    end = module.source.span(func).end
    span = Span(end - len(func.attr), end)
    return Fix(f"Write `{near}`", (Edit(span, near),), Applicability.UNSAFE)


# -- reseed ------------------------------------------------------------------------------------------------------------


@judges_calls(rules.RESEED_UNKNOWN, "nnx.reseed")
def reseed_unknown_stream(event: Called, report: Reporter) -> None:
    target = event.args[0] if event.args else None
    if not isinstance(target, Obj) or "**" in event.keywords or not event.nodes:
        return
    streams = _tags(target)
    if streams is None:
        return
    for name in event.keywords.keys() - {"graph", "policy"}:
        if name not in streams.names:
            report(event.frame.module, event.node, path=text_of(event.nodes[0]), name=name, streams=streams)


def _tags(obj: Obj) -> Streams | None:
    """What the streams in an object are called, if all of them come from one ``nnx.Rngs`` that the program shows."""
    if is_rngs(obj):
        return streams_of(obj)
    if obj.args is None or "**" in obj.args:
        return None
    if isinstance(obj.cls, LibClass):
        streams = streams_of(obj.args.get("rngs"))
        if streams is None or obj.cls.name != "Dropout":
            return None
        name = obj.args.get("rng_collection", Const("dropout"))
        if not isinstance(name, Const):
            return None
        return Streams((str(name.value) if name.value in streams.names else "default",))
    parameter = streams_parameter(obj.cls) if isinstance(obj.cls, UserClass) else None
    if parameter is None or not isinstance(obj.cls, UserClass) or _makes_streams(obj.cls):
        return None
    return streams_of(obj.args.get(parameter.arg))


def _makes_streams(cls: UserClass) -> bool:
    """Whether a constructor may hold streams besides those that it is given."""
    found = method_of(cls, "__init__")
    if found is None or len(cls.lineage) > 1:
        return True
    env = found[1].module.env
    calls = (node for node in walk(found[1].node) if isinstance(node, ast.Call))
    return any((canonical_of(env, call.func) or "").startswith("nnx.Rng") for call in calls)
