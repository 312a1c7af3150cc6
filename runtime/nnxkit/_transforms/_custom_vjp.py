"""``nnx.custom_vjp``: functions of objects with a derivative of their own.

The protocol of the backward rule depends on the mode. Without graph updates it is that of ``jax.custom_vjp``: from
residuals and the cotangent of the result to one cotangent for each argument, all of them of the structure of what they
belong to; what the function wrote to its arguments reaches the rule under the name ``updates_g``, if it has such a
parameter. With graph updates the function also returns its inputs, as it left them, so the rule gets a pair: the
cotangents of the inputs, one State for each module, and that of the result.

Invariants

- What is differentiated are the arguments by position, but for ``nondiff_argnums``. Where somebody wants the derivative
  of something else that the function reaches (captures, arguments by keyword only), that is an error, not zero.
- All that the backward rule sees was computed with the forward rule: what it captures, too.
- A rule runs on fresh objects. What function and forward rule write comes back; the backward rule must not write.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Self, overload

import jax
import jax.numpy as jnp
import numpy as np

from nnx_rules.errors import format_path
from nnx_rules.records import Record
from nnx_rules.rules import transforms as rules
from nnxkit._facts import describe
from nnxkit._graph._plan import plan_of
from nnxkit._graph._program import program_of
from nnxkit._state import State
from nnxkit._state._order import Path
from nnxkit._transforms._gradients import Wanted
from nnxkit._transforms._inner import Inner, Modes
from nnxkit._transforms._inputs import BARE, PYTREE, VARIABLE, Flat, is_object, mark_of, replaced, split_path, unflatten
from nnxkit._transforms._joint import Root
from nnxkit._transforms._lift import Function, Groups, Lift, call_function
from nnxkit._transforms._outcome import Outcome, Result
from nnxkit._transforms._packing import Packing, is_of_type, pack, tangent_type
from nnxkit._transforms._prefixes import DiffState, Prefixes, label_inputs
from nnxkit._transforms._signatures import CustomVjpFunction, P, R
from nnxkit._transforms._statics import position
from nnxkit._transforms._wrapper import MISSING, Transformed, wrap
from nnxkit._variable import Variable


class CustomVjpOptions(Record):
    """Options of ``nnx.custom_vjp``."""

    nondiff_argnums: tuple[int | DiffState, ...]


def _first(f: Callable[..., Any], fwd: Any, bwd: Any, /, *args: Any, **kwargs: Any) -> Any:
    """A function with its rules, as one function: so captures are found in all three."""
    return f(*args, **kwargs)


class CustomVjp(Transformed):
    """A function under ``nnx.custom_vjp``; `defvjp` gives it its rules."""

    options: CustomVjpOptions
    prefix_options = ("nondiff_argnums",)

    def __init__(self, f: Callable[..., Any], options: CustomVjpOptions, modes: Modes) -> None:
        super().__init__(f, options, modes)
        self.whole = f
        self.rules: tuple[Function, ...] = ()
        self.takes_updates = False

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Define the derivative.

        Args:
            fwd: takes the arguments of the function; returns its result, and whatever ``bwd`` needs: arrays, objects,
                containers of them.
            bwd: takes the arguments at the integers of ``nondiff_argnums``, what ``fwd`` kept, and the cotangent of the
                result; returns a tuple with a cotangent for each differentiated argument, ``None`` for zero. With
                graph updates it takes a pair in the place of the cotangent of the result: cotangents of what the inputs
                were afterwards, and that of the result. There the cotangent of a module is a State. Without graph
                updates a rule with the parameter ``updates_g`` also gets, by that name, a tuple of all arguments, in
                which Variables that the function wrote are the cotangents of their new values, and all else is
                ``None``.
        """
        self.rules = Function(fwd), Function(bwd)
        self.takes_updates = not self.modes.updates and _takes(bwd, "updates_g")
        self.whole = functools.partial(_first, self.function.f, fwd, bwd)

    def __nnx_wrapped__(self) -> Callable[..., Any]:
        """The function together with its rules."""
        return self.whole

    def __nnx_rewrap__(self, f: Callable[..., Any]) -> Self:
        """The same with another function and other rules."""
        if not isinstance(f, functools.partial) or f.func is not _first:
            return super().__nnx_rewrap__(f)
        function, fwd, bwd = f.args
        copy = super().__nnx_rewrap__(function)
        copy.defvjp(fwd, bwd)
        return copy

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.rules:
            name = getattr(self.function.f, "__name__", repr(self.function.f))
            raise rules.MISSING_VJP_RULES.error(transform=self.modes.transform, name=name)
        lift = Lift(self.modes, self.positional(args, kwargs), self.function, *self.rules)
        return _Call(lift, self.options.nondiff_argnums, self.takes_updates).run()


