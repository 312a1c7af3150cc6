"""Random keys for layers: from what a call passes, or from the stream that the layer keeps.

Invariants

- A layer keeps a stream that it forked, so layers made from one ``Rngs`` draw different numbers, and no layer changes
  what another draws.
"""

from __future__ import annotations

from typing import Any

import jax

from nnx_rules.rules import modules as rules
from nnxkit._module import Module
from nnxkit._rngs import Rngs, RngStream
from nnxkit.nn._parameters import unfit


def stream_of(rngs: Any, name: str) -> RngStream | None:
    """A stream of an ``Rngs`` by its name; a stream itself; ``None`` for ``None``.

    Raises:
        LayerArgumentError: it is something else.
    """
    if not isinstance(rngs, Rngs | RngStream | None):
        problem = f"rngs must be Rngs, an RngStream or None, not {type(rngs).__name__}"
        raise unfit(problem, "pass `rngs=nnx.Rngs(seed)`")
    return getattr(rngs, name) if isinstance(rngs, Rngs) else rngs


def next_key(layer: Module, name: str, *sources: Any) -> jax.Array:
    """The next key of the stream ``name`` of the first source that is not ``None``: an ``Rngs``, a stream, or a key.

    Raises:
        LayerArgumentError: all are ``None``.
        TraceContextError: the stream belongs to another trace level.
    """
    for source in sources:
        if source is not None:
            stream = getattr(source, name) if isinstance(source, Rngs) else source
            key: jax.Array = stream() if isinstance(stream, RngStream) else stream
            return key
    raise rules.LAYER_WITHOUT_RNGS.error(cls=type(layer).__name__)
