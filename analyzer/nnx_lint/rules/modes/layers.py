"""Layers whose mode matters: called while it is undecided (NNX807) or without streams to draw from (NNX808); classes
whose ``set_view`` breaks its contract (NNX840); and the graph mode of the whole program (NNX862).
"""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Applicability, Fix
from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.classes import library_class
from nnx_lint.model.events import Called, ClassDefined
from nnx_lint.model.forms import resolved
from nnx_lint.model.instances import certainly_stateful
from nnx_lint.model.values import UNKNOWN, Const, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.blocks import in_block
from nnx_lint.rules.edits import append_argument, insert, remove_statement, unsafe
from nnx_lint.rules.program import FUNCTIONS, ancestors, block_of, canonical_of, enclosing, given, keyword_node
from nnx_lint.rules.randomness.reading import carry_made, elements
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import walk
from nnx_rules.rules import construction as rules
from nnx_rules.rules.modules import LAYER_MODE_UNDECIDED, LAYER_WITHOUT_RNGS
from nnx_rules.streams import CELLS_KEEP_BEFORE

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module

DROPOUT = library_class("nnx.Dropout")
ATTENTION = library_class("nnx.MultiHeadAttention")

# -- calls -------------------------------------------------------------------------------------------------------------


def is_seen_made(frame: Frame) -> bool:
    """Whether the running code was reached from a function that does not belong to the model: what is known of the mode
    of its layers then is what the program did to it.
    """
    while frame.caller is not None:
        frame = frame.caller
    return frame.receiver is None


def layers_of(event: Called) -> list[Obj]:
    """The layers of the library that a call runs: the one that is called, or all those of a ``Sequential``."""
    callee = event.callee
    by_base = isinstance(callee, BoundMethod) and callee.func is None
    obj = callee.receiver if isinstance(callee, BoundMethod) and by_base else callee
    if not isinstance(obj, Obj) or "**" in event.keywords or None in event.args:
        return []
    if not by_base and obj.cls.called_as is None:
        return []
    held = [obj] if not obj.cls.derives_from("nnx.Sequential") else [] if event.keywords else elements(obj)
    return [
        layer for layer in held if layer.cls.made_as is not None and layer.args is not None and "**" not in layer.args
    ]


def as_it_was_made(event: Called) -> list[Obj]:
    """Of the layers that a call runs those whose mode is known, and that nothing has changed."""
    if not is_seen_made(event.frame):
        return []
    return [layer for layer in layers_of(event) if layer.training is True and not layer.assumed]


@judges_calls(LAYER_WITHOUT_RNGS, "()", ".__call__")
def layer_without_rngs(event: Called, report: Reporter) -> None:
    """A call of dropout layers without streams: of those that the program has made, or of a model's own, which no mode
    makes work: they fail in training, and do nothing else.
    """
    lacking = _lacks_streams if is_seen_made(event.frame) else _never_has_streams
    for obj in layers_of(event) if not event.frame.doubtful else ():
        if obj.cls.derives_from("nnx.Dropout") and not obj.assumed and lacking(event, obj):
            report(event.frame.module, event.node, fix=partial(_with_rngs, event, obj), cls=obj.cls.name)


def _lacks_streams(event: Called, obj: Obj) -> bool:
    made = obj.args or {}
    rngs = event.keywords.get("rngs", Const(None))
    if isinstance(rngs, Const) and rngs.value is None:  # then it draws from its own
        rngs = resolved(obj, made.get("rngs", Const(None)))
    told = event.keywords.get("deterministic")
    if told is not None and not (isinstance(told, Const) and told.value is False):
        return False
    known = (
        isinstance(rngs, Const) and rngs.value is None and isinstance(resolved(obj, made.get("rate", UNKNOWN)), Const)
    )
    return known and obj.training is True and certainly_stateful(obj, given(event))


def _never_has_streams(event: Called, obj: Obj) -> bool:
    made = obj.args or {}
    if obj.cls.made_as is not DROPOUT or obj.origin is None or len(event.args) != 1:
        return False
    told = "deterministic" in event.keywords
    if {*made, *event.keywords, *obj.attrs} & ({"rngs"} if told else {"rngs", "deterministic"}):
        return False
    if told and not _drops_at_times(event, obj):
        return False
    rate = made.get("rate")
    drops = isinstance(rate, Const) and isinstance(rate.value, float) and rate.value > 0
    drops = drops or (rate is not None and not isinstance(rate, Const) and _has_rngs_at_hand(obj))
    return drops and not obj.origin[0].mentions(SETTING)


