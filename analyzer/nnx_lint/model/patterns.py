"""Functions that move the axes of arrays by a pattern, those of einops: the shapes that they give.

Invariants: as in :mod:`~nnx_lint.model.operations`; a list of arrays, which einops stacks, is not followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.forms import dimension
from nnx_lint.model.values import Array, Const, HostArray, Value
from nnx_rules import axis_patterns
from nnx_rules.shapes import Form

if TYPE_CHECKING:
    from nnx_lint.model.calls import Arguments
    from nnx_rules.axis_patterns import Pattern
    from nnx_rules.shapes import Dimension

FUNCTIONS = {"einops.rearrange": 1, "einops.repeat": 1, "einops.reduce": 1}
"""What moves axes, with the position of the pattern."""


def moved(name: str, args: Arguments, level: int) -> Value | None:
    """What such a function returns; ``None`` where that is not known."""
    array, pattern = args.get(0, "tensor"), pattern_of(args)
    if not isinstance(array, Array) or pattern is None:
        return None
    shape = axis_patterns.result(pattern, array.form.shape if array.form is not None else None, sizes_of(args))
    made = HostArray(level) if isinstance(array, HostArray) else Array(level)
    kept = array.form.dtype if array.form is not None and name != "einops.reduce" else None
    made.form = Form(shape, kept) if shape is not None or kept is not None else None
    return made


def pattern_of(args: Arguments) -> Pattern | None:
    """The pattern that such a function is given."""
    text = args.get(1, "pattern")
    written = text.value if isinstance(text, Const) and not args.starred else None
    return axis_patterns.parsed(written) if isinstance(written, str) else None


def sizes_of(args: Arguments) -> dict[str, Dimension]:
    """The sizes that it is given by their names."""
    return {name: dimension(value) for name, value in args.keywords.items() if name not in {"pattern", "reduction"}}
