"""Abstract values: what the interpreter knows of a value without running the program.

Invariants:

* :data:`UNKNOWN` is a value like any other, and the answer whenever a fact is not certain; nothing may be concluded
  from it;
* an abstract object (:class:`Obj`) is created once per place and interpretation and compared by identity, so aliases
  are seen: two names for one model are one :class:`Obj`;
* every object that NNX tracks by trace carries the *level* of the trace it was created in (0 outside all transforms).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model import heap
from nnx_rules.attributes import Kind, Status, Tag, ValueFacts

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterable, Mapping

    from nnx_lint.model.classes import ClassBase
    from nnx_lint.model.forms import Step
    from nnx_lint.model.modules import Env, Module
    from nnx_rules.registry import Rule
    from nnx_rules.shapes import Form
    from nnx_rules.sizes import Size

MAX_NESTING = 8
"""How deep containers are looked into: a list may hold itself, and the same list many times over."""


class Value:
    """Base of all abstract values; by itself an unknown one."""

    __slots__ = ()

    kind: Kind = Kind.UNKNOWN
    symbol: Size | None = None
    """The number that it is, by the names of others (:mod:`nnx_lint.model.symbols`)."""

    def describe(self) -> str:
        """A noun phrase for messages: "a list of Linear"."""
        return "a value"

    def facts(self, depth: int = MAX_NESTING) -> ValueFacts:
        """The facts that decide an attribute's status; what is nested deeper than ``depth`` is unknown."""
        return ValueFacts(self.kind)

    def element_facts(self, depth: int = MAX_NESTING) -> ValueFacts:
        """The same of an element of a container."""
        return self.facts(depth)


class Unknown(Value):
    """Nothing is known."""

    __slots__ = ()


UNKNOWN = Unknown()


class ParameterVal(Unknown):
    """What a caller gives for a parameter: nothing is known of it, but that it is given if it is ``required``."""

    __slots__ = ("name", "required")

    def __init__(self, name: str, required: bool) -> None:
        self.name = name
        self.required = required


class ParameterFlag(ParameterVal):
    """A parameter that is ``True`` or ``False`` where nobody gives another value: whoever does gives a flag, too."""

    __slots__ = ()


class VariableVal(Unknown):
    """A Variable, since the program asked whether it is one: where it came from, and its type, are not known."""

    __slots__ = ()
    kind = Kind.VARIABLE

    def describe(self) -> str:
        return "a Variable"


SOME_VARIABLE = VariableVal()


class MemberVal(VariableVal):
    """A Variable that a layer has unless an option leaves it out, which is not known: then it is ``None``."""

    __slots__ = ()
    kind = Kind.UNKNOWN


class Quotient(Unknown):
    """What ``/`` or a factor with a fraction gives: if it is one number, then none that counts elements."""

    __slots__ = ()


class NumpyInteger(Unknown):
    """A part of a numpy array of whole numbers: one of them, which is no ``int``, or several."""

    __slots__ = ()


class NumpyNumber(NumpyInteger):
    """One of them."""

    __slots__ = ()


class NumpyScalar(Unknown):
    """What numpy makes of a whole array, such as its mean: one number, of which nothing else is known."""

    __slots__ = ()


class Const(Value):
    """A literal: number, string, bool, ``None``, ``...``."""

    __slots__ = ("value",)
    kind = Kind.OTHER

    def __init__(self, value: object) -> None:
        self.value = value

    def describe(self) -> str:
        return "None" if self.value is None else f"the {type(self.value).__name__} {self.value!r}"


NONE = Const(None)


class Computed(Const):
    """A number that the program computes from literals.

    It is a size like any other, and decides no condition: what it comes from may be counted up where nobody looks.
    """

    __slots__ = ()


class Other(Value):
    """A value that certainly is one leaf and no data: a number, a string, a dtype, a function of a library."""

    __slots__ = ("what",)
    kind = Kind.OTHER

    def __init__(self, what: str = "a plain value") -> None:
        self.what = what

    def describe(self) -> str:
        return self.what


