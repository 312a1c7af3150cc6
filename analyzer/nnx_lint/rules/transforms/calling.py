"""How transforms are called, and what functions they take (NNX403, NNX406, NNX419, NNX430, NNX431, NNX450).

Invariants: what a transform gets is judged by what the value is, never by how many arguments a caller might mean.
"""

from __future__ import annotations

import ast
import difflib
import itertools
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Fix, Span
from nnx_lint.model.callables import CALLABLES, BoundMethod, FuncVal
from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import Called, Ran, TransformApplied
from nnx_lint.model.expressions import text_of
from nnx_lint.model.forms import literal
from nnx_lint.model.modes import of_transform
from nnx_lint.model.states import StateVal
from nnx_lint.model.values import Array, Const, Obj, Value
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.callees import TRANSFORMED
from nnx_lint.rules.edits import insert, prepend_argument, replace, unsafe
from nnx_lint.rules.program import ancestors, canonical_of, is_tried
from nnx_lint.rules.traces.mutation import add_keyword
from nnx_lint.rules.transforms.mapping import calls_transformed, transformed_by
from nnx_lint.rules.transforms.scanning import new_attribute
from nnx_lint.rules.updates.ownership import Change, changes_of
from nnx_rules import layers
from nnx_rules.rules import transforms as rules
from nnx_rules.shape_algebra import is_whole
from nnx_rules.transforms import FORMER_OPTIONS, OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.modules import Module
    from nnx_rules.shapes import Shape

# -- transforms that wrap ----------------------------------------------------------------------------------------------

WRAPPERS = (
    *("nnx.jit", "nnx.vmap", "nnx.pmap", "nnx.grad", "nnx.value_and_grad", "nnx.scan", "nnx.remat", "nnx.shard_map"),
    *("nnx.custom_vjp", "nnx.checkpoint"),
)
"""Transforms that take a function by position, and all else by keyword."""


WRAPPED = "a function and options, and returns a function"
"""What a transform takes that wraps a function."""

RENAMED = (0, 10)
"""The version of flax in which the options of transforms were renamed for good."""


@judges_calls(rules.TRANSFORM_OPERANDS, *WRAPPERS)
def operands_at_transform(event: Called, report: Reporter) -> None:
    node = event.node
    version = report.runs_on(event.frame.module)[1]
    current = version is None or version >= RENAMED
    if "wrt" in event.keywords and event.subject in {"nnx.grad", "nnx.value_and_grad"} and current:
        mend = "say what to differentiate by `argnums=nnx.DiffState(0, filter)`"
        given = "`wrt`, which optimizers take"
        report(event.frame.module, node, transform=event.name, takes=WRAPPED, given=given, mend=mend)
    options = OPTIONS.get((event.subject or "").replace("checkpoint", "remat"))
    foreign = next((name for name in event.keywords if options and name not in options | {"**", "wrt"}), None)
    if options is not None and foreign is not None and current:
        close = difflib.get_close_matches(foreign, options, n=1)
        mend = FORMER_OPTIONS.get(foreign) or (f"it is called `{close[0]}`" if close else "leave it out")
        given = f"an option `{foreign}`, which is none"
        report(event.frame.module, node, transform=event.name, takes=WRAPPED, given=given, mend=mend)
        return
    if len(event.args) < 2 or None in event.args or not isinstance(node, ast.Call):
        return
    report(
        event.frame.module,
        node,
        fix=lambda: called_after(event.frame.module, node),
        transform=event.name,
        takes=WRAPPED,
        given=f"{len(event.args)} positional arguments",
        mend=f"call what it returns: `{event.name}(f)(...)`",
    )


@judges(rules.TRANSFORM_OPERANDS, TransformApplied)
def value_transformed(event: TransformApplied, report: Reporter) -> None:
    node = event.func_node
    if event.transformed is None or event.how != "call" or not isinstance(node, ast.Call):
        return
    func = event.func
    nothing = isinstance(func, Const) and func.value is None
    if isinstance(func, (Array, StateVal, Seq)) or nothing:
        text = text_of(node.func)
        given = f"what `{text}(...)` returns, {func.describe()}"
        mend = f"pass the function, and call the result: `{event.applied.text}({text})(...)`"
        report(event.frame.module, node, transform=event.applied.text, takes=WRAPPED, given=given, mend=mend)