def _takes(f: Callable[..., Any], name: str) -> bool:
    """Whether a function can be given an argument by this name."""
    try:
        parameters = inspect.signature(f).parameters
    except (TypeError, ValueError):  # a builtin without signature
        return False
    return name in parameters or any(item.kind is item.VAR_KEYWORD for item in parameters.values())


DIFFERENTIATED, FIXED, REACHED = "differentiated", "fixed", "reached"
"""What a value is to the derivative: known to the backward rule, declared as a constant, or neither."""

INPUTS, RESULT = 0, 1


class _Kinds:
    """Labels that tell what the function did to its inputs from its result."""

    groups: tuple[Hashable, ...] = (INPUTS, RESULT)

    def of_input(self, leaf: int) -> Hashable:
        return INPUTS

    def of_new(self, path: Path, leaf: Any) -> Hashable:
        return INPUTS

    def of_result(self, result: Flat) -> Callable[[int, Path, Any], Hashable]:
        return lambda number, path, leaf: RESULT


class _Leaf(NamedTuple):
    """A leaf of an argument.

    Attributes:
        mark: whether it is a graph object.
        name: what it is called.
        paths: paths of the values below it.
        places: these values, by their places among the values of the call.
    """

    mark: int
    name: Path
    paths: tuple[Path, ...]
    places: tuple[int, ...]


class _Wanted(Wanted):
    """What a `DiffState` takes is differentiated, the rest is fixed."""

    def __init__(self, literal: Any) -> None:
        super().__init__(literal)
        self.prefixes = (DIFFERENTIATED, FIXED)

    def map_prefix(self, path: Path, leaf: Any) -> Any:
        return DIFFERENTIATED if super().map_prefix(path, leaf) else FIXED


