"""Layers that have to be prepared before they are called (NNX809): attention that decodes and has no cache, modules of
Linen that nobody has initialized.

Invariants: the running code was reached from where the model was made, and nothing in any of the files that it passed
names what prepares such a layer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.classes import UserClass
from nnx_lint.model.events import Called
from nnx_lint.model.values import Const, Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.modes.layers import is_seen_made
from nnx_lint.rules.program import is_tried
from nnx_rules.rules import modules as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.modules import Module


class Preparation(NamedTuple):
    """What is wrong with a layer that is not prepared, what to do, and what names the doing."""

    problem: str
    mend: str
    named: re.Pattern[str]


PREPARATIONS = {
    "nnx.MultiHeadAttention": Preparation(
        "it decodes, and has no cache",
        "call `init_cache(input_shape)` first",
        re.compile(r"init_cache|cached_key|set_attributes|with_attributes|\bview\b|decode\s*=\s*False"),
    ),
    "nnx.bridge.ToNNX": Preparation(
        "the Linen module in it has no parameters yet",
        "call `lazy_init(...)` with an example input after making it",
        re.compile(r"lazy_init|\.init\b|nnx\.update\(|(?<!\.)\bupdate\("),
    ),
}


@judges_calls(rules.LAYER_ARGUMENTS, "()")
def not_prepared(event: Called, report: Reporter) -> None:
    layer, frame = event.callee, event.frame
    needed = PREPARATIONS.get(getattr(layer.cls, "canonical", "")) if isinstance(layer, Obj) else None
    if needed is None or not isinstance(layer, Obj) or layer.assumed or frame.doubtful or "**" in event.keywords:
        return
    if layer.cls.name == "MultiHeadAttention":
        decode = event.keywords.get("decode", (layer.args or {}).get("decode"))
        cache = attribute_of(layer, "cached_key")
        if not (isinstance(decode, Const) and decode.value is True) or (cache is not None and cache.assignments):
            return
    if not is_seen_made(frame) or is_tried(frame.module, event.node):
        return
    if not any(module.mentions(needed.named) for module in _modules(event, layer)):
        report(frame.module, event.node, cls=layer.cls.name, problem=needed.problem, mend=needed.mend)


def _modules(event: Called, layer: Obj) -> Iterator[Module]:
    """The files that the running code passed, and those that made the layer and the objects that it belongs to."""
    objects = [layer, event.owner]
    frame = event.frame
    while True:
        yield frame.module
        objects.append(frame.receiver)
        if frame.caller is None:
            break
        frame = frame.caller
    for obj in objects:
        if isinstance(obj, Obj):
            if obj.origin is not None:
                yield obj.origin[0]
            if isinstance(obj.cls, UserClass):
                yield obj.cls.module
