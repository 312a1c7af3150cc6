"""Frames: a function being executed abstractly, and the trace scopes around it."""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from nnx_rules.transforms import COMPILING_ONLY, DIFFERENTIATING, HANDING_ON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.callables import FuncVal, TransformVal
    from nnx_lint.model.classes import ClassBase
    from nnx_lint.model.effects import Summary
    from nnx_lint.model.events import Mutated
    from nnx_lint.model.modules import Env, Module
    from nnx_lint.model.values import (
        Obj,
        Value,
    )
    from nnx_rules.transforms import Transform


ROUND = -1
"""The arm of a loop that is its body: what stands in it may follow what comes after it."""

MAX_LED = 3
"""Of how many calls one within the other it is known that a program runs there."""


class TraceScope:
    """A transform that is running: objects of a lower level than ``level`` are captured by its function.

    ``held`` are captured objects that the function brings along without naming them in a scope, each with how: the
    instance that is itself ``transformed``, that of a ``bound`` method, an argument of a ``partial``.
    ``reads`` are captured objects that the function names, each with the frame and the expression, ``changes`` what it
    changes. ``within`` are transforms that the function was under before, from the outside in. ``whole`` is the scope
    that this one is another view of, or itself: views of one scope are equal.
    """

    __slots__ = ("_whole", "applied", "changes", "frame", "held", "level", "reads", "within")

    def __init__(
        self,
        applied: TransformVal,
        level: int,
        held: tuple[tuple[Value, str], ...] = (),
        within: tuple[TransformVal, ...] = (),
    ) -> None:
        self.applied = applied
        self.within = within
        self.level = level
        self.held = held
        self.frame: Frame | None = None
        self.reads: list[tuple[Frame, ast.expr, Obj]] = []
        self.changes: list[Mutated] = []
        self._whole: TraceScope | None = None  # not itself: nobody would collect it

    @property
    def whole(self) -> TraceScope:
        return self._whole or self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TraceScope) and self.whole is other.whole

    def __hash__(self) -> int:
        return id(self.whole)

    def views(self) -> Iterator[TraceScope]:
        """The same run for each transform that the function was under before, ``nnx.jit(nnx.vmap(f))``, as long as
        those around it only compile what it makes. For a gradient it is enough that its function gets what it is called
        with, an example at a time: ``jax.vmap(jax.grad(f))``.
        """
        around, compiled = self.applied, True
        for place, inner in enumerate(self.within, start=1):
            compiled = compiled and around.row.name in COMPILING_ONLY
            if not compiled and around.row.name not in HANDING_ON:
                return
            around = inner
            if not compiled and inner.row.name not in DIFFERENTIATING:
                continue
            view = TraceScope(inner, self.level, self.held, self.within[place:])
            view._whole, view.frame, view.reads, view.changes = self.whole, self.frame, self.reads, self.changes
            yield view

    @property
    def row(self) -> Transform:
        return self.applied.row

    @property
    def text(self) -> str:
        return self.applied.text

    @property
    def lifts(self) -> bool:
        """Whether captured NNX objects become inputs, as under the transforms of nnxkit; not of flax and jax."""
        return self.row.lifts_captures and self.applied.module.provider == "nnxkit"


