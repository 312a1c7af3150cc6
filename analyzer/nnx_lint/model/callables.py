"""Abstract functions: what can be called, and what a transform made of it.

Invariants: a function is compared by its syntax node, not by identity: executing a ``def`` twice gives two values of
one function. A transform that has no function yet and a function under a transform are values of their own, so that
decorators, calls and partials meet in one place.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.modules import Env
from nnx_lint.model.values import UNKNOWN, Array, ClassVal, Obj, PartitionedArray, Value
from nnx_lint.syntax.binding import assigned_names
from nnx_lint.syntax.parameters import names, positional_names
from nnx_lint.syntax.walk import walk
from nnx_rules.attributes import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nnx_lint.model.classes import ClassBase
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modes import Modes
    from nnx_lint.model.modules import Module
    from nnx_rules.transforms import Transform


PROPERTIES = frozenset({"property", "functools.cached_property", "abc.abstractproperty"})


class FuncVal(Value):
    """A function of the project: ``def``, ``async def`` or ``lambda``, with the scope that it closes over.

    ``wraps`` is the function that a decorator of the project put it in place of; one that is a property of its class
    may have a ``setter``. ``seen`` is what the names of the function around it stood for when it was defined.
    """

    __slots__ = ("cls", "decorators", "defaults", "env", "module", "node", "seen", "setter", "wraps")
    kind = Kind.OTHER

    def __init__(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        module: Module,
        env: object,
        cls: ClassBase | None = None,
    ) -> None:
        self.node = node
        self.module = module
        self.env = env
        self.cls = cls
        self.defaults: dict[str, Value] = {}
        self.seen: dict[str, Value] = {}
        self.decorators: tuple[str, ...] = ()
        self.setter: FuncVal | None = None
        self.wraps: Value | None = None

    def as_property(self, setter: FuncVal | None) -> FuncVal:
        """The property that this function gets, and another one sets."""
        made = FuncVal(self.node, self.module, self.env, self.cls)
        made.defaults = self.defaults
        made.decorators = self.decorators if self.is_property else (*self.decorators, "property")
        made.setter = setter
        return made

    @property
    def is_property(self) -> bool:
        return not PROPERTIES.isdisjoint(self.decorators)

    @property
    def is_static(self) -> bool:
        """Whether it is a static method, which gets what it is called with."""
        return self.decorators == ("staticmethod",)

    @property
    def key(self) -> object:
        """What tells the function from others: its syntax, and for a wrapper also which function it wraps."""
        return id(self.node) if self.wraps is None else (id(self.node), self.env)

    @property
    def wrapped(self) -> FuncVal:
        """The function that its author wrote, inside of all wrappers."""
        func = self
        while isinstance(func.wraps, FuncVal) and func.wraps is not self:
            func = func.wraps
        return func

    @property
    def name(self) -> str:
        return getattr(self.node, "name", "<lambda>")

    @property
    def expression(self) -> ast.expr | None:
        """What it returns, if it does nothing else."""
        body = self.node.body
        if not isinstance(body, list):
            return body
        return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None

    def describe(self) -> str:
        return "a lambda" if self.name == "<lambda>" else f"the function `{self.name}`"


class BoundMethod(Value):
    """A method of an object; ``func`` is ``None`` for methods of library classes."""

    __slots__ = ("func", "name", "receiver")

    def __init__(self, receiver: Value, name: str, func: Value | None = None) -> None:
        self.receiver = receiver
        self.name = name
        self.func = func

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        return Kind.OTHER if self.func is not None else Kind.UNKNOWN  # it may be an attribute that no table lists

    def describe(self) -> str:
        return f"the bound method `{self.name}`"


class LibraryFunction(Value):
    """A function that a library made: an initializer.

    ``result`` is the kind of what it returns, ``maker`` the canonical name of the function that made it.
    """

    __slots__ = ("maker", "result")
    kind = Kind.OTHER

    def __init__(self, result: str, maker: str = "") -> None:
        self.result = result
        self.maker = maker

    def returned(self, made: Value) -> Value:
        """What a call returns, of which the kind and the form are known."""
        return made

    def describe(self) -> str:
        return "a function of the library"


class ShardedInit(LibraryFunction):
    """An initializer that gives its Variable a sharding. One without a maker may make values of any dtype."""

    __slots__ = ("sharding",)

    def __init__(self, sharding: Value, maker: str) -> None:
        super().__init__("array", maker)
        self.sharding = sharding

    def returned(self, made: Value) -> Value:
        if not isinstance(made, Array):
            return made
        return PartitionedArray(made.level, made.form if self.maker else None, self.sharding)


class ContextVal(Value):
    """A context manager that a function of the project made by yielding once; ``entered`` is what it yields."""

    __slots__ = ("entered",)

    def __init__(self, entered: Value) -> None:
        self.entered = entered


class SuperVal(Value):
    """The result of ``super()``."""

    __slots__ = ("after", "receiver")

    def __init__(self, receiver: Obj, after: ClassBase) -> None:
        self.receiver = receiver
        self.after = after

    def method(self, name: str) -> BoundMethod | None:
        """The method of this name of the next class that has it."""
        from nnx_lint.model.classes import LibClass, UserClass

        ancestors = self.receiver.cls.ancestors
        start = next((i for i, item in enumerate(ancestors) if item is self.after), len(ancestors)) + 1
        for item in ancestors[start:]:
            if isinstance(item, UserClass):
                if name in item.methods:
                    return BoundMethod(self.receiver, name, item.methods[name])
                if name == "__init__" and item.own_dataclass:
                    return None
            elif isinstance(item, LibClass):
                return BoundMethod(self.receiver, name)
        return BoundMethod(self.receiver, name) if name == "__new__" else None


class PartialVal(Value):
    """``functools.partial(func, *args, **kwargs)``. ``opaque`` says that it is certainly not that of JAX, which is a
    tree.
    """

    __slots__ = ("args", "func", "keywords", "opaque")
    kind = Kind.OTHER

    def __init__(self, func: Value, args: Sequence[Value], keywords: dict[str, Value], *, opaque: bool = False) -> None:
        self.func = func
        self.args = list(args)
        self.keywords = keywords
        self.opaque = opaque

    def describe(self) -> str:
        return "a partial"


class TransformVal(Value):
    """A transform that has its options but not yet its function: ``nnx.jit(static_argnums=0)``, ``partial(jax.jit,
    ...)``. ``modes`` are those of NNX that it runs in, ``branches`` the arms that lead to the place that makes it.
    """

    __slots__ = ("branches", "keywords", "modes", "module", "node", "row", "text")
    kind = Kind.OTHER

    def __init__(
        self, row: Transform, text: str, keywords: dict[str, Value], node: ast.AST, frame: Frame, modes: Modes
    ) -> None:
        self.module: Module = frame.module
        self.branches = frame.branches
        self.modes = modes
        self.row = row
        self.text = text
        self.keywords = keywords
        self.node = node


class Transformed(Value):
    """A function under a transform of wrapper form."""

    __slots__ = ("applied", "func")
    kind = Kind.OTHER

    def __init__(self, applied: TransformVal, func: Value) -> None:
        self.applied = applied
        self.func = func

    def describe(self) -> str:
        return f"a function under `{self.applied.text}`"


CALLABLES = (FuncVal, BoundMethod, PartialVal, Transformed)


def hands_functions(receiver: Value | None, given: Iterable[Value | None]) -> bool:
    """Whether a call hands over functions, by its arguments or in an object that was made with them: a trainer that got
    a loss.
    """
    if any(isinstance(value, (*CALLABLES, ClassVal)) for value in given):
        return True
    made = receiver.args if isinstance(receiver, Obj) and not receiver.cls.tracked else None
    return made is not None and any(isinstance(value, CALLABLES) for value in made.values())


def is_closure(func: FuncVal) -> bool:
    """Whether a function was defined in another one."""
    scope = func.env
    while isinstance(scope, Env) and scope.kind == "class":
        scope = scope.parent
    return not isinstance(scope, Env) or scope.kind != "module"


def stands_for(wrapper: FuncVal | None, func: FuncVal, call: ast.AST | None) -> bool:
    """Whether a call in a function that a decorator put in place of another is all that it does to that one: it gets
    what the wrapper gets, and the wrapper returns what it gives.
    """
    if wrapper is None or not isinstance(wrapper.wraps, FuncVal) or wrapper.wraps.node is not func.node:
        return False
    return isinstance(call, ast.Call) and _is_handed_on(wrapper.node.args, call) and _is_returned(wrapper.node, call)


def _is_handed_on(parameters: ast.arguments, call: ast.Call) -> bool:
    """Whether a call passes all parameters of a function, in order, and nothing else."""
    own = [*positional_names(parameters), *([f"*{parameters.vararg.arg}"] if parameters.vararg is not None else [])]
    named: dict[str | None, str] = {item.arg: item.arg for item in parameters.kwonlyargs}
    if parameters.kwarg is not None:
        named[None] = parameters.kwarg.arg
    given = {item.arg: getattr(item.value, "id", "") for item in call.keywords}
    return [ast.unparse(item) for item in call.args] == own and given == named


def _is_returned(func: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, call: ast.Call) -> bool:
    """Whether a function returns what a call gives, as it is, and binds nothing else to its parameters."""
    if isinstance(func, ast.Lambda):
        return func.body is call
    if not assigned_names(func.body).isdisjoint(names(func.args)):
        return False
    kept = {
        target.id
        for node in walk(func)
        if isinstance(node, ast.Assign) and node.value is call
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    results = [node.value for node in walk(func) if isinstance(node, ast.Return)]
    return any(result is call or (isinstance(result, ast.Name) and result.id in kept) for result in results)


def syntax_of(func: Value) -> ast.AST | None:
    """The syntax of the function that is run, inside of all that was made of it."""
    while isinstance(func, (Transformed, PartialVal, BoundMethod)):
        func = func.func or UNKNOWN
    return func.node if isinstance(func, FuncVal) else None
