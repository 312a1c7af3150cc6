"""How modules are made and called: the arguments of a layer of the library and of a module of the project (NNX838).

Invariants: a call with a starred argument of unknown length is not judged; what a class of the library takes is what
any version takes (:mod:`nnx_rules.signatures`); a module of the project is judged where it certainly is of this very
class, and its function is called as it is written, with no decorator between.
"""

from __future__ import annotations

import ast
import difflib
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.callables import BoundMethod, FuncVal, Transformed
from nnx_lint.model.calls import Arguments
from nnx_lint.model.classes import ClassBase, LibClass, UserClass, method_of
from nnx_lint.model.events import Unpacked
from nnx_lint.model.expressions import text_of
from nnx_lint.model.forms import is_int, literal
from nnx_lint.model.values import NUMBER, Array, ClassVal, Const, HostArray, Obj, ParameterNumber
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.alternatives import has_other_form, is_handed_over
from nnx_lint.rules.bindings import value_of
from nnx_lint.rules.callees import called_value, is_of_only_base
from nnx_lint.rules.intermediates.sowing import is_module
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    binds,
    bound_in,
    canonical_of,
    enclosing,
    given,
    is_asked_for,
    is_called,
    is_chosen,
    is_for_others,
    is_tried,
    names_of_parameters,
    reads_of,
    scopes_around,
)
from nnx_lint.rules.randomness.arguments import constructed, draws, taken_by
from nnx_lint.rules.randomness.reading import is_rngs, stands_for_rngs
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.dotted import last_name
from nnx_rules.api import VARIABLES
from nnx_rules.layers import CELLS
from nnx_rules.names import ARGUMENTS
from nnx_rules.rules import construction as rules
from nnx_rules.signatures import CALL_KEYWORDS, CALL_POSITIONAL, SIGNATURES
from nnx_rules.transforms import HANDING_ON

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.model.events import Called
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value

# -- layers of the library ---------------------------------------------------------------------------------------------


@judges_calls(rules.LAYER_SIGNATURE, *SIGNATURES)
def layer_signature(event: Called, report: Reporter) -> None:
    cls = constructed(event)
    library = cls.made_as if cls is not None else None
    if cls is not None and library is not None:
        _judge_of_library(event, cls, library, given(event), report, streams="rngs")


def _judge_of_library(
    event: Called, cls: ClassBase, library: LibClass, args: Arguments, report: Reporter, streams: str | None
) -> None:
    """Report what a constructor of the library cannot take; another rule judges the argument for ``streams``."""
    signature = SIGNATURES.get(library.canonical)
    if signature is None or args.starred or signature.variadic:
        return
    taken = (*signature.positional, *signature.keywords)
    foreign = next((name for name in event.keywords if name not in taken), None)
    if foreign is not None and not signature.open:
        right = _meant(foreign, taken)
        fix = _keyword(event.frame.module, event.node, foreign, right) if right not in args.keywords else None
        mend = f"it is called `{right}`" if right is not None else f"it takes {_listed(taken)}"
        report(event.frame.module, event.node, fix=fix, cls=cls.name, problem=f"takes no `{foreign}`", mend=mend)
        return
    extra = args.positional[len(signature.positional) :]
    if extra and not any(map(stands_for_rngs, extra)):
        problem = f"takes {_counted(len(signature.positional))} by position, and gets {len(args.positional)}"
        named = [*signature.positional, *(f"{name}=..." for name in signature.keywords[:1])]
        call = f"{cls.name}({', '.join(named)})"
        mend = f"name the rest: `{call}`" if signature.keywords else f"it takes {_listed(taken)}"
        report(event.frame.module, event.node, cls=cls.name, problem=problem, mend=mend)
        return
    required = [name for name in signature.positional if name in signature.required]
    required += [name for name in signature.keywords if name in signature.required and name != streams]
    missing = [name for name in required[len(args.positional) :] if name not in args.keywords]
    if missing and not (
        len(args.positional) and any(name in args.keywords for name in signature.positional[: len(args.positional)])
    ):
        problem = f"is made without `{missing[0]}`"
        mend = f"its sizes are given: `{cls.name}({', '.join(required)})`"
        report(event.frame.module, event.node, cls=cls.name, problem=problem, mend=mend)


MODES = frozenset({"train", "training", "is_training", "deterministic", "inference", "use_running_average"})
"""Flags by which layers, here and elsewhere, are told whether they are trained."""


