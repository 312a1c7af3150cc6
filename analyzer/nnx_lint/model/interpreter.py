"""The abstract interpreter: executes modules, functions and statements over abstract values.

A module body runs once, in order. Then every function that was defined runs once on its own (an *entry*: parameters
are what their annotations say, ``self`` is an instance of the class), so that all code is seen; functions that are
called with known arguments also run at the call, to a bounded depth and a bounded number of times; beyond that their
summary stands in for them (:mod:`~nnx_lint.model.effects`). The body of a loop runs once, and what it leaves is kept
where another round would leave the same kind, but over a few known elements it runs for each
(:mod:`~nnx_lint.model.rounds`); the arms of a branch run one after the other on copies of the scope,
narrowed by the condition (:mod:`~nnx_lint.model.narrowing`), which are joined after it.

Invariants: the interpreter never raises on any syntax tree; it stops silently when its budget of steps is spent; it
reports nothing itself but publishes :mod:`~nnx_lint.model.events`.
"""

from __future__ import annotations

import ast
import contextlib
import copy
from typing import TYPE_CHECKING, Any, ClassVar

from nnx_lint.model import (
    comprehensions,
    configs,
    ended,
    expressions,
    imports,
    modes,
    parameters,
    sized,
    statements,
    tracing,
)
from nnx_lint.model.annotations import value_of
from nnx_lint.model.callables import (
    ContextVal,
    FuncVal,
    Transformed,
    hands_functions,
    is_closure,
    stands_for,
    syntax_of,
)
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import Seq
from nnx_lint.model.definitions import is_declaration, rebound
from nnx_lint.model.effects import Effects
from nnx_lint.model.events import Mutated
from nnx_lint.model.frames import Frame, TraceScope
from nnx_lint.model.heap import Evaluation, touch
from nnx_lint.model.limits import (
    MAX_ABROAD_IN_CONSTRUCTION,
    MAX_ABROAD_WITH_FUNCTIONS,
    MAX_DEPTH,
    MAX_DEPTH_ON_HOST,
    MAX_DEPTH_WITH_SHAPES,
    MAX_ENTERED,
    MAX_RUNS,
    MAX_RUNS_IN_CONSTRUCTION,
    STEPS_PER_MODULE,
    Budget,
)
from nnx_lint.model.modules import Env
from nnx_lint.model.unions import join
from nnx_lint.model.values import (
    NONE,
    UNKNOWN,
    Array,
    Computed,
    Const,
    Obj,
    Value,
)
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.compact import for_both
from nnx_rules.transforms import COMPILING_ONLY

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Sequence

    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.classes import ClassBase, LibClass
    from nnx_lint.model.events import Event
    from nnx_lint.model.modules import Module, Project

NOTHING: frozenset[Any] = frozenset()
"""Python makes a new empty set each time that it is asked for one."""

_NOWHERE: dict[Any, Any] = {}
"""Where an evaluation stands that nobody will ask for again."""


