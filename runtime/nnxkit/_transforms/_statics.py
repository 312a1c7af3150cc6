"""Static arguments by position, for transforms that trace a function at every call.

Invariants

- What is static is a Python value to the function. A graph object never is: its values are always traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from nnx_rules.rules import transforms as rules
from nnxkit._facts import describe
from nnxkit._transforms._inputs import BARE, is_object, replaced
from nnxkit._transforms._lift import Groups, Lift
from nnxkit._transforms._outcome import Outcome


class Dynamic:
    """A call as a function of the values that are traced.

    Args:
        lift: the call.
        static_argnums: position or positions of static arguments; negative ones count from the last argument.

    Attributes:
        values: the values that are traced.

    Raises:
        TransformArgumentError: something there is no position, or there is no argument.
    """

    def __init__(self, lift: Lift, static_argnums: int | Sequence[int]) -> None:
        self.lift = lift
        self.static = bare_places(lift, "static_argnums", static_argnums)
        self.places = [place for place in range(len(lift.values)) if place not in self.static]
        self.values = [lift.values[place] for place in self.places]

    def static_values(self) -> tuple[tuple[int, type, Any], ...]:
        """What is static, with its types; hashable if the values are."""
        values = self.lift.values
        return tuple((place, type(values[place]), values[place]) for place in sorted(self.static))

    def run(self, values: Sequence[Any]) -> tuple[Groups, Outcome]:
        """Run the function, as `Lift.run`."""
        return self.lift.run(replaced(self.lift.values, self.places, values))


def bare_places(lift: Lift, option: str, argnums: int | Sequence[int]) -> frozenset[int]:
    """Where the bare leaves of some positional arguments are among the values of a call.

    Raises:
        TransformArgumentError: something there is no position, or there is no argument.
    """
    numbers = argnums if isinstance(argnums, Sequence) else [argnums]
    if not numbers:
        return frozenset()
    args, _ = lift.inputs.tree
    chosen = {position(number, len(args), option, lift.modes.transform) for number in numbers}
    owners = [number for number, arg in enumerate(args) for _ in jax.tree.leaves(arg, is_leaf=is_object)]
    bare = lift.inputs.flat.numbers(BARE)
    return frozenset(
        lift.num_leaves + place
        for place, number in enumerate(bare)
        if number < len(owners) and owners[number] in chosen
    )


def position(number: Any, count: int, option: str, transform: str) -> int:
    """A position counted from the first of ``count`` arguments.

    Raises:
        TransformArgumentError: it is no integer, or there is no such argument.
    """
    if not isinstance(number, int) or not -count <= number < count:
        given = number if isinstance(number, int) else describe(number)
        raise rules.MISSING_POSITION.error(option=option, transform=transform, given=given, count=count)
    return number % count
