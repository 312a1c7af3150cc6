"""``nnx.jit``: ``jax.jit`` for functions of objects, at its speed.

Invariants

- One compiled function for each structure of the inputs (`Inputs.key`), made by ``jax.jit`` over lists of values. A
  call with known structure gathers the values, runs that, and writes back what the trace saw written.
- JAX traces only during a call, so the trace takes the objects from the call that is running in this thread.
- A static argument is part of the pytree structure of the arguments, and so of the key.
- What is donated comes back: a donated Variable that the function did not write is returned as it is, because its
  buffer is gone.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, overload

import jax

from nnx_rules.records import Record
from nnx_rules.rules import transforms as rules
from nnxkit._facts import describe
from nnxkit._state._order import Path
from nnxkit._transforms._inner import ONE_GROUP, Labels, Modes
from nnxkit._transforms._inputs import Key, is_object, replaced
from nnxkit._transforms._kept import Running, Structures
from nnxkit._transforms._lift import Groups, Lift, abstract_result
from nnxkit._transforms._outcome import Outcome, apply
from nnxkit._transforms._places import returned_names
from nnxkit._transforms._prefixes import Prefixes, PrefixLabels, label_inputs
from nnxkit._transforms._recent import Recent
from nnxkit._transforms._signatures import JittedFunction, P, R
from nnxkit._transforms._wrapper import MISSING, Transformed, wrap


@jax.tree_util.register_static
class StaticArgument:
    """An argument that is part of the structure."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticArgument) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


class Selection(NamedTuple):
    """Arguments by position and by name, as the options of ``jax.jit`` give them."""

    argnums: Any
    argnames: Any

    def resolve(self, f: Callable[..., Any], option: str, transform: str) -> tuple[frozenset[int], frozenset[str]]:
        """Positions and names; where only one is given, the signature says the other. Negative positions count from
        the last parameter.

        Raises:
            TransformArgumentError: the function has no such parameter.
        """
        numbers = () if self.argnums is None else self.argnums
        names = () if self.argnames is None else self.argnames
        found_numbers = {numbers} if isinstance(numbers, int) else set(numbers)
        found_names = {names} if isinstance(names, str) else set(names)
        if not found_numbers and not found_names:
            return frozenset(), frozenset()
        try:
            parameters = list(inspect.signature(f).parameters.values())
        except (TypeError, ValueError):  # a builtin without signature
            return frozenset(found_numbers), frozenset(found_names)
        kinds = {item.kind for item in parameters}
        positional = [
            item.name for item in parameters if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)
        ]
        known = {item.name for item in parameters}
        unknown = [
            repr(name) for name in found_names if name not in known and inspect.Parameter.VAR_KEYWORD not in kinds
        ]
        if inspect.Parameter.VAR_POSITIONAL not in kinds:
            unknown += [str(place) for place in found_numbers if not -len(positional) <= place < len(positional)]
        if unknown:
            raise rules.MISSING_PARAMETER.error(transform=transform, option=option, given=" and ".join(unknown))
        found_numbers = {number % len(positional) if number < 0 and positional else number for number in found_numbers}
        if self.argnames is None:
            found_names = {positional[number] for number in found_numbers if number < len(positional)}
        if self.argnums is None:
            found_numbers = {positional.index(name) for name in found_names if name in positional}
        return frozenset(found_numbers), frozenset(found_names)


class JitOptions(Record):
    """Options of ``nnx.jit``. What ``jax`` holds goes to ``jax.jit`` as it is."""

    in_shardings: Any
    out_shardings: Any
    static: Selection
    donated: Selection
    jax: dict[str, Any]


_running = Running()


