"""The abstract interpreter: executes modules, functions and statements over abstract values.

A module body runs once, in order. Then every function that was defined runs once on its own (an *entry*: parameters
are what their annotations say, ``self`` is an instance of the class), so that all code is seen; functions that are
called with known arguments also run at the call, to a bounded depth. Loops run once, with the names that they assign
unknown at the start; the arms of a branch run one after the other on copies of the scope, which are joined after it.

Invariants: the interpreter never raises on any syntax tree; it stops silently when its budget of steps is spent; it
reports nothing itself but publishes :mod:`~nnx_lint.model.events`.
"""

from __future__ import annotations

import ast
import contextlib
from typing import TYPE_CHECKING, Any

from nnx_lint.model import expressions, statements
from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal, Transformed
from nnx_lint.model.classes import LibClass, UserClass, library_class
from nnx_lint.model.events import Mutated
from nnx_lint.model.frames import Frame, TraceScope
from nnx_lint.model.modules import Env
from nnx_lint.model.values import (
    NONE,
    UNKNOWN,
    Array,
    ClassVal,
    Const,
    DictVal,
    Obj,
    ParameterVal,
    Seq,
    Unknown,
    Value,
    join,
    options,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.classes import ClassBase
    from nnx_lint.model.events import Event
    from nnx_lint.model.modules import Module, Project

MAX_DEPTH = 7
"""How deep calls are followed."""

STEPS_PER_MODULE = 120_000
"""How many statements one module may execute, calls included."""

MAX_RUNS = 12
"""How often one function body is executed for calls, besides its own entry."""

MAX_RUNS_IN_CONSTRUCTION = 60
"""The same for calls that a constructor makes: what helper functions return to it is what the object is made of."""


RNGS = library_class("nnx.Rngs") or LibClass("nnx.Rngs", (), None)


class Budget(Exception):
    """The budget of the module is spent; everything not yet seen stays unknown."""


class Interpreter:
    """Executes the modules of a project and publishes what happens."""

    def __init__(self, project: Project, publish: Callable[[Event], None]) -> None:
        self.project = project
        self.publish: Callable[[Event], None] = publish
        self.steps = 0
        self.runs: dict[int, int] = {}
        self.pending: dict[int, list[tuple[FuncVal, Frame]]] = {}
        self.classes: dict[int, list[UserClass]] = {}
        self.entered: set[int] = set()
        self.modelled: set[int] = set()
        self.streams: dict[int, set[str]] = {}
        self.current: Module | None = None
        self.finished: set[int] = set()
        self.loops: set[int] = set()
        self.loop_facts: dict[int, tuple[set[str], bool]] = {}
        self.transforms: dict[int, list[tuple[Transformed, Frame]]] = {}

    # -- modules
    # ---------------------------------------------------------------------------------------------------------------

    def load(self, module: Module) -> None:
        """Execute the body of a module, once. A module that is being executed (an import cycle) is left as far as it
        is.
        """
        if module.state != "new" or module.source.tree is None:
            return
        module.state = "running"
        frame = Frame(module, module.env)
        with contextlib.suppress(Budget, RecursionError):
            self.block(frame, module.source.tree.body)
        module.state = "done"

    def check(self, module: Module) -> None:
        """Execute a module and every function in it."""
        self.steps = 0
        self.current = module
        self.load(module)
        try:
            self.run_pending(module)
        except (Budget, RecursionError):
            self.pending.pop(id(module), None)
            self.classes.pop(id(module), None)
            self.transforms.pop(id(module), None)
        self.finished.add(id(module))

    def run_pending(self, module: Module) -> None:
        """Run the entries of all functions that the module defines, transformed ones under their transform."""
        from nnx_lint.model.construct import model_of

        functions = self.pending.setdefault(id(module), [])
        classes = self.classes.setdefault(id(module), [])
        transforms = self.transforms.setdefault(id(module), [])
        while classes or functions or transforms:
            if classes:
                model_of(self, classes.pop(0))
            # Functions first: one may call a transformed function with arguments that are known, or in a mode.
            elif functions:
                func, frame = functions.pop(0)
                if id(func.node) not in self.entered:
                    self.enter(func, frame)
            else:
                transformed, frame = transforms.pop(0)
                if not transformed.ran:
                    self.enter_transformed(transformed, frame)

    def defined(self, func: FuncVal, frame: Frame) -> None:
        """Note that a function was defined, so that its body is seen even if nobody calls it."""
        self.pending.setdefault(id(func.module), []).append((func, frame))

    def defined_class(self, cls: UserClass) -> None:
        """Note that an NNX class was defined, so that its model is built even if nobody makes an instance."""
        if id(cls.node) not in self.entered:  # a constructor can define the class anew, and without end
            self.entered.add(id(cls.node))
            self.classes.setdefault(id(cls.module), []).append(cls)

    def transformed(self, transformed: Transformed, frame: Frame) -> None:
        """Note that a function was transformed, so that its body is seen under the transform in any case."""
        caller = frame
        while caller.caller is not None:
            caller = caller.caller
        # The module that called for it sees to it, unless nothing more of that module will run.
        module = self.current if self.current is not None and id(caller.module) in self.finished else caller.module
        self.transforms.setdefault(id(module), []).append((transformed, frame))

    # -- functions
    # -------------------------------------------------------------------------------------------------------------

    def enter(self, func: FuncVal, frame: Frame) -> None:
        """Run a function on its own: parameters are what their annotations and defaults say."""
        self.entered.add(id(func.node))
        env = Env("function", func.env, func)  # type: ignore[arg-type]
        # Defined under a transform, but not seen to be called: it may as well run on the host, outside of every trace.
        entry = Frame(func.module, env, func=func, level=frame.level, cls=func.cls)
        receiver = self.receiver_of(func)
        self.bind_entry(entry, func, receiver)
        self.body(entry, func)

    def enter_transformed(self, transformed: Transformed, frame: Frame) -> None:
        """Run a transformed function that nobody called, with fresh arguments of the inner level."""
        transformed.ran = True
        func = transformed.func
        receiver = self.receiver_of(func) if isinstance(func, FuncVal) else None
        self.run_under(frame, transformed.applied, func, [], {}, None, receiver=receiver)

    def receiver_of(self, func: FuncVal) -> Value | None:
        """What ``self`` (or ``cls``) is in a method run on its own."""
        if func.cls is None or isinstance(func.node, ast.Lambda):
            return None
        if "staticmethod" in func.decorators:
            return None
        if "classmethod" in func.decorators:
            return UNKNOWN
        if func.name == "__new__":
            return ClassVal(func.cls)
        from nnx_lint.model.construct import model_of

        obj = model_of(self, func.cls, fresh=True)
        # The forward pass must work in training; of other methods it is not known in which mode they are called.
        obj.training = True if func.name == "__call__" else None
        return obj

    def bind_entry(self, frame: Frame, func: FuncVal, receiver: Value | None) -> None:
        """Bind the parameters of an entry."""
        arguments = func.node.args
        parameters = [*arguments.posonlyargs, *arguments.args]
        names = frame.env.names
        for position, parameter in enumerate(parameters):
            if position == 0 and receiver is not None:
                names[parameter.arg] = receiver
                frame.receiver = receiver
            else:
                names[parameter.arg] = self.parameter(frame, func, parameter)
        for parameter in arguments.kwonlyargs:
            names[parameter.arg] = self.parameter(frame, func, parameter)
        self.bind_variadic(frame, func)

    def bind_variadic(self, frame: Frame, func: FuncVal) -> None:
        """Bind ``*args`` and ``**kwargs`` to containers of unknown contents."""
        arguments = func.node.args
        if arguments.vararg is not None:
            frame.env.names.setdefault(arguments.vararg.arg, Seq("tuple", [UNKNOWN], frame.level, exact=False))
        if arguments.kwarg is not None:
            frame.env.names.setdefault(arguments.kwarg.arg, DictVal([(UNKNOWN, UNKNOWN)], frame.level, exact=False))

    def parameter(self, frame: Frame, func: FuncVal, parameter: ast.arg) -> Value:
        """The value of a parameter that nobody gave: by its annotation, which a default may widen (`x: Param = None`),
        else by a default that is an NNX object, else unknown.
        """
        default = func.defaults.get(parameter.arg)
        if default is not None and any(isinstance(item, Obj) and item.cls.tracked for item in options(default)):
            return default
        if parameter.annotation is not None:
            annotated = expressions.annotation_value(self, frame, parameter.annotation)
            return annotated if default is None else join(annotated, default)
        if default is None and self.takes_streams(func, parameter.arg, frame):
            return self.instance(RNGS, frame.level)
        return ParameterVal(parameter.arg, default is None)

    def takes_streams(self, func: FuncVal, name: str, frame: Frame) -> bool:
        """Whether a function hands a parameter to a layer of the library as its ``rngs``."""
        known = self.streams.get(id(func.node))
        if known is None:
            known = self.streams[id(func.node)] = set()
            for node in ast.walk(func.node):
                given = node.keywords if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else []
                names = {item.value.id for item in given if item.arg == "rngs" and isinstance(item.value, ast.Name)}
                callee = expressions.evaluate(self, frame, node.func) if names else None  # type: ignore[attr-defined]
                if isinstance(callee, ClassVal) and isinstance(callee.cls, LibClass):
                    known |= names
        return name in known

    def body(self, frame: Frame, func: FuncVal) -> Value:
        """Execute the body of a function in its frame and join what it returns."""
        node = func.node
        if isinstance(node, ast.Lambda):
            value = expressions.evaluate(self, frame, node.body)
            statements.returned(self, frame, node.body, value)
            return value
        ended = self.block(frame, node.body)
        if frame.yields or isinstance(node, ast.AsyncFunctionDef):
            return UNKNOWN
        if not ended:
            frame.results.append(NONE)
        return join(*frame.results) if frame.results else UNKNOWN

    def call_function(
        self,
        frame: Frame,
        func: FuncVal,
        args: Sequence[Value | None],
        keywords: dict[str, Value],
        node: ast.AST | None,
        *,
        receiver: Value | None = None,
        level: int | None = None,
        scope: TraceScope | None = None,
        fresh_unknown: bool = False,
    ) -> Value:
        """Run a function with arguments. ``None`` in ``args`` is a starred argument: the parameters from there on are
        unknown.
        """
        runs = self.runs.get(id(func.node), 0)
        # A constructor runs once for each class, with the methods that it calls: all that it assigns must be seen.
        constructing = receiver is not None and receiver is frame.initializing
        limited = runs >= (MAX_RUNS_IN_CONSTRUCTION if frame.initializing is not None else MAX_RUNS)
        if frame.depth >= MAX_DEPTH or (limited and scope is None and not constructing) or self.active(frame, func):
            if constructing and isinstance(receiver, Obj):
                receiver.assumed = True
            return UNKNOWN
        self.runs[id(func.node)] = runs + 1
        env = Env("function", func.env, func)  # type: ignore[arg-type]
        inner = Frame(
            func.module,
            env,
            func=func,
            caller=frame,
            call=node,
            level=frame.level if level is None else level,
            scope=(*frame.scope, scope) if scope is not None else frame.scope,
            cls=func.cls,
            receiver=receiver,
        )
        if scope is not None:
            scope.frame = inner
        self.bind(inner, func, [receiver, *args] if receiver is not None else list(args), keywords)
        value = self.body(inner, func)
        if frame.env.kind == "function" and inner.yields:
            return UNKNOWN
        return value

    def construct_under(self, frame: Frame, obj: Obj, func: FuncVal, args: Arguments) -> None:
        """Run a constructor for what it does to captured arguments; all else is known from the model of the class."""
        given = [*args.positional, *args.keywords.values()]
        if not any(isinstance(value, Obj) and value.cls.tracked and value.level < frame.level for value in given):
            return
        publish = self.publish

        def changes_only(event: Event) -> None:
            if isinstance(event, Mutated):
                publish(event)

        self.publish = changes_only
        try:
            self.call_function(frame, func, args.positional, args.keywords, args.node, receiver=obj)
        finally:
            self.publish = publish

    def active(self, frame: Frame, func: FuncVal) -> bool:
        """Whether the function is being executed already (recursion)."""
        current: Frame | None = frame
        while current is not None:
            if current.func is not None and current.func.node is func.node:
                return True
            current = current.caller
        return False

    def bind(self, frame: Frame, func: FuncVal, args: list[Value | None], keywords: dict[str, Value]) -> None:
        """Bind arguments to parameters; what is not given is a default or unknown."""
        arguments = func.node.args
        names = frame.env.names
        parameters = [*arguments.posonlyargs, *arguments.args]
        starred = None in args
        certain = args[: args.index(None)] if starred else args
        for position, parameter in enumerate(parameters):
            given = certain[position] if position < len(certain) else keywords.get(parameter.arg)
            if given is None:
                given = self.missing(frame, func, parameter, starred)
            elif isinstance(given, Unknown) and parameter.annotation is not None:
                given = expressions.annotation_value(self, frame, parameter.annotation)
            names[parameter.arg] = given
        for parameter in arguments.kwonlyargs:
            given = keywords.get(parameter.arg)
            names[parameter.arg] = self.missing(frame, func, parameter, "**" in keywords) if given is None else given
        if arguments.vararg is not None and not starred and len(certain) >= len(parameters):
            rest = [value if value is not None else UNKNOWN for value in certain[len(parameters) :]]
            names[arguments.vararg.arg] = Seq("tuple", rest, frame.level)
        self.bind_variadic(frame, func)

    def missing(self, frame: Frame, func: FuncVal, parameter: ast.arg, maybe_given: bool) -> Value:
        default = func.defaults.get(parameter.arg)
        if default is not None and not maybe_given:
            return default
        return self.parameter(frame, func, parameter)

    # -- transforms
    # ------------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def failing(self, module: Module) -> Generator[None, None, None]:
        """Code that is meant to fail runs in here: nothing of it is published, nor what it defines seen on its own."""
        publish = self.publish
        queues: tuple[list[Any], ...] = (
            self.pending.setdefault(id(module), []),
            self.transforms.setdefault(id(module), []),
        )
        lengths = [len(queue) for queue in queues]
        self.publish = _ignore
        try:
            yield
        finally:
            self.publish = publish
            for queue, length in zip(queues, lengths, strict=True):
                del queue[length:]

    def run_under(
        self,
        frame: Frame,
        applied: TransformVal,
        func: Value,
        args: Sequence[Value | None],
        keywords: dict[str, Value],
        node: ast.AST | None,
        *,
        receiver: Value | None = None,
    ) -> Value:
        """Run a function value under a transform: at the next trace level, with arguments of that level.

        What a bound method, an instance, a partial or a static argument brings along is captured and keeps its level;
        ``receiver`` is the ``self`` of a decorated method, which is an argument like any other.
        """
        held: list[tuple[Value, str]] = []
        bound: list[Value | None] = []
        named: dict[str, Value] = {}
        instance: Value | None = None
        while not isinstance(func, FuncVal):
            if isinstance(func, Transformed) and not applied.row.level:
                func.ran = True
                return self.run_under(
                    frame, func.applied, func.func, [*bound, *args], {**named, **keywords}, node, receiver=receiver
                )
            if isinstance(func, Transformed):
                func.ran = True  # the outer transform decides what is captured; the inner one adds a level of its own
                func = func.func
            elif isinstance(func, PartialVal):
                bound = [*func.args, *bound]
                named = {**func.keywords, **named}
                held.extend((value, "partial") for value in (*func.args, *func.keywords.values()))
                func = func.func
            elif isinstance(func, BoundMethod) and func.func is not None:
                instance = func.receiver
                held.append((instance, "bound"))
                func = func.func
            elif isinstance(func, Obj) and isinstance(func.cls, UserClass) and func.cls.find("__call__"):
                instance = func
                held.append((instance, "transformed"))
                func = func.cls.find("__call__")[1]  # type: ignore[index]
            elif isinstance(func, (Obj, BoundMethod)):
                return self.run_native(frame, applied, func, [*bound, *args], {**named, **keywords}, held)
            else:
                return UNKNOWN
        self.entered.add(id(func.node))
        if not applied.row.level:
            first = instance if instance is not None else receiver
            return self.call_function(frame, func, [*bound, *args], {**named, **keywords}, node, receiver=first)
        level = frame.level + 1
        shift = 0 if receiver is None else 1
        kept = kept_positions(applied, func, len(args) + shift)
        if receiver is not None and 0 not in kept:
            receiver = refresh(receiver, level)
        fresh = [
            value if value is None or position + shift in kept else refresh(value, level)
            for position, value in enumerate(args)
        ]
        fresh_named = {name: refresh(value, level) for name, value in keywords.items()}
        scope = TraceScope(applied, level, tuple(held))
        first = instance if instance is not None else receiver
        return self.call_function(
            frame, func, [*bound, *fresh], {**named, **fresh_named}, node, receiver=first, level=level, scope=scope
        )

    def run_native(
        self,
        frame: Frame,
        applied: TransformVal,
        func: Obj | BoundMethod,
        args: list[Value | None],
        keywords: dict[str, Value],
        held: list[tuple[Value, str]],
    ) -> Value:
        """Run a library object, or a method of one, under a transform."""
        from nnx_lint.model.calls import Arguments, invoke

        if not applied.row.level:
            return UNKNOWN
        receiver, how = (func, "transformed") if isinstance(func, Obj) else (func.receiver, "bound")
        scope = TraceScope(applied, frame.level + 1, (*held, (receiver, how)))
        inner = Frame(
            frame.module,
            Env("function", frame.env),
            caller=frame,
            call=applied.node,
            level=scope.level,
            scope=(*frame.scope, scope),
        )
        scope.frame = inner
        name = f"it.{func.name}" if isinstance(func, BoundMethod) else "it"
        return invoke(self, inner, func, Arguments(applied.node, args, keywords, []), applied.node, name)

    # -- statements
    # ------------------------------------------------------------------------------------------------------------

    def block(self, frame: Frame, body: Sequence[ast.stmt]) -> bool:
        """Execute statements; whether the block certainly ends the function or the loop iteration."""
        for statement in body:
            self.steps += 1
            if self.steps > STEPS_PER_MODULE:
                raise Budget
            handler = statements.HANDLERS.get(type(statement))
            if handler is not None and handler(self, frame, statement):
                return True
        return False

    def instance(self, cls: ClassBase, level: int) -> Value:
        """An instance of a class whose construction was not seen."""
        from nnx_lint.model.construct import instance_of

        obj = instance_of(self, cls, level)
        obj.assumed = True
        obj.training = None
        return obj


def _ignore(event: Event) -> None:
    """Publish nothing."""


def kept_positions(applied: TransformVal, func: FuncVal, count: int) -> set[int]:
    """Positions of arguments that a transform hands to the function as they are, so that these count as captured.

    ``jax.grad`` and its like do so with arguments that they do not differentiate, others with static ones.
    """
    from nnx_lint.model.library import literal_positions
    from nnx_rules.transforms import Arguments

    everything = set(range(count))
    if applied.row.arguments is Arguments.SHARED:
        argnums = literal_positions(applied.keywords.get("argnums"), default=(0,))
        return everything.difference(argnums) if argnums is not None and min(argnums, default=0) >= 0 else set()
    parameters = [item.arg for item in (*func.node.args.posonlyargs, *func.node.args.args)]
    kept: set[int] = set()
    for option in applied.row.static_options:
        value = applied.keywords.get(option)
        if option.endswith("names"):
            names = value.items if isinstance(value, Seq) else [value]
            kept.update(
                parameters.index(item.value)
                for item in names
                if isinstance(item, Const) and isinstance(item.value, str) and item.value in parameters
            )
        else:
            kept.update(literal_positions(value, default=()) or ())
    return kept


def refresh(value: Value, level: int) -> Value:
    """The value as it arrives on the other side of a transform: the same, but created at ``level``."""
    return _refresh(value, level, {})


def _refresh(value: Value, level: int, seen: dict[int, Value]) -> Value:
    if id(value) in seen:
        return seen[id(value)]
    from nnx_lint.model.values import StateVal, UnionVal

    if isinstance(value, Array):
        return Array(level)
    if isinstance(value, Obj):
        copy = Obj(value.cls, level, value.args, value.node)
        copy.assumed = value.assumed
        copy.training = value.training
        copy.origin = value.origin
        copy.template = value
        seen[id(value)] = copy
        return copy
    if isinstance(value, Seq):
        fresh = Seq(value.type, (), level, exact=value.exact, node=value.node)
        seen[id(value)] = fresh
        fresh.items = [_refresh(item, level, seen) for item in value.items]
        fresh.sure = [_refresh(item, level, seen) for item in value.sure]
        return fresh
    if isinstance(value, DictVal):
        table = DictVal((), level, exact=value.exact, node=value.node)
        seen[id(value)] = table
        table.items = [(key, _refresh(item, level, seen)) for key, item in value.items]
        return table
    if isinstance(value, StateVal):
        return StateVal(value.of, level, value.wanted)
    if isinstance(value, UnionVal):
        return join(*(_refresh(option, level, seen) for option in value.options))
    return value