CALLING_BACK = ("jax.debug.callback", "jax.experimental.io_callback", "jax.pure_callback")
"""Functions that call a function of Python while the compiled program runs."""


@judges_calls(rules.TRANSFORM_OPERANDS, *CALLING_BACK)
def printed_at_once(event: Called, report: Reporter) -> None:
    """A call of ``print``, which runs while JAX traces, in the place of the function."""
    node = event.nodes[0] if event.nodes else None
    if isinstance(node, ast.Call) and canonical_of(event.frame.env, node.func) == "builtins.print":
        mend = f"pass the function, and what it is given after it: `{event.name}(print, ...)`"
        takes, given = "a function to call while the program runs", "what `print(...)` returns, which is None"
        report(event.frame.module, node, transform=event.name, takes=takes, given=given, mend=mend)


EXPORTING = ("jax.export.export",)
"""Functions that take what ``jax.jit`` returns, and no plain function."""


@judges_calls(rules.TRANSFORM_OPERANDS, *EXPORTING)
def exported_as_it_is(event: Called, report: Reporter) -> None:
    """``jax.export.export(serve)(...)`` of a function that is not compiled."""
    given = event.args[0] if event.args else None
    func = given.func if isinstance(given, BoundMethod) else given
    plain = isinstance(func, FuncVal) and not func.decorators
    if given is None or not (plain or (isinstance(given, Obj) and given.cls.derives_from("nnx.Module"))):
        return
    text = text_of(event.nodes[0])
    takes, mend = "what `jax.jit` returns", f"compile it first: `{event.name}(jax.jit({text}))`"
    described = "one that nothing has compiled" if isinstance(func, FuncVal) else given.describe()
    if not is_tried(event.frame.module, event.node):
        report(event.frame.module, event.node, transform=event.name, takes=takes, given=described, mend=mend)


def called_after(module: Module, node: ast.Call) -> Fix | None:
    """Give what follows the function to the function that the transform returns."""
    source = module.source
    if node.keywords or len(node.args) < 2 or any(isinstance(item, ast.Starred) for item in node.args):
        return None
    first, second = source.span(node.args[0]), source.span(node.args[1])
    if source.text[first.end : second.start].strip() != ",":
        return None
    return Fix("Call what it returns", (Edit(Span(first.end, second.start), ")("),))


RESOLVING = frozenset({"nnx.vmap", "nnx.grad", "nnx.value_and_grad", "nnx.scan", "nnx.remat", "nnx.custom_vjp"})
"""Transforms that pass all arguments by position in the default mode of flax."""

KEYWORD_ONLY_LAYERS = {
    "BatchNorm": "mask",
    "Dropout": "deterministic",
    "GroupNorm": "mask",
    "InstanceNorm": "mask",
    "LayerNorm": "mask",
}
"""Layers whose call has a keyword-only parameter, with its name."""


@judges(rules.KEYWORD_ONLY, TransformApplied)
def keyword_only(event: TransformApplied, report: Reporter) -> None:
    applied = event.applied
    if applied.row.name not in RESOLVING or not applied.modes.writes_back:
        return
    name, found = _keyword_only(event.func)
    if found:
        several = "parameters" if len(found) > 1 else "parameter"
        listed = " and ".join(f"`{item}`" for item in found)
        fix = partial(_through_lambda, event) if isinstance(event.func, Obj) else None
        listed = f"{several} {listed}"
        report(event.frame.module, event.node, fix=fix, name=name, parameters=listed, transform=applied.text)


def passes_names(event: Called) -> bool:
    """Whether a function under a transform is called with keywords."""
    return bool(event.keywords) and calls_transformed(event)