@judges_calls(rules.LAYER_SIGNATURE, "()")
def layer_call_signature(event: Called, report: Reporter) -> None:
    cls = event.callee.cls if isinstance(event.callee, Obj) else None
    library = cls.called_as if cls is not None else None
    taken = CALL_KEYWORDS.get(library.name) if library is not None else None
    if taken is None or cls is None or library is None:
        return
    foreign = next((name for name in event.keywords if name != "**" and name not in taken), None)
    if foreign is None:
        most = CALL_POSITIONAL.get(library.name)
        if most is not None and None not in event.args and len(event.args) > most and is_meant(event):
            problem = f"takes {_counted(most)} by position when it is called, and gets {len(event.args)}"
            mend = f"name the rest: {_listed(sorted(taken))}"
            report(event.frame.module, event.node, cls=cls.name, problem=problem, mend=mend)
        return
    if foreign in MODES:
        right = next((name for name in taken if name in MODES), None)
        mend = f"it is called `{right}`, and true where nothing is learned" if right else "leave it out"
    else:
        close = _meant(foreign, sorted(taken))
        mend = f"it is called `{close}`" if close is not None else f"it takes {_listed(sorted(taken))}"
    report(event.frame.module, event.node, cls=cls.name, problem=f"takes no `{foreign}` when it is called", mend=mend)


@judges_calls(rules.LAYER_SIGNATURE, "()", "nnx.dot_product_attention")
def mask_by_position(event: Called, report: Reporter) -> None:
    """A mask in the place of keys, or of a bias."""
    node = misplaced_mask(event)
    if node is not None and is_meant(event):
        place = event.nodes.index(node)
        name = event.callee.cls.name if isinstance(event.callee, Obj) else event.name
        mend = f"name it: `mask={event.frame.module.source.segment(node)}`"
        problem = f"takes `{_before_mask(event)[place]}` as argument {place + 1}, and gets a mask"
        report(event.frame.module, node, cls=name, problem=problem, mend=mend)


def misplaced_mask(event: Called) -> ast.expr | None:
    """The argument of attention that is a mask, and in the place of another one."""
    callee = event.callee
    library = callee.cls.called_as if isinstance(callee, Obj) else None
    attention = library is not None and library.canonical == "nnx.MultiHeadAttention"
    if (isinstance(callee, Obj) and not attention) or "mask" in event.keywords:
        return None
    given = (event.nodes[place] for place in _before_mask(event) if place < len(event.nodes))
    return next((node for node in given if _is_mask(event, node)), None)


def _is_mask(event: Called, node: ast.expr) -> bool:
    """Whether an argument is called a mask, or what makes one is called right there."""
    text = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    made = isinstance(node, ast.Call) and canonical_of(event.frame.env, node.func) in MASKS
    return made or text.rpartition("_")[2] == "mask"


def _before_mask(event: Called) -> dict[int, str]:
    """The positions that people take for that of the mask, and whose they are; Linen's attention has no values."""
    return {1: "inputs_k", 2: "inputs_v"} if isinstance(event.callee, Obj) else {3: "bias"}


MASKS = frozenset({"nnx.combine_masks", "nnx.make_attention_mask", "nnx.make_causal_mask"})
"""Functions that make masks."""


def _keyword(module: Module, node: ast.AST, name: str, right: str | None) -> Fix | None:
    for item in node.keywords if isinstance(node, ast.Call) else ():
        if item.arg == name and right not in {"rngs", None}:
            start = module.source.span(item).start
            edit = Edit(Span(start, start + len(name)), str(right))
            return Fix(f"Write `{right}`", (edit,), Applicability.UNSAFE)
    return None


def _meant(name: str, taken: Sequence[str]) -> str | None:
    """The argument that a foreign or misspelled name stands for."""
    right = ARGUMENTS.get(name)
    if right is not None and right in taken:
        return right
    return next(iter(difflib.get_close_matches(name, taken, n=1, cutoff=CLOSE)), None)


CLOSE = 0.75
"""How alike two names must be (:func:`difflib.get_close_matches`) for one to be a slip of the other."""


def _listed(names: Sequence[str]) -> str:
    shown = [f"`{name}`" for name in names] or ["none"]
    return ", ".join(shown[:MAX_SHOWN]) + (", ..." if len(shown) > MAX_SHOWN else "")