class _Call:
    """One call: the functions over lists of values that ``jax.custom_vjp`` gets."""

    def __init__(self, lift: Lift, nondiff_argnums: Sequence[int | DiffState], takes_updates: bool) -> None:
        self.lift = lift
        self.takes_updates = takes_updates
        self.args, _ = lift.inputs.tree
        self.fixed: list[int] = []
        marks = self.marks(nondiff_argnums)
        prefixes = Prefixes("nondiff_argnums", (marks, REACHED), lift.inputs.tree, lift.modes)
        self.labels = label_inputs(lift.inputs, prefixes, REACHED)
        self.traced = [place for place in range(len(lift.values)) if self.is_traced(place)]
        self.types = {place: tangent_type(lift.values[place]) for place in self.traced}
        self.leaves = [self.leaves_of(number) for number in range(len(self.args))]
        self.treedefs: list[Any] = [jax.tree.structure(arg, is_leaf=is_object) for arg in self.args]
        # Backward, objects other than residuals are made of the values that the forward rule got.
        fixed = jax.tree.leaves([self.args[number] for number in self.fixed], is_leaf=is_object)
        self.saves = any(map(is_object, fixed)) or bool(lift.inputs.captures[2].objects)
        self.outcome: Outcome | None = None

    def is_traced(self, place: int) -> bool:
        """Whether JAX sees a value. Bare leaves that are not differentiated may be any Python values."""
        if place < self.lift.num_leaves or self.labels[place] == DIFFERENTIATED:
            return True
        return self.labels[place] == REACHED and isinstance(self.lift.values[place], jax.Array)

    def marks(self, nondiff_argnums: Sequence[int | DiffState]) -> tuple[Any, ...]:
        """What each argument is to the derivative; notes the fixed ones."""
        marks: list[Any] = [DIFFERENTIATED] * len(self.args)
        transform = self.lift.modes.transform
        for item in nondiff_argnums:
            number = item.argnum if isinstance(item, DiffState) else item
            place = position(number, len(self.args), "nondiff_argnums", transform)
            if marks[place] is not DIFFERENTIATED:
                raise rules.ARGNUM_REPEATED.error(transform=transform, argnum=number)
            if isinstance(item, DiffState):
                marks[place] = _Wanted(item.filter)
            else:
                marks[place] = FIXED
                self.fixed.append(place)
        return tuple(marks)

    def leaves_of(self, number: int) -> list[_Leaf]:
        """The leaves of an argument."""
        inputs = self.lift.inputs
        places = {key: place for place, key in enumerate(inputs.joint.leaf_keys())}
        first = len(jax.tree.leaves(self.args[:number], is_leaf=is_object))
        bare = {leaf: place for place, leaf in enumerate(inputs.flat.numbers(BARE), self.lift.num_leaves)}
        names = inputs.argument_names()
        leaves = []
        for place, leaf in enumerate(jax.tree.leaves(self.args[number], is_leaf=is_object), first):
            if is_object(leaf):
                plan = plan_of(leaf)
                own = tuple(places[key] for key in plan.leaf_keys())
                leaves.append(_Leaf(mark_of(leaf), names[place], plan.paths, own))
            else:
                leaves.append(_Leaf(BARE, names[place], ((),), (bare[place],)))
        return leaves

    def run(self) -> Any:
        function = jax.custom_vjp(self.primal)
        function.defvjp(self.forward, self.backward, symbolic_zeros=True)
        groups = function([self.lift.values[place] for place in self.traced])
        assert self.outcome is not None
        return self.lift.apply(groups, self.outcome)

    def current(self, values: Sequence[Any]) -> list[Any]:
        """All values, with the traced ones as JAX gives them."""
        return replaced(self.lift.values, self.traced, values)

    def primal(self, values: Sequence[Any]) -> Groups:
        """The function."""
        groups, outcome = self.lift.run(self.current(values), _Kinds())
        self.note(outcome)
        return groups

    def note(self, outcome: Outcome) -> None:
        """Keep what the function did.

        Raises:
            TransformArgumentError: the forward rule does not do what the function did.
        """
        if self.outcome is not None and self.outcome != outcome:
            raise rules.VJP_FORWARD_DIFFERS.error(transform=self.lift.modes.transform)
        self.outcome = outcome

    def require_rules(self, primals: Sequence[Any]) -> None:
        """Raise if a derivative is wanted that the rules do not give.

        Raises:
            TransformArgumentError: it is.
        """
        for place, primal in zip(self.traced, primals, strict=True):
            if self.labels[place] == REACHED and any(leaf.perturbed for leaf in jax.tree.leaves(primal)):
                raise rules.VJP_OF_CAPTURED.error(transform=self.lift.modes.transform, path=self.lift.name_of(place))

    def forward(self, primals: Sequence[Any]) -> tuple[Groups, Any]:
        """The forward rule; returns what the function returns, and residuals."""
        self.require_rules(primals)
        current = self.current(jax.tree.map(lambda leaf: leaf.value, primals))
        kept: list[Any] = []

        def call(fwd: Callable[..., Any], tree: Any) -> Any:
            returned = call_function(fwd, tree)
            if not isinstance(returned, tuple) or len(returned) != 2:
                problem = f"the forward rule returns {describe(returned)}, and must return `(result, residuals)`"
                raise rules.VJP_RULE_RESULT.error(transform=self.lift.modes.transform, problem=problem)
            result, residuals = returned
            kept.extend(pack(residuals))
            return result

        groups, outcome = self.lift.run(current, _Kinds(), number=1, call=call)
        self.note(outcome)
        return groups, (*kept, outcome, current[: self.lift.num_leaves] if self.saves else [])

    def backward(self, residuals: Any, cotangents: Groups) -> tuple[list[Any]]:
        """The backward rule: cotangents of the traced values, ``None`` for zero."""
        packing: Packing
        outcome: Outcome
        packing, values, outcome, saved = residuals
        of_inputs, of_result = jax.tree.map(_instantiate, cotangents)
        inputs, modes = self.lift.inputs, self.lift.modes
        inner = Inner(self.lift.structure, saved) if self.saves else None
        root = inputs.root if inner is None else inner.root
        (args, _), functions = inputs.enter(root, inputs.bare)
        written = dict(zip(outcome.written, of_inputs, strict=False))
        if modes.updates:
            cotangent: Any = self.of_inputs(written), _as_states(outcome.result, of_result)
        else:
            cotangent = _as_objects(outcome.result, of_result)
        more = {"updates_g": self.of_updates(written)} if self.takes_updates else {}
        returned = functions[2](*(args[number] for number in self.fixed), packing.unpack(values), cotangent, **more)
        if inner is not None:
            self.require_unwritten(inner)
        found = self.cotangents(returned)
        return ([found.get(place) for place in self.traced],)

    def require_unwritten(self, inner: Inner) -> None:
        """Raise if the backward rule has written to an object.

        Raises:
            TransformArgumentError: it has.
        """
        for place, leaf in enumerate(inner.leaves):
            if isinstance(leaf, Variable) and leaf._raw_value is not inner.values[place]:
                raise rules.VJP_BACKWARD_WRITE.error(transform=self.lift.modes.transform, path=self.lift.name_of(place))

    def of_inputs(self, written: Mapping[int, Any]) -> tuple[Any, ...]:
        """The cotangents of what the arguments were afterwards, where there are Variables."""
        given: set[int] = set()
        leaf_types = self.lift.structure.program.leaf_types

        def variable(place: int) -> Any:
            leaf_type = leaf_types[place]
            assert leaf_type is not None
            value = written[place] if place in written else jax.tree.map(_zeros, self.types[place])
            return leaf_type.cls.from_metadata(value, leaf_type.metadata)

        def cotangent(leaf: _Leaf) -> Any:
            if leaf.mark == BARE:
                return None
            if leaf.mark == VARIABLE:
                return variable(leaf.places[0])
            own = {
                path: place
                for path, place in zip(leaf.paths, leaf.places, strict=True)
                if leaf_types[place] is not None and place not in given
            }
            given.update(own.values())
            return State.from_sorted(tuple(own), list(map(variable, own.values())))

        return tuple(
            treedef.unflatten(map(cotangent, leaves))
            for number, (treedef, leaves) in enumerate(zip(self.treedefs, self.leaves, strict=True))
            if number not in self.fixed
        )

    def of_updates(self, written: Mapping[int, Any]) -> tuple[Any, ...]:
        """The arguments with the cotangents of what was written in the place of Variables, and ``None`` elsewhere."""
        program, root = self.lift.structure.program, self.lift.inputs.root
        leaves = [
            leaf_type.cls.from_metadata(written[place], leaf_type.metadata) if leaf_type and place in written else None
            for place, leaf_type in enumerate(program.leaf_types)
        ]
        built = program.build(leaves, recreate_variables=False, exact=False)
        pytrees, variables = Root.from_node(built[program.root], len(root.pytrees))
        objects = dict(zip(map(id, (*root.pytrees, *root.variables)), (*pytrees, *variables), strict=True))
        return tuple(
            jax.tree.map(lambda leaf: objects[id(leaf)] if is_object(leaf) else None, arg, is_leaf=is_object)
            for arg in self.args
        )

    def cotangents(self, returned: Any) -> dict[int, Any]:
        """The cotangents that the backward rule returned, by places.

        Raises:
            TransformTypeError: they do not fit the arguments.
        """
        transform = self.lift.modes.transform
        numbers = [number for number in range(len(self.args)) if number not in self.fixed]
        if not isinstance(returned, tuple | list) or len(returned) != len(numbers):
            given = (
                f"{describe(returned)} of {len(returned)}" if isinstance(returned, tuple | list) else describe(returned)
            )
            problem = f"the backward rule returns {given}, and must return a tuple of {len(numbers)}"
            raise rules.VJP_RULE_RESULT.error(transform=transform, problem=problem)
        found: dict[int, Any] = {}
        given_before: set[int] = set()
        for number, cotangent in zip(numbers, returned, strict=True):
            if cotangent is None:
                continue
            try:
                parts = self.treedefs[number].flatten_up_to(cotangent)
            except (ValueError, TypeError) as error:
                problem = str(error).partition("\n")[0]
                raise rules.VJP_COTANGENT.error(transform=transform, path=("args", number), problem=problem) from None
            for leaf, part in zip(self.leaves[number], parts, strict=True):
                for place, value in self.of_leaf(leaf, part, given_before).items():
                    found[place] = value if place not in found else jax.tree.map(jnp.add, found[place], value)
                given_before.update(leaf.places)
        return found

    def of_leaf(self, leaf: _Leaf, part: Any, given_before: set[int]) -> dict[int, Any]:
        """The cotangents of a leaf of an argument, by places."""
        if part is None:
            return {}
        transform = self.lift.modes.transform
        by_path: dict[Path, Any] | None = {(): part} if leaf.mark == BARE else _by_path(part)
        if by_path is None:
            problem = f"it is {describe(part)}, and must be a State or an object of the argument's type"
            raise rules.VJP_COTANGENT.error(transform=transform, path=leaf.name, problem=problem)
        unknown = [path for path in by_path if path not in leaf.paths]
        if unknown:
            problem = f"there is no `{format_path((*leaf.name, *unknown[0]))}`"
            raise rules.VJP_COTANGENT.error(transform=transform, path=leaf.name, problem=problem)
        found = {}
        for path, place in zip(leaf.paths, leaf.places, strict=True):
            if self.labels[place] != DIFFERENTIATED or not _has_content(self.types[place]):
                continue
            name = (*leaf.name, *path)
            if path in by_path:
                if not is_of_type(by_path[path], self.types[place]):
                    problem = f"it is {_show(by_path[path])}, and must be {_show(self.types[place])}"
                    raise rules.VJP_COTANGENT.error(transform=transform, path=name, problem=problem)
                found[place] = by_path[path]
            elif self.is_variable(place) and place not in given_before:
                problem = "there is none; return zeros, or `None` for the whole argument"
                raise rules.VJP_COTANGENT.error(transform=transform, path=name, problem=problem)
        return found

    def is_variable(self, place: int) -> bool:
        leaf_types = self.lift.structure.program.leaf_types
        return place < len(leaf_types) and leaf_types[place] is not None