class ParameterNumber(Other):
    """A number or another plain value that a caller gives for the parameter of this name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__("a plain value")
        self.name = name


class Cut(Other):
    """A slice as an index. ``bounds`` are its start, stop and step: a number, what one is by name, ``None``, or ``...``
    if unknown.
    """

    __slots__ = ("bounds",)

    def __init__(self, bounds: tuple[object, ...]) -> None:
        super().__init__("a slice")
        self.bounds = bounds


WHOLE = Cut((None, None, None))
NUMBER = Other("a number")
FRACTION = Other("a number with a fraction")
FLOAT = Other("a float")
SHAPE = Other("a tuple of numbers")
STRING = Other("a string")


class VersionVal(Value):
    """The version of flax or jax, or something computed from it. It compares as the newest one does."""

    __slots__ = ()
    kind = Kind.OTHER


VERSION = VersionVal()


class Bound(NamedTuple):
    """The largest of the whole numbers in an array, which may be ``anywhere`` in it."""

    most: int
    anywhere: bool


class Array(Value):
    """A jax or numpy array, a tracer or a PRNG key.

    ``form`` is what is known of its shape and dtype, ``maker`` the layer that computed it: how the program names that,
    and where. ``squashed`` is the function that has made probabilities of it, ``bound`` how large its numbers are.
    """

    __slots__ = ("bound", "form", "level", "maker", "squashed")
    kind = Kind.ARRAY

    def __init__(self, level: int = 0, form: Form | None = None) -> None:
        self.level = level
        self.form = form
        self.maker: tuple[str, Module, ast.AST] | None = None
        self.squashed: str | None = None
        self.bound: Bound | None = None

    def describe(self) -> str:
        return "an array"


class HostArray(Array):
    """A numpy array. Its elements, and what is computed from it, may be numpy scalars, which are no data."""

    __slots__ = ()


class TakenArray(Array):
    """An array of which the size of the last axis is known from a layer that was called with it, the ``taker``: how the
    program names that, and where the array stands in the call. ``before`` is what was known without it.
    """

    __slots__ = ("before", "taker")

    def __init__(self, level: int = 0, form: Form | None = None) -> None:
        super().__init__(level, form)
        self.taker: tuple[str, Module, ast.AST] | None = None
        self.before: Value | None = None


class PartitionedArray(Array):
    """What an initializer with a sharding makes: the Variable that gets it is divided over a mesh like that."""

    __slots__ = ("sharding",)

    def __init__(self, level: int = 0, form: Form | None = None, sharding: Value = UNKNOWN) -> None:
        super().__init__(level, form)
        self.sharding = sharding


class ArrayAttr(Value):
    """A method of an array (``host``: of a numpy array), its ``.at``, or a method of that (``owner`` is "at"). ``part``
    is what is known of the elements that it is for.
    """

    __slots__ = ("array", "host", "level", "name", "owner", "part")

    def __init__(
        self, level: int, name: str, *, host: bool = False, owner: str = "", array: Array | None = None
    ) -> None:
        self.array = array
        self.level = level
        self.name = name
        self.host = host
        self.owner = owner
        self.part: Form | None = None


class Ext(Value):
    """A name of a library, by canonical dotted path: ``jax.numpy``, ``jax.jit``, ``nnx.split``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        return Kind.OTHER if self.name.split(".", 1)[0] in {"jax", "nnx", "optax", "builtins", "math"} else Kind.UNKNOWN

    def describe(self) -> str:
        return f"`{self.name}`"


class ModuleVal(Value):
    """A module of the project."""

    __slots__ = ("module",)
    kind = Kind.OTHER

    def __init__(self, module: Module) -> None:
        self.module = module


class ClassVal(Value):
    """A class, of the project or of the library."""

    __slots__ = ("cls",)
    kind = Kind.OTHER

    def __init__(self, cls: ClassBase) -> None:
        self.cls = cls

    def describe(self) -> str:
        return f"the class `{self.cls.name}`"


class AliasVal(Value):
    """A subscripted class: ``nnx.Param[jax.Array]``."""

    __slots__ = ("origin",)
    kind = Kind.OTHER

    def __init__(self, origin: ClassVal) -> None:
        self.origin = origin


class TypeVal(Value):
    """A type that is written as an expression, an alias that annotations name: ``Float[Array, "n"] | None``."""

    __slots__ = ("env", "module", "node")
    kind = Kind.OTHER

    def __init__(self, node: ast.expr, module: Module, env: Env) -> None:
        self.node = node
        self.module = module
        self.env = env


class UnionTypeVal(Value):
    """A union of types written as an expression: ``nnx.Param | nnx.BatchStat``."""

    __slots__ = ("members",)
    kind = Kind.OTHER

    def __init__(self, members: tuple[Value, ...]) -> None:
        self.members = members