@judges_calls(rules.KEYWORD_ONLY, *TRANSFORMED, when=passes_names)
def keyword_of_any_name(event: Called, report: Reporter) -> None:
    """The same for ``**options``, which have no position: it fails where a call gives one."""
    called = transformed_by(event)
    if called is None or called.applied.row.name not in RESOLVING or not called.applied.modes.writes_back:
        return
    func = called.func
    if not isinstance(func, FuncVal) or func.wraps is not None or func.node.args.kwarg is None:
        return
    named = {item.arg for item in (*func.node.args.args, *func.node.args.kwonlyargs)}
    given = next((name for name in event.keywords if name not in named and name != "**"), None)
    if given is not None:
        listed = f"parameters `**{func.node.args.kwarg.arg}`"
        transform = called.applied.text
        report(event.frame.module, event.node, name=func.name, parameters=listed, transform=transform)


ARGUMENTS = ("x", "y", "z")
"""What the parameters of a lambda are called."""


def _through_lambda(event: TransformApplied) -> Fix | None:
    """Transform a function of the object and the arguments, where the result is called at once."""
    module, applied = event.frame.module, event.applied
    call = next(ancestors(module, applied.node), None)
    if not isinstance(applied.node, ast.Call) or not isinstance(call, ast.Call) or call.func is not applied.node:
        return None
    given, source = applied.node.args, module.source
    if len(given) != 1 or applied.node.keywords or call.keywords or not isinstance(given[0], ast.Name):
        return None
    if not 0 < len(call.args) <= len(ARGUMENTS) or applied.row.name not in {"nnx.vmap", "nnx.remat"}:
        return None
    obj, names = given[0].id, ", ".join(ARGUMENTS[: len(call.args)])
    axes = f", in_axes=(None, {', '.join('0' for _ in call.args)})" if applied.row.name == "nnx.vmap" else ""
    first = prepend_argument(source, call, obj)
    function = replace(source, given[0], f"lambda {obj}, {names}: {obj}({names}){axes}")
    return unsafe("Transform a function of the object", (*function, *first)) if first is not None else None


def _keyword_only(func: Value) -> tuple[str, list[str]]:
    """The name of a function and its keyword-only parameters."""
    if isinstance(func, Obj):
        if isinstance(func.cls, LibClass):
            name = func.cls.name
            return name, [KEYWORD_ONLY_LAYERS[name]] if name in KEYWORD_ONLY_LAYERS else []
        found = func.cls.find("__call__") if isinstance(func.cls, UserClass) else None
        return (func.cls.name, _keyword_only(found[1])[1]) if found is not None else ("", [])
    if isinstance(func, FuncVal) and func.wraps is None:
        return func.name, [item.arg for item in func.node.args.kwonlyargs]
    return "", []


# -- branches ----------------------------------------------------------------------------------------------------------


@judges_calls(rules.BRANCHES_IN_SEQUENCE, "nnx.switch", "jax.lax.switch")
def branches_in_sequence(event: Called, report: Reporter) -> None:
    node = event.node
    branches = event.args[1] if len(event.args) > 1 else None
    if isinstance(branches, CALLABLES) and isinstance(node, ast.Call):
        report(
            event.frame.module,
            event.nodes[1],
            fix=lambda: in_list(event),
            transform=event.name,
            given=branches.describe(),
        )


def in_list(event: Called) -> Fix | None:
    """Put the functions into a list."""
    count = next((i for i, item in enumerate(event.args[1:]) if not isinstance(item, CALLABLES)), len(event.args) - 1)
    if None in event.args:
        return None
    source = event.frame.module.source
    first, last = source.span(event.nodes[1]), source.span(event.nodes[count])
    return Fix("Put them into a list", (*insert(first.start, "["), *insert(last.end, "]")))


class Edited:
    """The attributes that the branches of a conditional have added, by call."""

    def __init__(self) -> None:
        self.by_call: dict[int, list[tuple[str, list[tuple[tuple[int, str], Change]]]]] = {}