MAX_SHOWN = 6
"""How many arguments a message lists."""


def _counted(number: int) -> str:
    return f"{number} argument{'s' if number != 1 else ''}"


# -- modules of the project --------------------------------------------------------------------------------------------


@judges_calls(rules.LAYER_SIGNATURE, "class")
def module_made(event: Called, report: Reporter) -> None:
    cls, args = constructed(event), given(event)
    if not isinstance(cls, UserClass) or not _is_judged(cls) or cls.find("__new__") is not None:
        return
    if cls.is_open or cls.opaque or cls.remade or cls.replaced_init or cls.generated_init or not _is_this(event, cls):
        return
    if any(not name.startswith(KEEPING) for item in cls.lineage for name in item.decorators):
        return  # it may have got another constructor
    found = method_of(cls, "__init__")
    needed = taken_by(cls)
    told = needed is not None and (draws(cls) or any(map(stands_for_rngs, args.positional)))  # by another rule
    streams = needed.name if needed is not None and told else None
    problem = unfit(found[1], args, streams, made="made") if found else None
    if problem is not None and is_meant(event):
        report(event.frame.module, event.node, cls=cls.name, problem=problem.text, mend=problem.mend)


KEEPING = (
    *("abc.", "attr.", "attrs.", "beartype.", "builtins.", "chex.", "dataclasses.", "flax.", "functools.", "jax."),
    *("jaxtyping.", "nnx.", "pytest.", "typeguard.", "typing.", "typing_extensions."),
)
"""How decorators of classes begin that leave a constructor as it is, or make one that is known."""


def _is_judged(cls: ClassBase) -> bool:
    """Whether how instances of a class are made and called is judged: modules, and plain objects such as trainers."""
    return cls.library is None or cls.derives_from("nnx.Module")


def _is_this(event: Called, cls: UserClass) -> bool:
    """Whether a call certainly makes an instance of this very class: by its name, or as what a parameter was given, or
    a registry holds, where no condition chooses what to call. By another name it may be a class below.
    """
    func, module = event.node.func if isinstance(event.node, ast.Call) else None, event.frame.module
    if isinstance(func, ast.Attribute):
        return func.attr == cls.name
    if not isinstance(func, (ast.Name, ast.Subscript)) or (isinstance(func, ast.Name) and func.id == cls.name):
        return isinstance(func, ast.Name)
    taken = value_of(module, func) or func
    if is_chosen(module, func) or is_chosen(module, taken):
        return False
    if isinstance(taken, ast.Subscript):
        scope = enclosing(module, func, *FUNCTIONS)
        named = isinstance(taken.value, (ast.Attribute, ast.Name))
        return named and (taken is func or _only_called(module, scope, func))
    owner = next((each for each in scopes_around(module, func) if binds(each, text_of(func))), None)
    if not isinstance(owner, FUNCTIONS) or text_of(func) not in names_of_parameters(owner):
        return False
    if bound_in(owner)[text_of(func)] or not _only_called(module, owner, func):
        return False
    method = isinstance(next(ancestors(module, owner), None), ast.ClassDef) and text_of(func) == "cls"
    return not method or not module.project.heirs.exist(cls.name)


def _only_called(module: Module, scope: ast.AST | None, name: ast.expr) -> bool:
    """Whether a function does nothing with what has a name but call it: it does not ask which class that is."""
    return scope is not None and all(is_called(module, read) for read in reads_of(scope, text_of(name)))


@judges_calls(rules.LAYER_SIGNATURE, ".__init__")
def base_made(event: Called, report: Reporter) -> None:
    """A constructor that calls the one of its base, of which there is one."""
    callee, cls = event.callee, event.frame.func.cls if event.frame.func is not None else None
    receiver = callee.receiver if isinstance(callee, BoundMethod) else None
    if not isinstance(cls, UserClass) or not isinstance(callee, BoundMethod) or receiver is not event.frame.receiver:
        return
    if not isinstance(receiver, Obj) or receiver.cls is not cls or len(cls.node.bases) != 1:
        return
    base, func = cls.ancestors[1] if len(cls.ancestors) > 1 else None, callee.func
    if isinstance(base, LibClass) and func is None:
        if is_meant(event):
            _judge_of_library(event, base, base, given(event), report, streams=None)
            _judge_of_nothing(event, cls, base, given(event), report)
    elif isinstance(base, UserClass) and isinstance(func, FuncVal) and not base.is_open and not base.opaque:
        owner = base.find("__init__")
        problem = unfit(func, given(event), None, made="made") if owner is not None and owner[1] is func else None
        if problem is not None and not base.remade and not base.replaced_init and is_meant(event):
            report(event.frame.module, event.node, cls=base.name, problem=problem.text, mend=problem.mend)