class Assignment:
    """One assignment to an attribute: the value, the place, the branches that lead there, the rule that it breaks.

    ``doubtful`` says that an early return may have come before it.
    """

    __slots__ = ("branches", "broken", "doubtful", "module", "node", "status", "value", "value_node")

    def __init__(
        self,
        value: Value,
        status: Status,
        module: Module,
        node: ast.AST,
        value_node: ast.expr | None,
        branches: tuple[tuple[int, int], ...],
        broken: Rule | None = None,
    ) -> None:
        self.value = value
        self.status = status
        self.broken = broken
        self.doubtful = False
        self.module = module
        self.node = node
        self.value_node = value_node
        self.branches = branches

    def dominates(self, branches: tuple[tuple[int, int], ...]) -> bool:
        """Whether every path into those branches has executed this assignment (given that it is earlier)."""
        own = self.branches
        if not own:
            return True
        if len(own) > len(branches) or branches[len(own) - 1] != own[-1]:
            return False  # at once: in a long chain of `elif` there are as many branches
        return branches[: len(own)] == own

    def excludes(self, branches: tuple[tuple[int, int], ...]) -> bool:
        """Whether it lies in another arm of a branch that leads there, so that one run never sees both."""
        arms = dict(branches)
        return any(arms.get(node, arm) != arm for node, arm in self.branches)


class Attr:
    """What is known of one attribute: its assignments in order, its declared status, and its value now."""

    __slots__ = ("assignments", "declared", "value")

    def __init__(self, value: Value, declared: Status | None = None) -> None:
        self.value = value
        self.declared = declared
        self.assignments: tuple[Assignment, ...] = ()

    @property
    def first(self) -> Assignment | None:
        return self.assignments[0] if self.assignments else None


_VOWEL = re.compile(r"[AEIOUaeiou]|[FHLMNRSX](?![a-z])")
"""How a name begins that is spoken with a vowel first, also one that is spelled out: an MLP, an RNN, an LSTMCell."""


def with_article(name: str) -> str:
    """A name as a noun."""
    return f"{'an' if _VOWEL.match(name) else 'a'} {name}"


