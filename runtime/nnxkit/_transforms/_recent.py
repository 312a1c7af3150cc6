"""The last call of a compiled function: a call of the same objects, unedited, is recognised without a key.

A key (``_inputs``) is made of the objects' structures, and finds the compiled function whatever the objects are. In a
training loop they are always the same objects, so it is enough to see that they are, and that no plan was replaced.

Invariants

- What is recognised would have had an equal key: the arguments have the same structure and kinds of leaves, the same
  objects are reached from them and from the captures, and each keeps the same plan, which is still valid.
- Objects and plans are referred to weakly.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from itertools import chain, repeat
from operator import is_
from typing import Any

from nnxkit._graph._plan import Plan
from nnxkit._pytree import Pytree
from nnxkit._transforms._captures import Captures
from nnxkit._transforms._inputs import PYTREE, Inputs
from nnxkit._transforms._joint import Sharing


class Recent:
    """One call.

    Args:
        inputs: its inputs. Their key has a hash, and their root no Variable.
    """

    __slots__ = ("_captures", "_marks", "_objects", "_sharing", "_treedef")

    # The number of the leaf of the arguments, the object, its plan.
    _objects: tuple[tuple[int | None, weakref.ref[Pytree], weakref.ref[Plan]], ...]

    def __init__(self, inputs: Inputs) -> None:
        joint = inputs.joint
        self._treedef: Any = inputs.treedef
        self._marks = inputs.marks
        self._captures: Sequence[Captures] = inputs.captures
        self._sharing: Sharing = joint.sharing
        numbers = chain(inputs.flat.numbers(PYTREE), repeat(None))  # captures come after the arguments
        self._objects = tuple(
            [
                (number, weakref.ref(node), weakref.ref(plan))
                for number, node, plan in zip(numbers, inputs.root.pytrees, joint.plans, strict=False)
            ]
        )

    def recognises(self, inputs: Inputs) -> bool:
        """Whether inputs are those of this call, unedited. They are then told what is known of their joint graph."""
        if self._marks != inputs.marks or self._treedef != inputs.treedef:
            return False
        if not all(map(is_, self._captures, inputs.captures)):
            return False
        plans: list[Plan] = []
        for number, find_node, find_plan in self._objects:
            node = find_node()
            if node is None or (number is not None and inputs.leaves[number] is not node):
                return False
            plan: Plan | None = node._nnx_plan
            if plan is None or plan is not find_plan() or not plan.is_current(node):
                return False
            plans.append(plan)
        inputs.recall(plans, self._sharing)
        return True