def is_branch(event: Ran) -> bool:
    """Whether a branch of a conditional has run, and its edits are to come back."""
    return event.scope.row.name in {"nnx.cond", "nnx.switch"} and event.scope.applied.modes.writes_back


@judges(rules.BRANCH_STRUCTURE, Ran, when=is_branch)
def branch_ran(event: Ran, report: Reporter) -> None:
    func = event.scope.frame.func if event.scope.frame is not None else None
    added: list[tuple[tuple[int, str], Change]] = []
    for item in changes_of(event):
        sown = _sown(item)
        action = f"setting `.{sown}`" if sown is not None else item.event.action
        name = new_attribute(action, item.target)
        if name is not None and not item.merged and item.target.template is not None:
            added.append(((id(item.target.template), name), item))
    calls = report.memory(Edited).by_call
    calls.setdefault(id(event.node), []).append((func.name if func is not None else "a branch", added))


def _sown(item: Change) -> str | None:
    """The attribute in which a change keeps what it sows."""
    node = item.event.node
    name = node.args[1] if isinstance(node, ast.Call) and len(node.args) > 1 else None
    sows = item.event.action == "`.sow(...)`" and isinstance(name, ast.Constant) and isinstance(name.value, str)
    return str(name.value) if sows and isinstance(name, ast.Constant) else None


@judges_calls(rules.BRANCH_STRUCTURE, "nnx.cond", "nnx.switch")
def branches_differ(event: Called, report: Reporter) -> None:
    ran = report.memory(Edited).by_call.pop(id(event.node), [])
    for name, added in ran:
        for key, item in added:
            other = next((each for each, theirs in ran if all(key != known for known, _ in theirs)), None)
            if other is not None:
                report(
                    item.module,
                    item.node,
                    path=f"{item.name}.{key[1]}",
                    one="there",
                    first=name,
                    transform=event.name,
                    other="not there",
                    second=other,
                )


class Results:
    """What the branches of a conditional have returned, by call."""

    def __init__(self) -> None:
        self.by_call: dict[int, list[tuple[str, str | None]]] = {}


CONDITIONALS = frozenset({"nnx.cond", "nnx.switch", "jax.lax.cond", "jax.lax.switch"})


def is_conditional(event: Ran) -> bool:
    """Whether a branch of a conditional has run."""
    return event.scope.row.name in CONDITIONALS


@judges(rules.BRANCH_STRUCTURE, Ran, when=is_conditional)
def branch_returned(event: Ran, report: Reporter) -> None:
    func = event.scope.frame.func if event.scope.frame is not None else None
    returned = (func.name if func is not None else "a branch", _structure(event.result))
    report.memory(Results).by_call.setdefault(id(event.node), []).append(returned)


def _structure(value: Value) -> str | None:
    """The structure of a result, where it certainly has no other one."""
    if isinstance(value, Const) and value.value is None:
        return "None"
    if isinstance(value, Array) or (isinstance(value, Const) and isinstance(value.value, (bool, int, float))):
        return "an array"
    if isinstance(value, Seq) and value.type == "tuple" and value.exact:
        return f"a tuple of {len(value.items)}"
    return None


@judges_calls(rules.BRANCH_STRUCTURE, *CONDITIONALS)
def results_differ(event: Called, report: Reporter) -> None:
    ran = [(name, each) for name, each in report.memory(Results).by_call.pop(id(event.node), []) if each is not None]
    first, one = ran[0] if ran else ("", "")
    second, other = next(((name, each) for name, each in ran if each != one), ("", one))
    if other != one:
        report(
            event.frame.module,
            event.node,
            transform=event.name,
            path="the result",
            one=one,
            first=first,
            other=other,
            second=second,
        )


class Forms:
    """What the branches of a conditional have returned, by call: the name of each, and its value."""

    def __init__(self) -> None:
        self.by_call: dict[int, list[tuple[str, Value]]] = {}


