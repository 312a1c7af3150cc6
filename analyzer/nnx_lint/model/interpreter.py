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
from typing import TYPE_CHECKING

from nnx_lint.model import expressions, statements
from nnx_lint.model.frames import Frame, TraceScope
from nnx_lint.model.modules import Env
from nnx_lint.model.values import NONE, UNKNOWN, Array, DictVal, FuncVal, Obj, Seq, Unknown, Value, join, options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnx_lint.model.classes import ClassBase
    from nnx_lint.model.events import Event
    from nnx_lint.model.modules import Module, Project
    from nnx_lint.model.values import Transformed, TransformVal

MAX_DEPTH = 7
"""How deep calls are followed."""

STEPS_PER_MODULE = 120_000
"""How many statements one module may execute, calls included."""

MAX_RUNS = 12
"""How often one function body is executed for calls, besides its own entry."""


class Budget(Exception):
    """The budget of the module is spent; everything not yet seen stays unknown."""


class Interpreter:
    """Executes the modules of a project and publishes what happens."""

    def __init__(self, project: Project, publish: Callable[[Event], None]) -> None:
        self.project = project
        self.publish = publish
        self.steps = 0
        self.runs: dict[int, int] = {}
        self.pending: dict[int, list[tuple[FuncVal, Frame]]] = {}
        self.entered: set[int] = set()
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
        self.load(module)
        try:
            self.run_pending(module)
        except (Budget, RecursionError):
            self.pending.pop(id(module), None)
            self.transforms.pop(id(module), None)

    def run_pending(self, module: Module) -> None:
        """Run the entries of all functions that the module defines, transformed ones under their transform."""
        functions = self.pending.get(id(module), [])
        transforms = self.transforms.get(id(module), [])
        while functions or transforms:
            if transforms:
                transformed, frame = transforms.pop(0)
                if not transformed.ran:
                    self.enter_transformed(transformed, frame)
            else:
                func, frame = functions.pop(0)
                if id(func.node) not in self.entered:
                    self.enter(func, frame)

    def defined(self, func: FuncVal, frame: Frame) -> None:
        """Note that a function was defined, so that its body is seen even if nobody calls it."""
        self.pending.setdefault(id(func.module), []).append((func, frame))

    def transformed(self, transformed: Transformed, frame: Frame) -> None:
        """Note that a function was transformed, so that its body is seen under the transform in any case."""
        self.transforms.setdefault(id(frame.module), []).append((transformed, frame))

    # -- functions
    # -------------------------------------------------------------------------------------------------------------

    def enter(self, func: FuncVal, frame: Frame) -> None:
        """Run a function on its own: parameters are what their annotations and defaults say."""
        self.entered.add(id(func.node))
        env = Env("function", func.env)  # type: ignore[arg-type]
        entry = Frame(func.module, env, func=func, level=frame.level, scope=frame.scope, cls=func.cls)
        receiver = self.receiver_of(func)
        self.bind_entry(entry, func, receiver)
        self.body(entry, func)

    def enter_transformed(self, transformed: Transformed, frame: Frame) -> None:
        """Run a transformed function that nobody called, with fresh arguments of the inner level."""
        transformed.ran = True
        func = transformed.func
        if isinstance(func, FuncVal):
            self.call_under(frame, transformed.applied, func, [], {}, None, entry=True)

    def receiver_of(self, func: FuncVal) -> Value | None:
        """What ``self`` (or ``cls``) is in a method run on its own."""
        if func.cls is None or isinstance(func.node, ast.Lambda):
            return None
        if "staticmethod" in func.decorators:
            return None
        if "classmethod" in func.decorators:
            return UNKNOWN
        from nnx_lint.model.construct import model_of

        return model_of(self, func.cls, fresh=True)

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
        """The value of a parameter that nobody gave: by its annotation, else by a default that is an NNX object, else
        unknown.
        """
        default = func.defaults.get(parameter.arg)
        if default is not None and any(isinstance(item, Obj) and item.cls.tracked for item in options(default)):
            return default
        if parameter.annotation is not None:
            return expressions.annotation_value(self, frame, parameter.annotation)
        return UNKNOWN

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
        if frame.depth >= MAX_DEPTH or (runs >= MAX_RUNS and scope is None) or self.active(frame, func):
            return UNKNOWN
        self.runs[id(func.node)] = runs + 1
        env = Env("function", func.env)  # type: ignore[arg-type]
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

    def call_under(
        self,
        frame: Frame,
        applied: TransformVal,
        func: Value,
        args: list[Value | None],
        keywords: dict[str, Value],
        node: ast.AST | None,
        *,
        receiver: Value | None = None,
        entry: bool = False,
    ) -> Value:
        """Run a function under a transform: at the next trace level, with arguments of that level."""
        if not isinstance(func, FuncVal):
            return UNKNOWN
        self.entered.add(id(func.node))
        row = applied.row
        if not row.level:
            if entry:
                return UNKNOWN
            return self.call_function(frame, func, args, keywords, node, receiver=receiver)
        level = frame.level + 1
        scope = TraceScope(row, applied.text, level)
        shared = self.shared_positions(applied, args)
        inner_args = [
            value if value is None or position in shared else refresh(value, level)
            for position, value in enumerate(args)
        ]
        inner_keywords = {name: refresh(value, level) for name, value in keywords.items()}
        if receiver is None and entry and func.cls is not None and "staticmethod" not in func.decorators:
            receiver = self.receiver_of(func)
        if receiver is not None:
            receiver = refresh(receiver, level)
        return self.call_function(
            frame, func, inner_args, inner_keywords, node, receiver=receiver, level=level, scope=scope
        )

    def shared_positions(self, applied: TransformVal, args: Sequence[Value | None]) -> set[int]:
        """Positions of arguments that the transform hands through as they are (not differentiated by ``jax.grad``)."""
        from nnx_lint.model.library import literal_positions
        from nnx_rules.transforms import Arguments

        if applied.row.arguments is not Arguments.SHARED:
            return set()
        argnums = literal_positions(applied.keywords.get("argnums"), default=(0,))
        if argnums is None:
            return set()
        return {position for position in range(len(args)) if position not in argnums}

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

        return instance_of(self, cls, level)


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
        copy.template = value
        seen[id(value)] = copy
        return copy
    if isinstance(value, Seq):
        fresh = Seq(value.type, (), level, exact=value.exact, node=value.node)
        seen[id(value)] = fresh
        fresh.items = [_refresh(item, level, seen) for item in value.items]
        return fresh
    if isinstance(value, DictVal):
        table = DictVal((), level, exact=value.exact, node=value.node)
        seen[id(value)] = table
        table.items = [(key, _refresh(item, level, seen)) for key, item in value.items]
        return table
    if isinstance(value, StateVal):
        return StateVal(value.of, level)
    if isinstance(value, UnionVal):
        return join(*(_refresh(option, level, seen) for option in value.options))
    return value
