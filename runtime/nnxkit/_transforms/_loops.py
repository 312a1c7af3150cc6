"""``nnx.while_loop`` and ``nnx.fori_loop``: a function runs again and again on what it returned.

Invariants: those of ``_loop``. The condition of a loop reads only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from nnx_rules.rules import transforms as rules
from nnxkit._transforms._carried import Carried
from nnxkit._transforms._eager import solved
from nnxkit._transforms._lift import Function, Lift, modes_of
from nnxkit._transforms._loop import Loop, Notes
from nnxkit._transforms._outcome import Outcome
from nnxkit._transforms._places import differences, inputs_after, places_of
from nnxkit._transforms._signatures import R

_INITIAL = "init_val"


class _WholeLoop(Loop):
    """A loop in which everything goes from step to step."""

    def __init__(self, lift: Lift, init_val: Any, *, may_renew: bool = True) -> None:
        values = range(len(lift.values))
        carried = Carried(lift, init_val, (_INITIAL,), values[lift.num_leaves :], may_renew=may_renew)
        super().__init__(lift, carried, values)

    def body(self, values: list[Any], *args: Any, number: int = 0) -> list[Any]:
        """What JAX traces for a step. ``args`` come before the carry."""

        def call(f: Callable[..., Any], tree: tuple[Any, Any]) -> tuple[list[Any], None]:
            carry = tree[1][_INITIAL]
            return self.carried.step(carry, lambda: f(*args, carry)), None

        return self.step(values, call, number=number)[0]

    def condition(self, values: list[Any], *, number: int = 0) -> Any:
        """What JAX traces for the condition."""
        results = []

        def call(f: Callable[..., Any], tree: tuple[Any, Any]) -> None:
            results.append(f(tree[1][_INITIAL]))

        _, outcome = self.lift.run(values, number=number, call=call)
        self.require_unchanged(outcome)
        return results[0]

    def solved(self, run: Callable[[list[Any]], list[Any]], *further: Any) -> Any:
        """Run all steps; returns the last carry.

        Args:
            run: runs them over values.
            further: what else that depends on.
        """

        def solve(values: list[Any]) -> tuple[list[Any], Notes]:
            done = run(values)
            return done, self.notes

        values, self.notes = solved(solve, [self.lift.values], self.lift, further)
        return self.finish(values, [])[0]

    def require_unchanged(self, outcome: Outcome) -> None:
        """Raise if the condition did anything to an object."""
        structure = self.lift.structure
        changed = [structure.paths[place] for place in (*outcome.written, *dict(outcome.metadata))]
        if outcome.edits is not None:
            changed += differences(places_of(structure.graphdef), inputs_after(structure, outcome).places)
        if changed:
            raise rules.LOOP_CONDITION.error(transform=self.lift.modes.transform, path=structure.name(changed[0]))


def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], R],
    init_val: Any,
    *,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> R:
    """Run a function while a condition holds, as ``jax.lax.while_loop``, on objects.

    Modules and Variables may be in the carry or captured; what the steps write goes from step to step, and after the
    loop it is in the caller's objects.

    Args:
        cond_fun: gets the carry; returns a boolean scalar. It cannot write.
        body_fun: gets the carry; returns the next one, with the same objects.
        init_val: the carry to begin with: anything that JAX and nnx take.
        graph: graph or tree mode; ``None`` for the one in force.
        graph_updates: whether changes of structure come back; ``None`` for the setting in force.

    Returns:
        the last carry: with the objects of ``init_val``. Without graph updates, Modules are new ones that hold the
        Variables of ``init_val``.

    Raises:
        TransformArgumentError: a step returns other objects or edits structure, or the condition writes.
        TransformTypeError: a step changes the structure of the carry, or the type of a value.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> total = nnx.Variable(jnp.array(0))
    >>> def add(i):
    ...     total[...] += i
    ...     return i + 1
    >>> int(nnx.while_loop(lambda i: i < 4, add, 0)), int(total[...])
    (4, 6)
    """
    name = "nnx.while_loop"
    lift = Lift(
        modes_of(name, graph, graph_updates),
        ((), {_INITIAL: init_val}),
        Function(body_fun),
        Function(cond_fun),
    )
    loop = _WholeLoop(lift, init_val, may_renew=False)

    def run(values: list[Any]) -> list[Any]:
        done: list[Any] = jax.lax.while_loop(lambda values: loop.condition(values, number=1), loop.body, values)
        return done

    result: R = loop.solved(run)
    return result


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], R],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> R:
    """Run a function for each number of a range, as ``jax.lax.fori_loop``, on objects.

    Args:
        lower: the first number.
        upper: the number after the last.
        body_fun: gets a number and the carry; returns the next carry, with the same objects. With graph updates it may
            return new Variables, if nothing else holds those that it was given.
        init_val: the carry to begin with; see `nnx.while_loop`.
        unroll: as for ``jax.lax.fori_loop``.
        graph: graph or tree mode; ``None`` for the one in force.
        graph_updates: whether changes of structure come back; ``None`` for the setting in force.

    Returns:
        the last carry, as `nnx.while_loop` gives it; where steps returned new Variables, with new ones.

    Raises:
        TransformArgumentError: a step returns other objects or edits structure.
        TransformTypeError: a step changes the structure of the carry, or the type of a value.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> w = nnx.Param(jnp.array(1.0))
    >>> def double(i, w):
    ...     w[...] *= 2
    ...     return w
    >>> nnx.fori_loop(0, 3, double, w) is w, float(w[...])
    (True, 8.0)
    """
    name = "nnx.fori_loop"
    lift = Lift(modes_of(name, graph, graph_updates), ((), {_INITIAL: init_val}), Function(body_fun))
    loop = _WholeLoop(lift, init_val)

    def run(values: list[Any]) -> list[Any]:
        done: list[Any] = jax.lax.fori_loop(lower, upper, lambda i, values: loop.body(values, i), values, unroll=unroll)
        return done

    result: R = loop.solved(run, lower, upper, unroll)
    return result
