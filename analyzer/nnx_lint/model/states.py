"""Abstract values that stand for what an object holds: its State and its structure, a part of it, what a derivative or
a transformation of optax makes of it, what a module has sown; and records of other libraries that hold such values.

Invariant: such a value keeps the one that it is made ``of``, which may be unknown: what holds of it is decided there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.values import MAX_NESTING, ClassVal, Const, Obj, Other, ParameterVal, Unknown, Value
from nnx_rules.attributes import Kind, ValueFacts

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping

    from nnx_lint.model.classes import ClassBase


class PartVal(Unknown):
    """Something with the Variables of an object, of which nothing else is known: what a State holds of an object in
    the one it is of, or what the program asked the type of.
    """

    __slots__ = ("of",)

    def __init__(self, of: Value) -> None:
        self.of = of


class GradientVal(Unknown):
    """What a derivative of a function is with respect to a value of which nothing is known, or what has been made of a
    derivative leaf by leaf. ``like`` is the State that it has the structure of, where one is known; ``beside`` are the
    arguments that the function was not differentiated by; ``made`` is what each leaf was made, if it was.
    """

    __slots__ = ("beside", "like", "made", "of")

    def __init__(
        self, of: Value, like: StateVal | None = None, beside: tuple[Value, ...] = (), made: Value | None = None
    ) -> None:
        self.of = of
        self.like = like
        self.beside = beside
        self.made = made

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        return Kind.UNKNOWN if self.like is None else self.like.kind

    def facts(self, depth: int = MAX_NESTING) -> ValueFacts:
        return ValueFacts(self.kind) if self.like is None else self.like.facts(depth)

    def describe(self) -> str:
        return "a value" if self.like is None else self.like.describe()


class TransformationVal(Other):
    """What a function of optax makes: a gradient transformation, or a schedule, which is only part of one.

    ``maker`` is the name of the function, where the value is its very result, and ``asks`` are the names of what each
    update of it needs besides the gradients. ``rough`` says that it only puts gradients into another form, and nothing
    makes steps of them that go down; of a schedule, that it gives no negative numbers. ``trees`` are what it, and those
    that it is made of, were given for the tree of the parameters: the function, the parameter, the value. ``keeps``
    says that it keeps arrays for the parameters.
    """

    __slots__ = ("asks", "keeps", "maker", "rough", "schedule", "trees")

    def __init__(
        self,
        *,
        schedule: bool = False,
        maker: str = "",
        asks: tuple[str, ...] = (),
        rough: bool = False,
        trees: tuple[tuple[str, str, Value], ...] = (),
        keeps: bool = False,
    ) -> None:
        super().__init__("an optax schedule" if schedule else "an optax transformation")
        self.schedule = schedule
        self.maker = maker
        self.asks = asks
        self.rough = rough
        self.trees = trees
        self.keeps = keeps


class OptStateVal(Unknown):
    """The state of an optax transformation for what it is ``of``: a tuple, which holds data if it ``keeps`` arrays for
    the parameters.
    """

    __slots__ = ("keeps", "of")

    kind = Kind.CONTAINER

    def __init__(self, of: Value, *, keeps: bool) -> None:
        self.of = of
        self.keeps = keeps

    def describe(self) -> str:
        return "the state of an optax transformation"

    def facts(self, depth: int = MAX_NESTING) -> ValueFacts:
        return ValueFacts(Kind.CONTAINER, holds_data=True if self.keeps else None)


class GraphDefVal(Value):
    """The GraphDef of an object."""

    __slots__ = ("of",)
    kind = Kind.OTHER

    def __init__(self, of: Value) -> None:
        self.of = of


class StateVal(Value):
    """A State of an object; ``level`` is the level of the Variables in it, ``wanted`` the filter that took them,
    ``after`` those that took theirs before it, ``before`` the State that it was on the other side of a transform. Of
    gradients, ``beside`` are the arguments that the function was not differentiated by. ``made`` is what a function
    made of each leaf, if one did.
    """

    __slots__ = ("after", "before", "beside", "level", "made", "of", "wanted")
    kind = Kind.CONTAINER

    def __init__(self, of: Value, level: int, wanted: Value | None = None, before: StateVal | None = None) -> None:
        self.of = of
        self.level = level
        self.wanted = wanted
        self.before = before
        self.after: tuple[Value | None, ...] = ()
        self.beside: tuple[Value, ...] = ()
        self.made: Value | None = None

    def again(self, level: int, of: Value | None = None, before: StateVal | None = None) -> StateVal:
        """Such a State at another level, or of another object."""
        other = StateVal(of if of is not None else self.of, level, self.wanted, before)
        other.made = self.made
        other.after = self.after
        return other

    def facts(self, depth: int = MAX_NESTING) -> ValueFacts:
        from nnx_lint.model.leaves import holds_parameters

        known = self._has_parameters() and (_is_any_model(self.of) or holds_parameters(self.of, depth))
        return ValueFacts(Kind.CONTAINER, holds_data=True if known else None)

    def _has_parameters(self) -> bool:
        """Whether the parameters of the object are in it: its filter takes them, or the rest of what others took."""
        if isinstance(self.wanted, Const) and self.wanted.value is ...:
            return all(isinstance(other, ClassVal) and not _takes_parameters(other.cls) for other in self.after)
        return self.wanted is None or (
            isinstance(self.wanted, ClassVal)
            and getattr(self.wanted.cls, "canonical", "") in {"nnx.Param", "nnx.Variable"}
        )

    def describe(self) -> str:
        return "a State"


def _takes_parameters(cls: ClassBase) -> bool:
    """Whether a class may take parameters, as a filter."""
    kind = cls.derives_from("nnx.Variable") and getattr(cls, "canonical", "") != "nnx.Variable"
    return not kind or cls.derives_from("nnx.Param")


def _is_any_model(value: Value) -> bool:
    """Whether an object comes from a caller, for whom it is some model: nobody keeps the State of one that is empty."""
    if isinstance(value, Obj):
        return value.assumed and value.cls.derives_from("nnx.Module")
    return isinstance(value, ParameterVal)


class ForeignVal(Value):
    """An instance of a class of another library, by the canonical name of the class.

    ``held`` are the attributes of a record that are what its maker was given, ``plain`` says that its maker was given
    nothing that says how it works.
    """

    __slots__ = ("held", "name", "plain")

    def __init__(self, name: str, held: Mapping[str, Value] | None = None, *, plain: bool = False) -> None:
        self.name = name
        self.held: Mapping[str, Value] = held if held is not None else {}
        self.plain = plain

    def describe(self) -> str:
        return f"an instance of `{self.name}`"


class RawTree(Unknown):
    """What Orbax restores where nothing says what it is to be like: dicts, with what was saved as their leaves."""

    __slots__ = ("node",)

    def __init__(self, node: ast.AST) -> None:
        self.node = node


class SownVal(Unknown):
    """What a State holds of a value that a module sows under a name: a Variable with a tuple of all that was sown."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name