def _judge_of_nothing(event: Called, cls: UserClass, base: LibClass, args: Arguments, report: Reporter) -> None:
    """Report arguments for the constructor of ``nnx.Module`` itself, which is that of ``object``.

    In a class below with several bases ``super()`` may be another one of them.
    """
    mixed = cls.module.project.heirs.mix(cls.name)
    if base.canonical in BARE and not mixed and not args.starred and (args.positional or args.keywords):
        fix = _without_arguments(event.frame.module, event.node)
        mend = "write `super().__init__()`, or leave the call out: the constructor sets its attributes itself"
        report(event.frame.module, event.node, fix=fix, cls=base.canonical, problem="takes no arguments", mend=mend)


BARE = frozenset({"nnx.Module", "nnx.Object", "nnx.Pytree"})
"""Classes without a constructor of their own."""


def _without_arguments(module: Module, node: ast.AST) -> Fix | None:
    if not isinstance(node, ast.Call):
        return None
    start = module.source.span(node.func).end
    return Fix("Pass nothing", (Edit(Span(start, module.source.span(node).end), "()"),), Applicability.UNSAFE)


CALLING = {
    "nnx.tabulate": "give it an example of what the module takes: `nnx.tabulate(model, x)`",
    "nnx.eval_shape": "for the shapes of the module itself it takes a function: `nnx.eval_shape(lambda: {}(...))`",
}
"""Functions that call a module, and what to write instead of a call that does not fit."""

TABLE_OPTIONS = frozenset(
    {"column_kwargs", "compute_flops", "compute_vjp_flops", "console_kwargs", "depth", "row_filter", "table_kwargs"}
)
"""What `nnx.tabulate` takes itself by name."""


@judges_calls(rules.LAYER_SIGNATURE, "()", BoundMethod)
def module_called(event: Called, report: Reporter) -> None:
    callee = event.callee
    obj: Value = callee
    func: Value | None = None
    label = ""
    if isinstance(callee, BoundMethod):
        obj, func, label = callee.receiver, callee.func, f".{callee.name}"
    elif isinstance(obj, Obj) and isinstance(obj.cls, UserClass) and (found := obj.cls.find("__call__")) is not None:
        func = found[1]
    func = _handed_to(func)
    if not isinstance(obj, Obj) or not isinstance(func, FuncVal) or not _is_judged(obj.cls) or label.startswith(".__"):
        return
    if obj.assumed or obj.origin is None or not isinstance(obj.cls, UserClass) or obj.cls.is_open or obj.cls.opaque:
        return
    problem = unfit(func, given(event), None, made="called")
    if problem is not None and is_meant(event):
        when = " when it is called" if not label and "called" not in problem.text else ""
        name = f"{obj.cls.name}{label}"
        report(event.frame.module, event.node, cls=name, problem=f"{problem.text}{when}", mend=problem.mend)


def _handed_to(func: Value | None) -> Value | None:
    """The function that gets what a method is called with, which may be under a transform: ``@nnx.jit``."""
    while isinstance(func, Transformed) and func.applied.row.name in HANDING_ON:
        func = func.func
    return func


@judges_calls(rules.LAYER_SIGNATURE, BoundMethod)
def base_called(event: Called, report: Reporter) -> None:
    """A method that calls the one of its base, of which there is one: ``super().__call__(x)``."""
    callee, node = event.callee, event.node
    cls = event.frame.func.cls if event.frame.func is not None else None
    if not isinstance(node, ast.Call) or not isinstance(callee, BoundMethod) or callee.name == "__init__":
        return
    if not isinstance(cls, UserClass) or cls.is_open or cls.opaque or not is_of_only_base(cls, node.func):
        return
    func, receiver = _handed_to(callee.func), callee.receiver
    if not isinstance(receiver, Obj) or not isinstance(func, FuncVal):
        return
    if receiver is not event.frame.receiver or receiver.cls is not cls or not is_module(receiver):
        return
    problem = unfit(func, given(event), None, made="called")
    if problem is not None and func.cls is not None and is_meant(event):
        name = f"{func.cls.name}.{callee.name}"
        report(event.frame.module, node, cls=name, problem=problem.text, mend=problem.mend)