class Jitted(Transformed):
    """A function under ``nnx.jit``."""

    options: JitOptions
    prefix_options = ("in_shardings", "out_shardings")

    def __init__(self, f: Callable[..., Any], options: JitOptions, modes: Modes) -> None:
        super().__init__(f, options, modes)
        self.static = options.static.resolve(f, "static", modes.transform)
        self.donated = options.donated.resolve(f, "donated", modes.transform)
        self.compiled: Structures[CompiledStructure] = Structures()
        self.recent: tuple[Recent, CompiledStructure] | None = None

    def __nnx_rewrap__(self, f: Callable[..., Any]) -> Self:
        """The same transform of the same function over other captures, with the same compiled functions."""
        other = super().__nnx_rewrap__(f)
        other.compiled = self.compiled
        return other

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        lift = self.lift(args, kwargs)
        return self.compiled_for(lift).call(lift)

    def lift(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lift:
        """The call with these arguments."""
        numbers, names = self.static
        if numbers or names:
            args = tuple(self.as_static(place, item) if place in numbers else item for place, item in enumerate(args))
            kwargs = {name: self.as_static(name, item) if name in names else item for name, item in kwargs.items()}
        return Lift(self.modes, (args, kwargs), self.function)

    def as_static(self, argument: int | str, value: Any) -> StaticArgument:
        """An argument as part of the structure.

        Raises:
            TransformArgumentError: it has no hash, or is a graph object, whose state would be a constant.
        """
        if is_object(value) or not _is_hashable(value):
            raise rules.UNHASHABLE_STATIC_ARGUMENT.error(
                transform=self.modes.transform, argument=repr(argument), given=describe(value)
            )
        return StaticArgument(value)

    def compiled_for(self, lift: Lift) -> CompiledStructure:
        """The compiled function for the structure of a call."""
        recent = self.recent
        if recent is not None and recent[0].recognises(lift.inputs):
            return recent[1]
        key = lift.inputs.key()
        compiled = self.compiled.find(key, lambda: self.compile(lift))
        if not lift.inputs.root.variables and _is_hashable(key):
            self.recent = Recent(lift.inputs), compiled
        return compiled

    def compile(self, lift: Lift) -> CompiledStructure:
        """A compiled function for the structure of a call."""
        return CompiledStructure(self, lift)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Lower the function for these arguments, as ``jax.jit(f).lower``."""
        lift = self.lift(args, kwargs)
        compiled = self.compiled_for(lift)
        return Lowered(self, lift.inputs.key(), compiled, compiled.stage("lower", lift))

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace the function for these arguments, as ``jax.jit(f).trace``."""
        lift = self.lift(args, kwargs)
        compiled = self.compiled_for(lift)
        return Traced(self, lift.inputs.key(), compiled, compiled.stage("trace", lift))

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """What the function would return for these arguments, with ``jax.ShapeDtypeStruct`` in the place of arrays."""
        lift = self.lift(args, kwargs)
        groups, outcome = self.compiled_for(lift).stage("eval_shape", lift)
        return abstract_result(lift, groups, outcome)

    def clear_cache(self) -> None:
        """Forget all compiled functions."""
        for compiled in self.compiled:
            compiled.function.clear_cache()
        self.recent = None
        self.compiled.clear()


class CompiledStructure:
    """``jax.jit`` of a function over lists of values, for one structure of inputs.

    Args:
        jitted: the function over objects.
        lift: a call with that structure.
    """

    def __init__(self, jitted: Jitted, lift: Lift) -> None:
        tree = lift.inputs.tree
        self.labels: Labels = ONE_GROUP
        self.donated: list[int] = []
        self.kept: list[int] | None = None
        numbers, names = jitted.donated
        count = lift.num_leaves
        if numbers or names:
            marks = tuple(place in numbers for place in range(len(tree[0]))), {name: name in names for name in tree[1]}
            found = label_inputs(lift.inputs, Prefixes("donate_argnums", marks, tree, lift.modes), False)
            self.donated = [place for place, donated in enumerate(found) if donated]
            self.kept = [place for place, donated in enumerate(found) if not donated]
        self.always = frozenset(place for place in self.donated if place < count)
        pure = functools.partial(self.run)
        pure.__name__ = getattr(jitted.function.f, "__name__", "function")  # type: ignore[attr-defined] # for profiles
        self.function = self.transform(pure, jitted.options, lift)

    def transform(self, pure: Callable[..., Any], options: Any, lift: Lift) -> Any:
        """What JAX makes of the function over lists of values."""
        tree = lift.inputs.tree
        jax_options = dict(options.jax)
        if self.kept is not None:
            jax_options["donate_argnums"] = (1,)
        if options.in_shardings is not None or options.out_shardings is not None:
            prefixes = Prefixes("in_shardings", (_shardings(options.in_shardings, tree[0]), None), tree, lift.modes)
            found = label_inputs(lift.inputs, prefixes, None)
            # What gets a sharding has it afterwards, too.
            self.always |= {place for place, label in enumerate(found[: lift.num_leaves]) if label is not None}
            labels = self.labels = PrefixLabels(
                lift.inputs, found, prefixes, None, "out_shardings", options.out_shardings
            )
            jax_options["in_shardings"] = self.split(found)
            jax_options["out_shardings"] = (labels.groups, None)
        return jax.jit(pure, **jax_options)

    def split(self, values: list[Any]) -> tuple[list[Any], list[Any]]:
        """Values by whether they are donated."""
        if self.kept is None:
            return values, []
        return [values[place] for place in self.kept], [values[place] for place in self.donated]

    def run(self, kept: Sequence[Any], donated: Sequence[Any]) -> tuple[Groups, Outcome]:
        """What JAX traces."""
        values = list(kept)
        if self.kept is not None:
            values = replaced([None] * (len(kept) + len(donated)), (*self.kept, *self.donated), (*kept, *donated))
        return self.run_lifted(_running.calls[-1], values)

    def run_lifted(self, lift: Lift, values: Sequence[Any]) -> tuple[Groups, Outcome]:
        """Run the function on the values of a call."""
        groups, outcome = lift.run(values, self.labels, call=call_with_static, always=self.always)
        found = _find_no_array(outcome.values(groups))
        if found is not None:
            raise _no_array(lift, returned_names(lift.structure, outcome)[found[0]], found[1])
        return groups, outcome

    def call(self, lift: Lift) -> Any:
        """Call the function on objects."""
        values = lift.inputs.values()
        groups, outcome = self.on_values(self.function, lift, values)
        # The old values are held until all are replaced: to free them one by one meanwhile takes longer.
        return apply(lift.inputs, outcome, groups)

    def stage(self, method: str, lift: Lift) -> Any:
        """Call a method of ``jax.jit``'s result with the values of a call."""
        return self.on_values(getattr(self.function, method), lift, lift.inputs.values())

    def on_values(self, function: Callable[..., Any], lift: Lift, values: list[Any]) -> Any:
        """Call a function with the values of a call, which is the running one meanwhile."""
        kept, donated = self.split(values)
        calls = _running.calls
        calls.append(lift)
        try:
            return function(kept, donated)
        except TypeError as error:
            found = _find_no_array(values)
            if found is None:
                raise
            raise _no_array(lift, lift.name_of(found[0]), found[1]) from error
        finally:
            calls.pop()


def _shardings(prefix: Any, args: tuple[Any, ...]) -> Any:
    """The shardings of the positional arguments, with ``None`` for static ones: JAX wants these left out."""
    if not isinstance(prefix, tuple):
        return tuple(prefix for _ in args)
    dynamic = [place for place, arg in enumerate(args) if not isinstance(arg, StaticArgument)]
    if len(prefix) == len(args) or len(prefix) != len(dynamic):
        return prefix
    return tuple(replaced([None] * len(args), dynamic, prefix))


def _find_no_array(values: Sequence[Any]) -> tuple[int, Any] | None:
    """The first leaf that JAX cannot take, with the number of its value."""
    for number, value in enumerate(values):
        for leaf in jax.tree.leaves(value):
            if not _is_array(leaf):
                return number, leaf
    return None


def _no_array(lift: Lift, path: Path, leaf: Any) -> Exception:
    error: Exception = rules.NOT_AN_ARRAY.error(transform=lift.modes.transform, path=path, given=describe(leaf))
    return error


def call_with_static(f: Callable[..., Any], tree: tuple[Any, Any]) -> Any:
    args, kwargs = tree
    return f(
        *[item.value if type(item) is StaticArgument else item for item in args],
        **{name: item.value if type(item) is StaticArgument else item for name, item in kwargs.items()},
    )


def _is_array(value: Any) -> bool:
    try:
        jax.typeof(value)
    except TypeError:
        return False
    return True


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


class _Stage:
    """A stage of compilation over objects; everything else is that of the stage of ``jax.jit``.

    Args:
        jitted: the function.
        key: the structure that it is for.
        compiled: the function for that structure.
        stage: what JAX has of it.
        given: first arguments that a call of the compiled function leaves out.
    """

    def __init__(
        self, jitted: Jitted, key: Key, compiled: CompiledStructure, stage: Any, given: tuple[Any, ...] = ()
    ) -> None:
        self._jitted = jitted
        self._key = key
        self._compiled = compiled
        self._stage = stage
        self._given = given

    def with_given(self, given: tuple[Any, ...]) -> Self:
        """The same stage, with the first arguments given once and for all."""
        return type(self)(self._jitted, self._key, self._compiled, self._stage, given)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._stage, name)