class Frame:
    """A function (or module or class body) being executed.

    ``doubts`` counts the reasons why the present statement may not run although the function does (a condition that is
    not known, an early return), ``supposed`` those of them that only ask whether an optional part of a model is there;
    ``exits`` the returns, breaks and continues seen so far.
    ``discards`` is the expression of the present statement, where that is an expression.
    ``branches`` are the arms of ``if``, ``try`` and the like that lead to the present statement, outermost first, as
    (node id, arm) pairs. ``call`` is the call expression in the caller that made this frame, ``None`` for entries;
    ``scope`` is the innermost trace scope. ``summary`` is that of a function that runs on its own, ``given`` what its
    parameters were bound to, of one under a transform too.
    """

    __slots__ = (
        "abroad",
        "branches",
        "call",
        "caller",
        "cls",
        "depth",
        "discards",
        "doubts",
        "env",
        "exits",
        "func",
        "given",
        "initializing",
        "level",
        "module",
        "receiver",
        "results",
        "scope",
        "summary",
        "supposed",
        "yielded",
    )

    def __init__(
        self,
        module: Module,
        env: Env,
        *,
        func: FuncVal | None = None,
        caller: Frame | None = None,
        call: ast.AST | None = None,
        level: int = 0,
        scope: tuple[TraceScope, ...] = (),
        cls: ClassBase | None = None,
        receiver: Value | None = None,
    ) -> None:
        self.module = module
        self.env = env
        self.func = func
        self.caller = caller
        self.call = call
        self.level = level
        self.scope = scope
        self.cls = cls
        self.receiver = receiver
        self.abroad: int = caller.abroad if caller is not None else 0
        self.depth: int = caller.depth + 1 if caller is not None else 0
        self.branches: tuple[tuple[int, int], ...] = caller.branches if caller is not None else ()
        self.results: list[Value] = []
        self.summary: Summary | None = None
        self.given: dict[str, Value] = {}
        self.doubts = 0
        self.supposed = 0
        self.exits = 0
        self.discards: ast.expr | None = None
        self.yielded: list[Value] = []
        self.initializing: Obj | None = caller.initializing if caller is not None else None

    def bind(self, name: str, value: Value) -> None:
        """Bind a name in the scope of the frame, or in that of the module where it is declared ``global``."""
        scope = self.module.env if name in self.env.globals else self.env
        scope.names[name] = value

    @property
    def traced(self) -> Frame | None:
        """The frame of the function that runs under the innermost transform."""
        return self.scope[-1].frame if self.scope else None

    @property
    def name(self) -> str:
        return self.func.name if self.func is not None else f"module {self.module.name}"

    def outwards(self) -> Iterator[Frame]:
        """What runs: this, what called it, and so on, by a written call or not."""
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.caller

    def rounds(self) -> frozenset[int]:
        """The loops in a round of which this runs, by the identities of their nodes."""
        return frozenset(node for node, arm in self.branches if arm == ROUND)

    @property
    def is_led(self) -> bool:
        """Whether a program runs: the body of a module, its main(), or what that calls, such as a trainer that trains
        an epoch.
        """
        if (self.caller or self).func is None:
            return True
        callers = [each for each, _ in itertools.islice(self.callers(), MAX_LED + 1)]
        return 0 < len(callers) <= MAX_LED and callers[-1].func is None

    def callers(self) -> Iterator[tuple[Frame, ast.AST]]:
        """The frames that led here by calls, innermost first, each with the call that it made."""
        frame = self
        while frame.caller is not None and frame.call is not None:
            yield frame.caller, frame.call
            frame = frame.caller

    def crossed(self, level: int, *, tracked: bool = True) -> TraceScope | None:
        """The outermost running transform that captures objects of ``level`` without lifting them, or ``None``.

        Only NNX objects are ``tracked``: nothing lifts plain lists and objects.
        """
        for scope in self.scope:
            if scope.level > level and not (tracked and scope.lifts):
                return scope
        return None

    @property
    def doubtful(self) -> bool:
        """Whether the present statement may not run although the outermost function does."""
        return self.doubts > 0 or (self.caller is not None and self.caller.doubtful)

    def certain_within(self, scope: TraceScope) -> bool:
        """Whether the present statement runs whenever the traced function reaches the call that leads here, in a model
        that has the optional parts that the conditions on the way ask for.
        """
        frame: Frame | None = self
        while frame is not None and frame is not scope.frame:
            if frame.doubts > frame.supposed:
                return False
            frame = frame.caller
        return True

    def place_within(self, scope: TraceScope, node: ast.AST) -> tuple[Module, ast.AST]:
        """Where to report what happens at ``node``: the call in the traced function itself that leads there."""
        frame: Frame = self
        place = node
        while (
            frame is not scope.frame
            and frame.caller is not None
            and frame.call is not None
            and len(frame.caller.scope) >= 1
        ):
            if scope not in frame.caller.scope:
                break
            place = frame.call
            frame = frame.caller
        return frame.module, place