@judges_calls(rules.LAYER_SIGNATURE, *CALLING)
def called_by_function(event: Called, report: Reporter) -> None:
    """A module that a function calls for the program, with what the function is given besides."""
    args = given(event)
    obj = args.get(0)
    found = method_of(obj.cls, "__call__") if isinstance(obj, Obj) and obj.origin is not None else None
    if found is None or not isinstance(obj, Obj) or args.starred or obj.assumed or "method" in args.keywords:
        return
    if not isinstance(obj.cls, UserClass) or obj.cls.is_open or obj.cls.opaque:
        return
    passed_on = {name: value for name, value in args.keywords.items() if name not in TABLE_OPTIONS}
    inner = Arguments(event.node, args.positional[1:], passed_on, args.nodes[1:])
    problem = unfit(found[1], inner, None, made="called")
    if problem is not None and is_meant(event):
        shown = event.subject or event.name
        text = f"{problem.text} by `{shown}`, which calls it with what it gets besides"
        report(event.frame.module, event.node, cls=obj.cls.name, problem=text, mend=CALLING[shown].format(obj.cls.name))


def is_meant(event: Called) -> bool:
    """Whether a program means a call as it is: it neither expects it to fail, nor makes it for one kind of value, nor
    for another class than the present one, which may never come here, nor calls what it is given in several ways.
    """
    frame = event.frame
    if is_for_others(frame) or (frame.doubtful and _hands_on_all(event.node)):
        return False
    if frame.doubtful and is_handed_over(frame, event.node) and has_other_form(frame.module, event.node):
        return False
    return not is_tried(frame.module, event.node) and not is_asked_for(frame.module, event.node)


@judges_calls(rules.LAYER_SIGNATURE, ".train", ".eval")
def mode_by_position(event: Called, report: Reporter) -> None:
    callee = event.callee
    receiver = callee.receiver if isinstance(callee, BoundMethod) and callee.func is None else None
    if isinstance(receiver, Obj) and is_module(receiver) and event.args and isinstance(callee, BoundMethod):
        problem = f"is given an argument by position by `{callee.name}(...)`, which takes attributes by name"
        mend = "switch to evaluation with `model.eval()`, and back with `model.train()`"
        report(event.frame.module, event.node, cls=receiver.cls.name, problem=problem, mend=mend)


@judges_calls(rules.LAYER_SIGNATURE, *VARIABLES)
def variable_made(event: Called, report: Reporter) -> None:
    if len(event.args) < 2 or None in event.args or not isinstance(event.callee, ClassVal):
        return
    name = event.callee.cls.name
    if event.name.rpartition(".")[2] != name:
        return  # an earlier type of another signature
    problem = f"takes 1 argument by position, and gets {len(event.args)}"
    mend = f"it takes a value: `{event.name}(init(rngs.params(), shape, dtype))`"
    report(event.frame.module, event.node, cls=name, problem=problem, mend=mend)


@judges_calls(rules.LAYER_SIGNATURE, ".initialize_carry")
def carry_initialized(event: Called, report: Reporter) -> None:
    callee = event.callee
    receiver = callee.receiver if isinstance(callee, BoundMethod) and callee.func is None else None
    cls = receiver.cls if isinstance(receiver, (Obj, ClassVal)) else None
    if cls is None or cls.library is None or cls.library.canonical not in CELLS:
        return
    first = event.args[0] if event.args else None
    if isinstance(receiver, ClassVal):
        problem = "has no `initialize_carry` of its own: cells do"
    elif is_rngs(first) or isinstance(first, Array):
        problem = "takes the shape of an input first in `initialize_carry`, and streams second"
    elif first is NUMBER or isinstance(first, ParameterNumber) or (isinstance(first, Const) and is_int(first.value)):
        problem = "takes the shape of an input in `initialize_carry`, and gets a number"
    else:
        return
    mend = "write `cell.initialize_carry(input_shape, rngs)`"
    report(event.frame.module, event.node, cls=cls.name, problem=problem, mend=mend)