def _drops_at_times(event: Called, obj: Obj) -> bool:
    """Whether the call of a layer is told to drop by who calls the model, which has streams for other dropout."""
    told, owner = event.keywords["deterministic"], event.frame.receiver
    if isinstance(told, Const) or not isinstance(owner, Obj):
        return False
    others = (attr.value for attr in owner.attrs.values() if isinstance(attr.value, Obj) and attr.value is not obj)
    return any(other.cls.made_as is DROPOUT and "rngs" in (other.args or {}) for other in others)


def _has_rngs_at_hand(obj: Obj) -> bool:
    """Whether a layer is made by a constructor that is given streams, with what it is told to drop."""
    maker = enclosing(*obj.origin, ast.FunctionDef) if obj.origin is not None else None
    return maker is not None and maker.name == "__init__" and "rngs" in syntax_parameters.names(maker.args)


@judges_calls(LAYER_WITHOUT_RNGS, ".initialize_carry")
def carry_without_rngs(event: Called, report: Reporter) -> None:
    found = carry_made(event)
    if found is None:
        return
    cell, rngs = found
    if cell.args is None or "**" in cell.args or "rngs" in cell.attrs or cell.assumed:
        return
    absent = rngs is None or (isinstance(rngs, Const) and rngs.value is None)
    keeps = cell.args.get("keep_rngs", Const(False))
    library, version = report.runs_on(event.frame.module)
    kept = library == "flax" and version is not None and version < CELLS_KEEP_BEFORE
    if absent and isinstance(keeps, Const) and not keeps.value and not kept:
        report(event.frame.module, event.node, cls=cell.cls.name)


def _with_rngs(event: Called, obj: Obj) -> Fix | None:
    """Give the layer streams where it is made, if that is in this file."""
    module, made = event.frame.module, obj.node
    if not isinstance(made, ast.Call) or "rngs" in (obj.args or {}) or keyword_node(made, "rngs") is not None:
        return None
    if obj.origin is None or obj.origin[0] is not module:
        return None
    scope = enclosing(module, made, *FUNCTIONS, ast.Module)
    if scope is None or canonical_of(module.env, made.func) != "nnx.Dropout":
        return None
    taken = (*scope.args.args, *scope.args.kwonlyargs) if isinstance(scope, FUNCTIONS) else ()
    streams = any(item.arg == "rngs" for item in taken)
    name = "rngs" if streams else f"{spelled('nnx.Rngs', module)}(0)"
    edits = append_argument(module.source, made, f"rngs={name}")
    return Fix(f"Pass `rngs={name}`", edits, Applicability.UNSAFE) if "None" not in name else None


UNDECIDED = {
    "Dropout": ("deterministic",),
    "BatchNorm": ("use_running_average",),
    "MultiHeadAttention": ("decode", "deterministic"),
}
"""The options of a layer that may be ``None``, to be decided later; those of attention are, if they are not given."""


SETTING = re.compile(r"[.'\"](?:train|eval)\b|\b(?:set_attributes|with_attributes|view)\b")
"""What decides the mode of a layer, called or handed on; where it is named, it may be for this layer."""


@judges_calls(LAYER_MODE_UNDECIDED, "()", ".__call__")
def layer_mode_undecided(event: Called, report: Reporter) -> None:
    seen = is_seen_made(event.frame)
    for obj in as_it_was_made(event) if seen else _of_any_instance(event):
        library = obj.cls.made_as
        names = UNDECIDED.get(library.name, ()) if library is not None and not event.frame.doubtful else ()
        names = names if seen else names[:1]
        name = next((name for name in names if _is_undecided(event, obj, name)), None)
        if name is not None and not any(each.module.mentions(SETTING) for each in event.frame.outwards()):
            report(event.frame.module, event.node, cls=obj.cls.name, name=name)


def _of_any_instance(event: Called) -> list[Obj]:
    """The attention that a method of a model calls, whoever made the model: no mode of NNX decides whether it decodes,
    and nothing in the files names what does.
    """
    own = [layer for layer in layers_of(event) if layer.cls.made_as is ATTENTION and not layer.assumed]
    own = [layer for layer in own if layer.origin is not None and "decode" not in event.keywords]
    modules = [event.frame.module, *(layer.origin[0] for layer in own if layer.origin is not None)]
    return own if own and not any(module.mentions(DECIDING) for module in modules) else []


DECIDING = re.compile(r"\b(?:set_attributes|with_attributes|view|set_mode)\b|init_cache|\.decode\b")
"""What may decide it, called or handed on."""