class Interpreter:
    """One evaluation: of a module's body, of the model of a class, or of all functions of a module.

    An evaluation that needs another one starts it, once; it has a budget of its own, publishes for itself, and undoes
    what it changes elsewhere (:mod:`~nnx_lint.model.heap`). ``module`` is the one that is evaluated, or that has the
    class; ``subject`` is the syntax of the class or function that it is about, ``known`` is where the evaluation stands
    under ``key``, or the class whose model it makes; ``used`` are the other evaluations that this one looked at,
    ``heirs`` the names whose heirs it asked for.
    """

    __slots__ = (
        "adopted",
        "classes",
        "configured",
        "effects",
        "ended_early",
        "entered",
        "entering",
        "failure",
        "functions",
        "heap",
        "heirs",
        "key",
        "known",
        "listener",
        "loops",
        "modes",
        "module",
        "nested",
        "partial",
        "project",
        "provisional",
        "publish",
        "ran",
        "rolled",
        "runs",
        "sizes",
        "steps",
        "subject",
        "traces",
        "transforms",
        "used",
        "uses",
    )

    evaluators: ClassVar[dict[type[ast.expr], Callable[..., Value]]] = for_both(
        expressions.HANDLERS | comprehensions.HANDLERS
    )
    executors: ClassVar[dict[type[ast.stmt], Callable[..., bool]]] = for_both(statements.HANDLERS)
    library: ClassVar[dict[str, Callable[..., Value]]] = {}
    """What library functions do here, by canonical name, before the tables of the library are asked."""
    most_rounds: ClassVar[int] = 8
    """Over how many known elements a loop runs one by one."""
    number: ClassVar[type[Const]] = Computed
    """What a number is that is computed from literals."""

    def __init__(self, project: Project, listener: Callable[[Event], None], module: Module | None = None) -> None:
        self.project = project
        self.listener = listener
        self.publish: Callable[[Event], None] = listener
        self.module = module
        self.used: set[Interpreter] = set()
        self.heirs: frozenset[str] = NOTHING
        self.failure: Exception | None = None
        self.partial: Interpreter | None = None
        self.subject: ast.AST | None = None
        self.known: UserClass | dict[Any, Any] = _NOWHERE
        self.key: object = None
        self.provisional: list[Interpreter] = []
        self.ended_early = False
        self.heap = Evaluation()
        self.steps = 0
        self.runs: dict[object, int] = {}
        self.functions: list[tuple[FuncVal, Frame]] = []
        self.classes: list[UserClass] = []
        self.transforms: list[tuple[Transformed, Frame]] = []
        self.traces: list[TraceScope] = []
        self.ran: set[Transformed] = set()
        self.entered: set[int] = set()
        self.adopted: dict[Interpreter, None] = {}
        self.uses: dict[int, dict[str, LibClass]] = {}
        self.sizes: dict[UserClass, set[Hashable]] = {}
        self.configured = self.modes = modes.at_entry(module)
        self.effects = Effects()
        self.entering = 0
        self.loops: frozenset[int] = NOTHING
        self.rolled: frozenset[int] = NOTHING
        self.nested = 1

    # -- modules -------------------------------------------------------------------------------------------------------

    def load(self, module: Module) -> None:
        """Execute the body of a module, once. A module that is being executed (an import cycle) is left as far as it
        is.
        """
        if module.body is None:
            module.body = inner = type(self)(self.project, self.project.listen(), module)
            self.project.evaluations.append(inner)
            module.born = inner.heap
            with inner.evaluating():
                inner.modes = inner.modes._replace(mesh=modes.NO_MESH)
                self.project.run_body(inner, module)
            imports.settle(module)
            module.complete = True
        if module is not self.module:  # what it uses of its own module it looks up there by name
            self.used.add(module.body)

    def model(self, cls: UserClass) -> Obj:
        """The model of a class: an instance on which the constructor ran, once.

        A class that is being modelled (a recursive structure) is left as far as it is; models that came out of that are
        made again when they are asked for on their own, so that it does not matter which of them came first.
        """
        from nnx_lint.model.construct import build_model

        if cls.model is None:
            inner = cls.modelled = Interpreter(self.project, self.project.listen(), cls.module)
            if _ignore in {self.publish, self.listener} and cls.born is self.heap:
                inner.publish = _ignore  # code that is meant to fail makes the class, and the only instance
            with inner.evaluating_for(cls.node, cls):
                model = cls.model = Obj(cls, 0)
                if cls.node in self.project.modelling:
                    cls.dynamic = True  # a constructor defines its own class anew, and would do so without end
                else:
                    self.project.modelling.add(cls.node)
                    try:
                        build_model(inner, cls, model)
                        inner.run_pending(transformed=False)
                    finally:
                        self.project.modelling.discard(cls.node)
        else:
            model = cls.model
            self.project.note_partial(cls.modelled)
        if cls.modelled is not None:
            self.used.add(cls.modelled)
            if cls.module is self.module:
                self.adopt(cls.modelled)
        return model

    @contextlib.contextmanager
    def evaluating(self) -> Generator[None, None, None]:
        """Evaluate in here, until the end or until the budget is spent. A crash ends it too, and is noted."""
        running = self.project.running
        depth = len(running)
        running.append(self)
        with self.heap:
            try:
                yield
            except (Budget, RecursionError):
                self.ended_early = True
            except Exception as error:
                self.failure = error
        del running[depth:]
        for each in self.provisional:
            each.forget()
        self.provisional.clear()
        if self.publish is self.listener:  # what was published has been judged
            ended.untie(self)

    @contextlib.contextmanager
    def evaluating_for(
        self, subject: ast.AST | None, known: UserClass | dict[Any, Any], key: object = None
    ) -> Generator[None, None, None]:
        """Evaluate in here what others will ask for again; a result that came out of a part of another is forgotten."""
        self.subject, self.known, self.key = subject, known, key
        self.project.evaluations.append(self)
        with self.evaluating():
            yield
        if self.partial is not None:
            self.partial.provisional.append(self)
        ended.settle(self)

    def forget(self) -> None:
        """Let what came out of this evaluation be unknown again."""
        if isinstance(self.known, UserClass):
            self.known.forget_model()
        else:
            self.known.pop(self.key, None)

    def adopt(self, other: Interpreter) -> None:
        """Count what another evaluation of the same module has seen as seen."""
        if other is not self and other not in self.adopted:
            self.adopted.update(other.adopted)
            self.adopted[other] = None
            self.entered |= other.entered
            self.ran |= other.ran

    def check(self, module: Module) -> None:
        """Execute a module and every function in it: each in an evaluation of its own, which this one adopts."""
        self.module = module
        self.configured = self.modes = modes.at_entry(module)
        self.load(module)
        assert module.body is not None
        self.adopt(module.body)
        with self.evaluating():
            for cls in module.body.classes:
                self.project.pause()
                self.model(cls)
            for func, frame in module.body.functions:
                if id(func.node) not in self.entered:
                    self._adopt_within_budget(self.apart(func, frame))
            # Functions first: one may call a transformed function with arguments that are known, or in a mode.
            for evaluation in self.adopted.copy():
                for transformed, frame in evaluation.transforms:
                    if transformed not in self.ran:
                        self._adopt_within_budget(self.apart(transformed, frame))

    def _adopt_within_budget(self, inner: Interpreter) -> None:
        self.adopt(inner)
        self.steps += inner.steps
        if self.steps > STEPS_PER_MODULE:
            raise Budget

    def apart(self, func: FuncVal | Transformed, frame: Frame) -> Interpreter:
        """The evaluation of a function that is no closure, run on its own; once for the whole project.

        Its module sees to what is to be said of it.
        """
        self.project.pause()
        functions = self.project.functions
        key = func.key if isinstance(func, FuncVal) else func
        inner = functions.get(key)
        if inner is None:
            inner = functions[key] = Interpreter(self.project, self.project.listen(), frame.module)
            with inner.evaluating_for(syntax_of(func), functions, key):
                if isinstance(func, FuncVal):
                    inner.enter(func, frame)
                else:
                    inner.enter_transformed(func, frame)
                inner.run_pending()
        else:
            self.project.note_partial(inner)
        self.used.add(inner)
        return inner

    def run_pending(self, *, transformed: bool = True) -> None:
        """Run what was defined in here on its own, and transformed functions that nobody called under the transform."""
        while self.classes or self.functions or (transformed and self.transforms):
            self.project.pause()
            if self.classes:
                self.model(self.classes.pop(0))
            elif self.functions:
                func, frame = self.functions.pop(0)
                if id(func.node) not in self.entered:
                    self.enter(func, frame)
            else:
                item, frame = self.transforms.pop(0)
                if item not in self.ran:
                    self.enter_transformed(item, frame)

    def defined(self, func: FuncVal, frame: Frame) -> None:
        """Note that a function was defined, so that its body is seen even if nobody calls it."""
        # A function that is called has an evaluation of its own, and what it defines is run there.
        if func.module is self.module and (frame.call is None or frame is frame.traced):
            self.functions.append((func, frame))

    def defined_class(self, cls: UserClass) -> None:
        """Note that an NNX class was defined, so that its model is built even if nobody makes an instance."""
        # A constructor can define the class anew, and without end.
        if cls.module is self.module and id(cls.node) not in self.entered:
            self.entered.add(id(cls.node))
            self.classes.append(cls)

    def transformed(self, transformed: Transformed, frame: Frame) -> None:
        """Note that a function was transformed, so that its body is seen under the transform in any case."""
        self.transforms.append((transformed, frame))

    # -- functions -----------------------------------------------------------------------------------------------------

    def enter(self, func: FuncVal, frame: Frame) -> None:
        """Run a function on its own: parameters are what their annotations and defaults say."""
        self.entered.add(id(func.node))
        self.modes = self.configured
        env = Env("function", func.env, func)  # type: ignore[arg-type]
        env.names.update(rebound(func))
        # Defined under a transform, but not seen to be called: it may as well run on the host, outside of every trace.
        entry = Frame(func.module, env, func=func, level=frame.level, cls=func.cls)
        receiver = parameters.receiver_of(self, func)
        parameters.bind_entry(self, entry, func, receiver)
        self.effects.begin(entry, func)
        self.effects.end(entry, self.body(entry, func))

    def enter_transformed(self, transformed: Transformed, frame: Frame) -> None:
        """Run a transformed function that nobody called, with fresh arguments of the inner level."""
        self.ran.add(transformed)
        self.modes = self.configured
        func = transformed.func
        receiver = parameters.receiver_of(self, func) if isinstance(func, FuncVal) else None
        frame = copy.copy(frame)
        frame.initializing = None
        anything: dict[str, Value] = {"**": UNKNOWN}  # or parameters would have their defaults
        if isinstance(func, FuncVal) and transformed.applied.row.name in COMPILING_ONLY:
            anything |= parameters.wanted(self, frame, func, transformed.applied)  # traced, whatever is given there
        self.run_under(frame, transformed.applied, func, [], anything, None, receiver=receiver)

    def body(self, frame: Frame, func: FuncVal) -> Value:
        """Execute the body of a function in its frame and join what it returns."""
        node = func.node
        if isinstance(node, ast.Lambda):
            value = expressions.evaluate(self, frame, node.body)
            statements.returned(self, frame, node.body, value)
            return value
        if is_declaration(func):
            return value_of(self, frame, node.returns) if node.returns is not None else UNKNOWN
        ended = self.block(frame, node.body)
        if isinstance(node, ast.AsyncFunctionDef):
            return UNKNOWN
        if "contextlib.contextmanager" in func.decorators:
            return ContextVal(join(*frame.yielded) if frame.yielded else UNKNOWN)
        if frame.yielded:
            return Seq("generator", frame.yielded, frame.level, exact=False)
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
    ) -> Value:
        """Run a function with arguments. ``None`` in ``args`` is a starred argument: the parameters from there on are
        unknown.
        """
        runs = self.runs.get(func.key, 0)
        # A constructor runs once for each class, with the methods that it calls, and the functions that it hands its
        # object to: all that these assign must be seen.
        made = frame.initializing
        constructing = made is not None and (receiver is made or any(value is made for value in args))
        limited = runs >= (MAX_RUNS_IN_CONSTRUCTION if frame.initializing is not None else MAX_RUNS)
        inner = Frame(
            func.module,
            Env("function", func.env, func),  # type: ignore[arg-type]
            func=func,
            caller=frame,
            call=node,
            level=frame.level if level is None else level,
            scope=(*frame.scope, scope) if scope is not None else frame.scope,
            cls=func.cls,
            receiver=receiver,
        )
        abroad = func.module is not self.module
        if abroad and not inner.scope and not constructing:
            inner.abroad += 1
        given = [receiver, *args] if receiver is not None else list(args)
        if inner.scope or constructing:
            far = False
        elif frame.initializing is not None and frame.initializing.cls.is_pytree:
            far = inner.abroad > MAX_ABROAD_IN_CONSTRUCTION
        elif hands_functions(receiver, (*args, *keywords.values())):
            far = inner.abroad > MAX_ABROAD_WITH_FUNCTIONS  # it may apply a transform to what it is given
        else:
            handed = (receiver, *args, *keywords.values())
            shaped = any(
                sized.is_sized(value) or (isinstance(value, Array) and value.form is not None) for value in handed
            )
            far = not frame.is_led and (abroad or frame.depth >= MAX_DEPTH_ON_HOST)
            far = frame.depth >= MAX_DEPTH_WITH_SHAPES if shaped else far
        limited = (limited and scope is None and not constructing) or far
        if frame.depth >= MAX_DEPTH or limited or self.active(frame, func):
            if constructing and made is not None:
                touch(made)
                made.assumed = True
            return self.summarised(inner, func, given, keywords) if scope is None else UNKNOWN
        self.runs[func.key] = runs + 1
        if scope is not None:
            scope.frame = inner
        elif frame.scope and frame.scope[-1].frame is frame and stands_for(frame.func, func, node):
            frame.scope[-1].frame = inner  # a wrapper stands for what it wraps
        parameters.bind(self, inner, func, given, keywords)
        if inner.scope and inner.scope[-1].frame is inner:
            inner.given = dict(inner.env.names)
        return self.body(inner, func)

    def summarised(self, frame: Frame, func: FuncVal, args: list[Value | None], keywords: dict[str, Value]) -> Value:
        """A call of a function whose body is not executed for it, in the frame in which it would have been."""
        self.modes = self.modes._replace(mesh=None)  # it may set one
        names = syntax_parameters.positional_names(func.node.args)
        given = dict(zip(names, (value if value is not None else UNKNOWN for value in args), strict=False)) | keywords
        configs.hand_to(func, given.values())
        if is_closure(func):
            self.enter_now(frame, func)
            effects = self.effects
        else:
            effects = self.apart(func, Frame(func.module, func.module.env)).effects
        if effects.of(func) is None:
            self.effects.called(frame, func, given)
            return UNKNOWN
        return effects.apply(self, frame, func, given)

    def enter_now(self, frame: Frame, func: FuncVal) -> None:
        """Run a function on its own before its turn, because its summary is asked for."""
        if id(func.node) in self.entered or self.entering == MAX_ENTERED or self.active(frame.caller, func):
            return
        found = next((where for each, where in self.functions if each.node is func.node), None)
        if found is not None:
            configured = self.modes
            self.entering += 1
            self.enter(func, found)
            self.entering -= 1
            self.modes = configured

    def constructed(self, obj: Obj) -> Obj:
        """An instance of a project class that a call of the class has just made."""
        sized.give_sizes(self, obj)
        return obj

    def silent(self, module: Module, steps: int) -> Interpreter:
        """An evaluation in a module that has a few steps, and says nothing."""
        inner = Interpreter(self.project, _ignore, module)
        inner.publish = _ignore
        inner.steps = STEPS_PER_MODULE - steps
        return inner

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

    def active(self, frame: Frame | None, func: FuncVal) -> bool:
        """Whether the function is being executed already (recursion)."""
        current = frame
        while current is not None:
            if current.func is not None and current.func.key == func.key:
                return True
            current = current.caller
        return False

    # -- transforms ----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def failing(self) -> Generator[None, None, None]:
        """Code that is meant to fail runs in here: nothing of it is published, nor what it defines seen on its own."""
        publish = self.publish
        queues: tuple[list[Any], ...] = (self.functions, self.transforms)
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
        """Run a function value under a transform; ``receiver`` is the ``self`` of a decorated method, an argument like
        any other.
        """
        return tracing.run_under(self, frame, applied, func, args, keywords, node, receiver)

    # -- statements ----------------------------------------------------------------------------------------------------

    def block(self, frame: Frame, body: Sequence[ast.stmt]) -> bool:
        """Execute statements; whether the block certainly ends the function or the loop iteration."""
        for statement in body:
            self.steps += 1
            if self.steps > STEPS_PER_MODULE:
                raise Budget
            handler = self.executors.get(type(statement))
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