def _by_path(part: Any) -> dict[Path, Any] | None:
    """The values of a State or graph object by path."""
    if isinstance(part, State):
        paths, leaves = part.flat_items()
    elif is_object(part):
        plan = plan_of(part)
        paths, leaves = plan.paths, plan.leaves()
    else:
        return None
    values = [leaf._raw_value if isinstance(leaf, Variable) else leaf for leaf in leaves]
    return dict(zip(paths, values, strict=True))


def _as_objects(result: Result, values: Sequence[Any]) -> Any:
    """The cotangent of a result, as objects."""
    root, count = Root((), ()), 0
    if result.objects is not None:
        program = program_of(result.objects.graphdef)
        count = len(program.paths)
        root = Root.from_node(program.build(values[:count])[program.root], result.pytrees)
    return unflatten(result.treedef, result.marks, root.pytrees, root.variables, values[count:])


def _as_states(result: Result, values: Sequence[Any]) -> Any:
    """The cotangent of a result, with States for its Pytrees. Those of objects of the inputs are with the inputs."""
    pytrees, variables = (
        [number for number, own in enumerate(result.marks) if own == mark] for mark in (PYTREE, VARIABLE)
    )
    found: dict[int, dict[Path, Any]] = {number: {} for number in (*pytrees, *variables)}
    count = 0
    if result.objects is not None:
        program = program_of(result.objects.graphdef)
        count = len(program.paths)
        for path, leaf_type, value in zip(program.paths, program.leaf_types, values[:count], strict=True):
            number, below = split_path(path, pytrees, variables)
            found[number][below] = (
                value if leaf_type is None else leaf_type.cls.from_metadata(value, leaf_type.metadata)
            )
    states = [State.from_sorted(tuple(found[number]), list(found[number].values())) for number in pytrees]
    return unflatten(
        result.treedef, result.marks, states, [found[number].get(()) for number in variables], values[count:]
    )