class Traced(_Stage):
    """A traced function: ``nnx.jit(f).trace(...)``."""

    def lower(self, **options: Any) -> Lowered:
        """Lower it."""
        return Lowered(self._jitted, self._key, self._compiled, self._stage.lower(**options), self._given)


class Lowered(_Stage):
    """A lowered function: ``nnx.jit(f).lower(...)``."""

    def compile(self, *args: Any, **options: Any) -> Compiled:
        """Compile it."""
        stage = self._stage.compile(*args, **options)
        return Compiled(self._jitted, self._key, self._compiled, stage, self._given)


class Compiled(_Stage):
    """A compiled function: it takes objects of the structure that it was lowered for, and changes them as the function
    does.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        lift = self._jitted.lift((*self._given, *args), kwargs)
        if lift.inputs.key() != self._key:
            raise rules.COMPILED_FOR_OTHER_STRUCTURE.error(transform=lift.modes.transform)
        groups, outcome = self._compiled.on_values(self._stage, lift, lift.inputs.values())
        return apply(lift.inputs, outcome, groups)


@overload
def jit(
    fun: Callable[P, R],
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> JittedFunction[P, R]: ...
@overload
def jit(
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Callable[[Callable[P, R]], JittedFunction[P, R]]: ...
def jit(
    fun: Callable[..., Any] = MISSING,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
    graph: bool | None = None,
    graph_updates: bool | None = None,
) -> Any:
    """Compile a function that works on objects, as ``jax.jit`` does for arrays.

    Modules and Variables may be arguments or captured; what the function does to them is done to the caller's objects.
    A call with the same structure, shapes and dtypes as an earlier one is not traced again, whatever the values are.

    Args:
        fun: the function; without it a decorator.
        in_shardings: shardings of the arguments, as for ``jax.jit``; for a graph object also a `nnx.StateSharding`.
        out_shardings: shardings of the result.
        static_argnums: positions of arguments that are part of the compiled function; they must be hashable.
        static_argnames: names of such arguments.
        donate_argnums: positions of arguments whose buffers may be used for the results.
        donate_argnames: names of such arguments.
        keep_unused: as for ``jax.jit``.
        device: as for ``jax.jit``.
        backend: as for ``jax.jit``.
        inline: as for ``jax.jit``.
        compiler_options: as for ``jax.jit``.
        graph: graph or tree mode; ``None`` for the one in force.
        graph_updates: whether changes of structure come back; ``None`` for the setting in force.

    Raises:
        TransformArgumentError: at a call, if a prefix does not fit, or a static argument has no hash.
        TransformTypeError: at a call, if a value is no array.
        TraceContextError: the function changes an object of another trace level.

    >>> import jax.numpy as jnp, nnxkit as nnx
    >>> count = nnx.Variable(jnp.array(0))
    >>> @nnx.jit
    ... def up(x):
    ...     count[...] += 1
    ...     return x * count
    >>> float(up(2.0)), float(up(2.0)), int(count[...])
    (2.0, 4.0, 2)
    """
    given = {"keep_unused": keep_unused, "device": device, "backend": backend, "inline": inline}
    jax_options = {name: value for name, value in given.items() if value}
    if compiler_options is not None:
        jax_options["compiler_options"] = compiler_options
    options = JitOptions(
        in_shardings,
        out_shardings,
        Selection(static_argnums, static_argnames),
        Selection(donate_argnums, donate_argnames),
        jax_options,
    )
    return wrap("nnx.jit", Jitted, fun, options, graph, graph_updates)