class Free(set[ast.AST]):
    """Calls of layers whose result may have any first axis: that of an equation, or of numbers of any shape. Of what
    runs a cell NNX829 says it.
    """


@judges_calls(rules.LAYER_SIGNATURE, "()")
def axes_free(event: Called, report: Reporter) -> None:
    library = event.callee.cls.works_as if isinstance(event.callee, Obj) else None
    if library is not None and library.name in {"Einsum", "Embed", "RNN"}:
        report.memory(Free).add(event.node)


@judges(rules.LAYER_SIGNATURE, Unpacked, of=(Array,))
def result_unpacked(event: Unpacked, report: Reporter) -> None:
    value, written = event.value, event.value_node
    node = value_of(event.frame.module, written) if isinstance(written, ast.Name) else written
    maker = value.maker if isinstance(value, Array) else None
    by_layer = maker is not None and isinstance(maker[2], ast.Call)
    if not isinstance(node, ast.Call) or event.count is None or not (by_layer or _is_said(event, node)):
        return
    made, shape = maker[2] if maker is not None else node, literal(value).shape
    if (shape is not None and shape[:1] == (event.count,)) or not {node, made}.isdisjoint(report.memory(Free)):
        return  # an axis of that many elements, such as two inputs that were stacked
    if is_asked_for(event.frame.module, node):
        return  # of another class, it may return several
    # A method of a module may return what a layer does.
    name = maker[0] if maker is not None and made is node else text_of(node.func)
    problem = f"returns one array, which is unpacked into {event.count} names along its first axis"
    report(event.frame.module, node, cls=name, problem=problem, mend="bind the array to one name")


def _is_said(event: Unpacked, call: ast.Call) -> bool:
    """Whether a function of the project says that it returns as many values as are unpacked, and returns an array."""
    callee = called_value(event.frame.env, call.func)
    if isinstance(callee, Obj) and isinstance(callee.cls, UserClass):
        found = callee.cls.find("__call__")
        callee = found[1] if found is not None else None
    func = _handed_to(callee)
    said = func.node.returns if isinstance(func, FuncVal) and not isinstance(func.node, ast.Lambda) else None
    if not isinstance(said, ast.Subscript) or last_name(said.value) not in {"Tuple", "tuple"}:
        return False
    parts = said.slice.elts if isinstance(said.slice, ast.Tuple) else []
    endless = any(isinstance(each, ast.Constant) and each.value is ... for each in parts)
    jax_array = isinstance(event.value, Array) and not isinstance(event.value, HostArray)
    return jax_array and len(parts) == event.count and not endless


def _hands_on_all(node: ast.AST) -> bool:
    """Whether a call hands on all that a wrapper got: a condition around it may ask what that is."""
    starred = isinstance(node, ast.Call) and any(isinstance(each, ast.Starred) for each in node.args)
    return starred or (isinstance(node, ast.Call) and any(each.arg is None for each in node.keywords))


class Unfit(NamedTuple):
    """Why arguments do not go into the parameters of a function, and what to do."""

    text: str
    mend: str


def unfit(func: FuncVal, args: Arguments, streams: str | None, *, made: str, bound: bool = True) -> Unfit | None:
    """Why a function of the project cannot be called so, which as a method is ``bound`` to its object; other rules
    judge the parameter for random ``streams``.
    """
    if func.wrapped is not func or (func.decorators and (bound or not func.is_static)) or args.starred:
        return None
    node = func.node.args
    found = syntax_parameters.misfit(node, len(args.positional), args.keywords, bound=bound, besides=streams)
    kind, name = found or ("", "")
    if kind == "foreign":
        named = [item.arg for item in (*node.args, *node.kwonlyargs)]
        close = _meant(name, named)
        mend = f"it is called `{close}`" if close is not None else f"it takes {_listed(named[bound:])}"
        return Unfit(f"takes no `{name}`", mend)
    if kind == "extra":
        taken = len(syntax_parameters.positional(node)) - bound
        if any(map(stands_for_rngs, args.positional[taken:])):
            return None
        text = f"takes {_counted(taken)} by position, and gets {len(args.positional)}"
        return Unfit(text, "name them" if node.kwonlyargs else "leave out what it does not take")
    if kind == "twice":
        return Unfit(f"gets `{name}` twice: by position and by name", "give it once")
    return Unfit(f"is {made} without `{name}`", f"pass `{name}`") if kind else None