def _is_undecided(event: Called, obj: Obj, name: str) -> bool:
    """Whether a layer was made without an option that the call does not give either."""
    made = obj.args or {}
    attends = obj.cls.made_as is ATTENTION
    option = made.get(name, Const(None) if attends else None)
    if name in event.keywords or not isinstance(option, Const) or option.value is not None or name in obj.attrs:
        return False
    if attends and name == "deterministic":  # without dropout nothing asks for it
        rate = resolved(obj, made.get("dropout_rate", UNKNOWN))
        return isinstance(rate, Const) and isinstance(rate.value, float) and rate.value > 0
    return name != "use_running_average" or len(event.args) <= 1


# -- set_view ----------------------------------------------------------------------------------------------------------


def defines_view(event: ClassDefined) -> bool:
    """Whether a class has a ``set_view`` of its own."""
    return "set_view" in event.cls.methods


@judges(rules.SET_VIEW, ClassDefined, when=defines_view)
def set_view_contract(event: ClassDefined, report: Reporter) -> None:
    cls, func = event.cls, event.cls.methods["set_view"]
    if not isinstance(func, FuncVal) or not cls.derives_from("nnx.Module") or isinstance(func.node, ast.Lambda):
        return
    arguments = func.node.args
    parameters = syntax_parameters.positional(arguments)[1:] + arguments.kwonlyargs
    for item in parameters:
        default = func.defaults.get(item.arg)
        if default is None or (isinstance(default, Const) and default.value is not None):
            what = "has no default" if default is None else f"defaults to {default.value!r}"
            why = "it has to default to `None`, and then to leave the attribute as it is"
            alone = default is None and item is parameters[-1] and _is_compared(func.node, item.arg)
            fix = partial(_optional, cls.module, item) if alone else None
            report(cls.module, item, fix=fix, cls=cls.name, problem=f"its parameter `{item.arg}` {what}", mend=why)
    if cls.module.provider == "nnxkit":
        return
    described = cls.module.source.segment(func.node.body[0])  # its docstring, if it has one: trees have only empty ones
    listed = re.split(r"^\s*Args:\s*$", described, maxsplit=1, flags=re.MULTILINE)
    for item in parameters if len(listed) > 1 else ():
        if not re.search(rf"^\s*{item.arg}\b", listed[1], re.MULTILINE):
            problem = f"its docstring has a section `Args:` that lacks `{item.arg}`, so `nnx.view_info` fails"
            report(cls.module, item, cls=cls.name, problem=problem, mend="describe every parameter, or none")


def _is_compared(func: ast.AST, name: str) -> bool:
    """Whether a function asks whether a parameter is ``None``."""
    compared = (node.left for node in walk(func) if isinstance(node, ast.Compare) and isinstance(node.ops[0], NONE))
    return any(is_name(node, name) for node in compared)


NONE = (ast.Is, ast.IsNot)
"""How one compares with ``None``."""


def _optional(module: Module, parameter: ast.arg) -> Fix | None:
    """Give the last parameter the default ``None``."""
    end = module.source.span(parameter).end
    return unsafe("Let it default to `None`", insert(end, " | None = None" if parameter.annotation else "=None"))


# -- the mode of the program -------------------------------------------------------------------------------------------


@judges_calls(rules.MODE_FOR_ALL, "nnx.set_graph_mode", "nnx.set_graph_updates")
def graph_mode_set_globally(event: Called, report: Reporter) -> None:
    parent = next(ancestors(event.frame.module, event.node), None)
    if isinstance(parent, ast.Expr):
        fix = partial(_for_a_block, event, parent)
        report(event.frame.module, event.node, fix=fix, name=event.name)


def _for_a_block(event: Called, statement: ast.Expr) -> Fix | None:
    """Make a block of what stands between this statement and the one that sets the mode back."""
    module = event.frame.module
    source, block = module.source, block_of(module, statement)
    following = block[block.index(statement) + 1 :]
    back = next((place for place, item in enumerate(following) if _sets(module, item, event.subject)), 0)
    if not back:
        return None
    inside = in_block(source, following[:back], f"with {source.segment(statement)}")
    removed = [remove_statement(source, block, item) for item in (statement, following[back])]
    if inside is None or None in removed:
        return None
    return unsafe("Change it for a block", (*inside, *(edit for edits in removed for edit in edits or ())))


def _sets(module: Module, statement: ast.stmt, name: str | None) -> bool:
    """Whether a statement sets this mode of the program."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and canonical_of(module.env, call.func) == name