class Obj(Value):
    """An instance of a class.

    ``args`` are the constructor arguments by name where they are known (``None``: nothing is known of them), ``attrs``
    what has been assigned. ``level`` is the trace level it was created in. ``assumed`` says that only an annotation
    vouches for it: a test may pass a mock there. ``training`` is the mode of its layers: as they were constructed
    (``True``), switched to evaluation (``False``), or not known. ``leaf_level`` is the level of its Variables where it
    differs from the object's own (after a merge without a copy), that of its Params only with ``leaf_params``, and
    ``merged`` the States of that merge; ``gained`` is how many axes maps have given them since, if that is known, and
    ``extent`` how long their first one is where a map or a split made it. ``origin`` is the place that made it.
    ``bare`` says that only ``__new__`` has run. ``template`` is the instance of which this one is a copy as far as
    nothing else has been assigned, ``holder`` the copy it is in. ``binds`` are the arguments, by parameter, of the
    constructor that made it: among ``args`` may be such parameters. ``given`` remembers what
    :func:`~nnx_lint.model.forms.arguments_of` made of both, ``answered`` what ``called`` there said last.
    """

    __slots__ = (
        "answered",
        "args",
        "assumed",
        "attrs",
        "bare",
        "binds",
        "born",
        "cls",
        "constructing",
        "extent",
        "gained",
        "given",
        "holder",
        "leaf_level",
        "leaf_params",
        "level",
        "merged",
        "node",
        "origin",
        "sized",
        "template",
        "training",
    )

    def __init__(
        self, cls: ClassBase, level: int, args: dict[str, Value] | None = None, node: ast.AST | None = None
    ) -> None:
        self.born = heap.current
        self.cls = cls
        self.level = level
        self.args = args
        self.node = node
        self.attrs: dict[str, Attr] = {}
        self.bare = False
        self.binds: Mapping[str, Value] | None = None
        self.given: tuple[object, object, Mapping[str, Value]] | None = None
        self.answered: tuple[tuple[object, ...], tuple[Form | None, Step | None]] | None = None
        self.constructing = False
        self.assumed = False
        self.template: Obj | None = None
        self.holder: Obj | None = None
        self.sized = False
        self.training: bool | None = True
        self.leaf_level: int | None = None
        self.leaf_params = True
        self.gained: int | None = 0
        self.extent: int | None = None
        self.merged: tuple[Value | None, ...] = ()
        self.origin: tuple[Module, ast.AST] | None = None

    def another(self, level: int, template: Obj | None) -> Obj:
        """An object that was made as this one was. What has been assigned to it since is for the caller to say."""
        copy = Obj(self.cls, level, self.args, self.node)
        copy.assumed, copy.training, copy.origin = self.assumed, self.training, self.origin
        copy.binds, copy.gained, copy.extent, copy.template = self.binds, self.gained, self.extent, template
        return copy

    def saved(self) -> Callable[[], None]:
        attrs = {name: (attr, attr.value, attr.declared, attr.assignments) for name, attr in self.attrs.items()}
        restore = heap.restorer(
            self,
            level=self.level,
            args=self.args,
            bare=self.bare,
            constructing=self.constructing,
            assumed=self.assumed,
            template=self.template,
            training=self.training,
            leaf_level=self.leaf_level,
            leaf_params=self.leaf_params,
            gained=self.gained,
            extent=self.extent,
            merged=self.merged,
            origin=self.origin,
        )

        def restore_attributes() -> None:
            restore()
            self.attrs = {name: attr for name, (attr, *_) in attrs.items()}
            for attr, value, declared, assignments in attrs.values():
                attr.value, attr.declared, attr.assignments = value, declared, assignments

        return restore_attributes

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        if self.cls.is_variable:
            return Kind.VARIABLE
        if self.cls.is_pytree:
            return Kind.PYTREE
        if self.cls.registered_data:
            return Kind.REGISTERED
        # Where only an annotation vouches for it, it may be of a class below, which can be a Module.
        extended = self.assumed and self.cls.may_be_extended
        unknown = self.cls.is_open or self.cls.registered_container or self.cls.remade or extended
        return Kind.UNKNOWN if unknown else Kind.OTHER

    def facts(self, depth: int = MAX_NESTING) -> ValueFacts:
        parts = self.cls.parts_of(self.args) if self.args and depth else None
        return ValueFacts(self.kind) if parts is None else container_facts(parts, False, depth)

    def describe(self) -> str:
        return with_article(self.cls.name)


class TagVal(Value):
    """The result of ``nnx.data(v)`` or ``nnx.static(v)``; ``value`` is ``None`` without a positional argument."""

    __slots__ = ("keywords", "node", "tag", "value")

    def __init__(self, tag: Tag, value: Value | None, keywords: dict[str, Value], node: ast.Call) -> None:
        self.tag = tag
        self.value = value
        self.keywords = keywords
        self.node = node

    def facts(self, depth: int = MAX_NESTING) -> ValueFacts:
        if self.value is None:
            return ValueFacts(Kind.OTHER, self.tag)
        inner = self.value.facts(depth)
        return ValueFacts(inner.kind, self.tag, inner.holds_data, inner.all_tags)

    def describe(self) -> str:
        return self.value.describe() if self.value is not None else f"`nnx.{self.tag.value}()`"


class NamespaceVal(Value):
    """The dict of an object's attributes: ``obj.__dict__``, ``vars(obj)``."""

    __slots__ = ("of",)

    def __init__(self, of: Obj) -> None:
        self.of = of


class FieldVal(Value):
    """The result of ``dataclasses.field(...)``."""

    __slots__ = ("keywords", "node")

    def __init__(self, keywords: dict[str, Value], node: ast.Call) -> None:
        self.keywords = keywords
        self.node = node


def container_facts(items: Iterable[Value], shrunk: bool, depth: int) -> ValueFacts:
    """The facts of a container of these; one from which something was taken out (``shrunk``) may hold none of them."""
    if depth == 0:
        return ValueFacts(Kind.CONTAINER, holds_data=None)
    holds: bool | None = False
    tags: frozenset[Tag] = frozenset()
    for item in {id(item): item for item in items}.values():
        facts = item.element_facts(depth - 1)
        tags |= facts.all_tags
        if facts.is_data:
            holds = True
        elif facts.is_data is None and holds is False:
            holds = None
    return ValueFacts(Kind.CONTAINER, None, None if holds and shrunk else holds, tags)