def _zeros(type_: Any) -> Any:
    """Zeros of a shape and dtype."""
    zeros = np.zeros if type_.dtype == jax.dtypes.float0 else jnp.zeros
    return zeros(type_.shape, type_.dtype)


def _instantiate(cotangent: Any) -> Any:
    """A cotangent with zeros in full."""
    return _zeros(cotangent) if isinstance(cotangent, jax.custom_derivatives.SymbolicZero) else cotangent


def _has_content(type_: Any) -> bool:
    return any(leaf.dtype != jax.dtypes.float0 for leaf in jax.tree.leaves(type_))


def _show(value: Any) -> str:
    return str(jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", jax.tree.map(tangent_type, value)))


@overload
def custom_vjp(
    fun: Callable[P, R],
    *,
    nondiff_argnums: Sequence[int | DiffState] = ...,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> CustomVjpFunction[P, R]: ...
@overload
def custom_vjp(
    *, nondiff_argnums: Sequence[int | DiffState] = ..., graph: bool | None = None, graph_updates: bool | None = None
) -> Callable[[Callable[P, R]], CustomVjpFunction[P, R]]: ...
def custom_vjp(
    fun: Callable[..., Any] = MISSING,
    *,
    nondiff_argnums: Sequence[int | DiffState] = (),
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Any:
    """Give a function a derivative of its own, as ``jax.custom_vjp``, for objects.

    Args:
        fun: the function; without it a decorator.
        nondiff_argnums: positions of arguments that are not differentiated; the backward rule gets them first, as they
            are. A `DiffState` says which part of a module is differentiated; the rest is not.
        graph: graph or tree mode; ``None`` for the one in force.
        graph_updates: whether changes of structure come back; ``None`` for the setting in force.

    Returns:
        a function whose method ``defvjp(fwd, bwd)`` defines the derivative, see `CustomVjp.defvjp`.

    Raises:
        TransformArgumentError: at a call, if there are no rules.
        TransformTypeError: where it is differentiated, if what the rules return does not fit.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> @nnx.custom_vjp(graph_updates=False)
    ... def clipped(v, x):
    ...     return v * x
    >>> def backward(residuals, g):
    ...     v, x = residuals
    ...     return nnx.Param(jnp.clip(g * x, -1, 1)), g * v
    >>> clipped.defvjp(lambda v, x: (v * x, (v[...], x)), backward)
    >>> float(nnx.grad(clipped)(nnx.Param(jnp.array(2.0)), 5.0))
    1.0
    """
    return wrap("nnx.custom_vjp", CustomVjp, fun, CustomVjpOptions(tuple(nondiff_argnums)), graph, graph_updates)