@judges(rules.BRANCH_TYPE, Ran, when=is_conditional)
def branch_gave(event: Ran, report: Reporter) -> None:
    func = event.scope.frame.func if event.scope.frame is not None else None
    given = (func.name if func is not None else "a branch", event.result)
    report.memory(Forms).by_call.setdefault(id(event.node), []).append(given)


@judges_calls(rules.BRANCH_TYPE, *CONDITIONALS)
def shapes_differ(event: Called, report: Reporter) -> None:
    ran = report.memory(Forms).by_call.pop(id(event.node), [])
    for (first, one), (second, other) in itertools.pairwise(ran):
        found = next(filter(None, itertools.starmap(_difference, _paired(one, other))), None)
        if found is not None:
            report(
                event.frame.module,
                event.node,
                transform=event.name,
                path="the result",
                one=found[0],
                first=first,
                other=found[1],
                second=second,
            )
            return


def _paired(one: Value, other: Value) -> Iterator[tuple[Value, Value]]:
    """The arrays and numbers in two results of one structure, side by side."""
    if isinstance(one, Seq) and isinstance(other, Seq) and one.exact and other.exact:
        for pair in zip(one.items, other.items, strict=False):
            yield from _paired(*pair)
    elif isinstance(one, (Array, Const)) and isinstance(other, (Array, Const)):
        yield one, other


def _difference(one: Value, other: Value) -> tuple[str, str] | None:
    """In what two arrays or numbers certainly differ, in words."""
    shapes = [literal(each).shape if isinstance(each, Array) else None for each in (one, other)]
    if shapes[0] is not None and shapes[1] is not None and _certainly_differ(shapes[0], shapes[1]):
        return f"of shape {layers.shown(shapes[0])}", f"of shape {layers.shown(shapes[1])}"
    left, right = _dtype(one), _dtype(other)
    if left is None or right is None or left == right:
        return None
    number = isinstance(one, Const) or isinstance(other, Const)
    if number and left.rstrip("0123456789") == right.rstrip("0123456789"):
        return None  # how wide the array of a Python number is, is a setting
    return f"of dtype {left}", f"of dtype {right}"


def _dtype(value: Value) -> str | None:
    """The dtype that an array has, or that JAX gives to a Python number."""
    if isinstance(value, Array):
        return literal(value).dtype
    kinds: dict[type, str] = {bool: "bool", int: "int32", float: "float32"}
    return kinds.get(type(value.value)) if isinstance(value, Const) else None


def _certainly_differ(one: Shape, other: Shape) -> bool:
    """Whether two shapes differ in a dimension of known size, from the last one on, or in how many they have."""
    whole = is_whole(one) and is_whole(other)
    if whole and len(one) != len(other):
        return True
    for left, right in zip(reversed(one), reversed(other), strict=False):
        if not isinstance(left, int) or not isinstance(right, int):
            if any(str(item).startswith("*") for item in (left, right)):
                return False
        elif left != right:
            return True
    return False


# -- modes -------------------------------------------------------------------------------------------------------------


@judges_calls(rules.MODE_RESTRICTED, "nnx.vjp", "nnx.jvp", "nnx.make_jaxpr", "nnx.with_rngs", "nnx.jit_partial")
def other_modes_only(event: Called, report: Reporter) -> None:
    node = event.node
    modes = of_transform(event.subject or "", event.keywords, event.modes)
    if modes.writes_back and event.args and isinstance(node, ast.Call):
        report(
            event.frame.module,
            node,
            fix=lambda: add_keyword(event.frame.module, node, "graph=False"),
            transform=event.name,
            mode="in the default mode, with graph updates,",
            mend="add `graph=False`, or `graph_updates=False`",
        )


@judges_calls(rules.MODE_RESTRICTED, "nnx.cached_partial")
def default_mode_only(event: Called, report: Reporter) -> None:
    modes = of_transform(event.subject or "", event.keywords, event.modes)
    if False in modes:
        report(
            event.frame.module,
            event.node,
            transform=event.name,
            mode="without graph updates",
            mend="use the default mode, or `nnx.jit_partial`",
        )
