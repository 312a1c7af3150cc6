"""How many results there are, and how many names take them (NNX462): of scans and loops, of functions under a
transform or not, of splits of keys, and of what a step of a loop carries.

Invariants: only what is certain of a value counts: a tuple that is known whole, the number that a literal says; a name
that may be bound to another function by the time of the call says nothing.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal, Transformed
from nnx_lint.model.classes import UserClass
from nnx_lint.model.containers import Seq
from nnx_lint.model.elements import as_tuple
from nnx_lint.model.events import Called, Unpacked, Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.loops import CARRYING, STEPPING
from nnx_lint.model.parts import FUNCTIONS as DIVIDING
from nnx_lint.model.states import StateVal
from nnx_lint.model.values import Array, Ext, Obj, Value
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.autodiff.gradients import gradient_call, unpacks_call
from nnx_lint.rules.callees import called_value, is_of_only_base
from nnx_lint.rules.filters.results import parts_of
from nnx_lint.rules.intermediates.reading import CAPTURE
from nnx_lint.rules.program import (
    FUNCTIONS,
    assigned_in,
    canonical_of,
    enclosing,
    in_test,
    is_tried,
    own_nodes,
    resolved,
)
from nnx_lint.rules.randomness.keys import keys_made
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import autodiff as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module


Target = ast.Tuple | ast.List


@judges(rules.GRADIENT_RESULTS, Unpacked, when=unpacks_call)
def results_unpacked(event: Unpacked, report: Reporter) -> None:
    """More or fewer names than results: of a scan, of a function that returns a tuple, of a step, whose result is one
    number besides what it changes in place.
    """
    value, call, frame = event.value, event.value_node, event.frame
    if not isinstance(call, ast.Call) or in_test(frame):
        return
    func = resolved(frame.env, call.func)
    known: tuple[int, str, str] | None = None
    if isinstance(func, Ext) and func.name == "jax.lax.scan":
        known = 2, "`carry, ys`", "carry, ys"
    elif isinstance(func, Ext) and func.name == "jax.random.split":
        known = _number_of_keys(call)
    elif (
        isinstance(func, (FuncVal, Transformed, Obj))
        or (isinstance(func, Ext) and (func.name in CARRYING or func.name in DIVIDING))
        or (isinstance(value, Seq) and _is_own_method(frame, called_value(frame.env, call.func)))
        or (isinstance(value, Seq) and isinstance(frame.cls, UserClass) and is_of_only_base(frame.cls, call.func))
    ):
        known = _number_of_results(value)
    captured = isinstance(func, Transformed) and func.applied.row.name == CAPTURE  # NNX644 counts its types
    if known is None or captured or parts_of(value) is not None:
        return  # NNX313 counts what a split gives
    target, count = event.target, event.count
    several = isinstance(value, Seq) and not isinstance(func, Ext)
    if known[0] == count and several and isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, Seq):
        target, count, known = _within(target, value) or (target, count, known)
    if known[0] == count or _is_off_by_one(func, value, call, count):
        return
    unclear = not isinstance(func, Ext) and (_is_bound_again(frame, call.func) or _is_given_heir(frame, call))
    if not unclear and not is_tried(frame.module, call):
        _, results, mend = known
        problem = f"{count} names take {'it' if mend == 'value' else 'them'}"
        report(
            frame.module,
            target,
            transform=text_of(call.func),
            aux="",
            verb="returns" if target is event.target else "returns in that place",
            results=results,
            problem=problem,
            mend=mend,
        )


def _within(target: Target, value: Seq) -> tuple[Target, int, tuple[int, str, str]] | None:
    """The names within brackets of their own that take another number of values than stand in their place."""
    for inner, held in zip(target.elts, value.items, strict=False):
        if isinstance(inner, (ast.Tuple, ast.List)) and not any(isinstance(item, ast.Starred) for item in inner.elts):
            found = _number_of_results(held) if isinstance(held, Seq) else None
            if found is not None and found[0] != len(inner.elts):
                return inner, len(inner.elts), found
    return None


def _is_off_by_one(func: Value | None, value: Value, call: ast.Call, count: int | None) -> bool:
    """Whether an array is split at places, for as many names as there are places: NNX825 says so."""
    at_places = isinstance(func, Ext) and func.name.endswith("numpy.split") and len(call.args) > 1
    listed = at_places and isinstance(call.args[1], (ast.List, ast.Tuple))
    return listed and isinstance(value, Seq) and count == len(value.items) - 1


def _is_own_method(frame: Frame, method: Value | None) -> bool:
    """Whether a method of the project is called that no heir of its class has another one for."""
    cls = method.cls if isinstance(method, FuncVal) and not method.decorators else None
    if not isinstance(cls, UserClass) or not isinstance(method, FuncVal) or cls.is_open or cls.opaque:
        return False
    heirs = frame.module.project.heirs
    if heirs.mix(cls.name):
        return False  # what comes first among several bases may have one
    below = (item for heir in heirs.of(cls.name) for item in heir.body)
    return not any(isinstance(item, FUNCTIONS) and item.name == method.name for item in below)


def _is_bound_again(frame: Frame, func: ast.expr) -> bool:
    """Whether a name may be another function where it is called: a closure has what a name was bound to last."""
    return isinstance(func, ast.Name) and assigned_in(frame.module.tree)[func.id] > 1


def _is_given_heir(frame: Frame, call: ast.Call) -> bool:
    """Whether a method hands its object on, which may be of a class that has other methods."""
    owner = frame.receiver
    if not isinstance(owner, Obj) or not any(resolved(frame.env, item) is owner for item in call.args):
        return False
    return bool(frame.module.project.heirs.of(owner.cls.name))


def _number_of_keys(call: ast.Call) -> tuple[int, str, str] | None:
    """The same of the keys that ``jax.random.split`` makes, where that is known."""
    count = keys_made(call)
    named = ", ".join(f"key{place}" for place in range(1, (count or 0) + 1))
    return (count, f"{count} keys", named) if count is not None and count > 1 else None


def _letters(count: int) -> str:
    """Names for that many values."""
    return ", ".join("abcdefghijklmnop"[:count])


@judges(rules.GRADIENT_RESULTS, Unpacked, when=unpacks_call)
def gradients_of_one(event: Unpacked, report: Reporter) -> None:
    """``loss, (grads_a, grads_b)`` of a function that is differentiated by one of its arguments."""
    call, target, held = event.value_node, event.target, event.value
    name, aux, text = gradient_call(event.frame, call.func) if isinstance(call, ast.Call) else (None, None, "")
    if name is None or aux is None or not isinstance(target, (ast.Tuple, ast.List)) or event.count != 2:
        return
    place = 1 if name.endswith("value_and_grad") else 0
    taken = target.elts[place]
    if (
        not (place or aux)
        or not isinstance(taken, (ast.Tuple, ast.List))
        or not isinstance(held, Seq)
        or not held.exact
    ):
        return
    if len(held.items) == 2 and isinstance(held.items[place], StateVal) and not is_tried(event.frame.module, target):
        problem, mend = f"{len(taken.elts)} names take them", "value, (first, second)` with `argnums=(0, 1)"
        say = partial(report, event.frame.module, taken, transform=text, problem=problem, mend=mend)
        say(aux="", verb="gives", results="the gradients of one argument")


@judges(rules.GRADIENT_RESULTS, Unpacked)
def parts_of_carry(event: Unpacked, report: Reporter) -> None:
    """More or fewer names than parts of what a loop carries, which a step takes apart."""
    name, frame = event.value_node, event.frame
    scope = frame.scope[-1] if frame.scope and frame.traced is frame else None
    if scope is None or event.count is None or not isinstance(name, ast.Name) or scope.row.name not in STEPPING:
        return
    if frame.doubts:
        return  # `if cached:` may tell what each of the loops that run the step carries
    parts, given = event.value, frame.given.get(name.id)
    if isinstance(parts, Seq) and parts is given and parts.type == "tuple" and parts.exact and not parts.shrunk:
        count = len(parts.items)
        if count != event.count and not in_test(frame):
            report(
                frame.module,
                event.target,
                transform=scope.text,
                aux="",
                verb="carries",
                results=f"{count} values",
                problem=f"{event.count} names take them",
                mend=_letters(count),
            )


@judges(rules.GRADIENT_RESULTS, Unpacked, when=lambda event: isinstance(event.value_node, ast.Name))
def rest_of_keys(event: Unpacked, report: Reporter) -> None:
    """More or fewer names than the keys that ``key, *keys = jax.random.split(key, n)`` leaves for ``keys``."""
    name, frame = event.value_node, event.frame
    scope = frame.func.node if frame.func is not None else frame.module.tree
    found = _rests(scope).get(name.id) if event.count is not None and isinstance(name, ast.Name) else None
    if found is None or not isinstance(name, ast.Name) or assigned_in(scope)[name.id] != 1:
        return
    call, others = found
    made = keys_made(call) if canonical_of(frame.env, call.func) == "jax.random.split" else None
    if made is not None and made - others != event.count and not is_tried(frame.module, name):
        count, problem = made - others, f"{event.count} names take them"
        say = partial(report, frame.module, event.target, transform=name.id, problem=problem)
        say(aux="", verb="holds", results=f"{count} of the {made} keys", mend=_letters(count))


@remembered
def _rests(scope: ast.AST) -> dict[str, tuple[ast.Call, int]]:
    """The names that take what is left of several results, each with the call and how many others there are."""
    found: dict[str, tuple[ast.Call, int]] = {}
    for node in own_nodes(scope):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Tuple) and isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            for item in target.elts:
                if isinstance(item, ast.Starred) and isinstance(item.value, ast.Name):
                    found[item.value.id] = node.value, len(target.elts) - 1
    return found


@judges_calls(rules.GRADIENT_RESULTS, "builtins.float", "builtins.int", "builtins.round")
def number_of_several(event: Called, report: Reporter) -> None:
    """``float(loss)`` of what a step returns beside something else."""
    if len(event.nodes) == 1 and event.args[0] is not None:
        _taken_for_number(event.frame, event.nodes[0], event.args[0], f"`{event.name}` takes one", report)


@judges(rules.GRADIENT_RESULTS, Used, when=lambda event: event.what == "a format", of=(Seq,))
def format_of_several(event: Used, report: Reporter) -> None:
    """``f"{loss:.3f}"`` of such a pair."""
    node = event.node if isinstance(event.node, ast.expr) else None
    if node is not None:
        _taken_for_number(event.frame, node, event.value, "has no format for numbers", report)


def _taken_for_number(frame: Frame, node: ast.expr, value: Value, problem: str, report: Reporter) -> None:
    """Report a name for several results that is taken for the first of them."""
    count, results, _ = _number_of_results(value) or (0, "", "")
    if count < 2 or not isinstance(node, (ast.Name, ast.Call)) or in_test(frame) or is_tried(frame.module, node):
        return
    say = partial(report, frame.module, node, aux="", results=results, problem=problem)
    if isinstance(node, ast.Call):
        say(transform=text_of(node.func), verb="returns", mend="value, *rest")
    elif not _is_asked_about(frame.module, node):
        say(transform=node.id, verb="is", mend=f"{node.id}, *rest")


def _is_asked_about(module: Module, name: ast.Name) -> bool:
    """Whether a function asks what a name stands for, as ``isinstance`` does: it expects values of several kinds."""
    scope = enclosing(module, name, *FUNCTIONS)
    tests = [node.test for node in own_nodes(scope) if isinstance(node, (ast.If, ast.IfExp))] if scope else []
    calls = (part for test in tests for part in walk(test) if isinstance(part, ast.Call))
    return any(
        is_name(argument, name.id)
        for call in calls
        if not (isinstance(call.func, ast.Name) and call.func.id in NUMBERS)
        for argument in call.args
    )


NUMBERS = frozenset({"abs", "bool", "float", "int", "max", "min", "round"})
"""Functions that compute with a number, and ask nothing about it."""


def _is_one_module(value: Obj) -> bool:
    """Whether a value is a module that was made in the program, and has no elements."""
    known = value.cls.derives_from("nnx.Module") and not value.assumed and not value.cls.is_open
    elements = ("__iter__", "__getitem__", "__getattr__")
    return known and isinstance(value.cls, UserClass) and all(value.cls.find(name) is None for name in elements)


def _number_of_results(value: Value) -> tuple[int, str, str] | None:
    """How many results a value certainly is, how a message calls them, and names for them."""
    if isinstance(value, Array) and value.form is not None and value.form.shape == ():
        return 0, "one number", "value"
    if isinstance(value, Obj) and _is_one_module(value):
        return 0, f"one {value.cls.name}", "value"
    value = as_tuple(value) if isinstance(value, Obj) else value
    several = isinstance(value, Seq) and (value.type == "tuple" or (value.type == "list" and value.node is None))
    if several and isinstance(value, Seq) and value.exact and not value.shrunk and len(value.items) > 1:
        count = len(value.items)
        return count, f"{count} values", _letters(count)
    return None
