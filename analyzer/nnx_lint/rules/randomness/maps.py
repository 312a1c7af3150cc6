"""Random streams and transforms: a map over a single key (NNX511), a split in the wrong place (NNX520) or one that is
not undone (NNX504), members and elements with the same numbers (NNX521, NNX522), and streams whose progress a JAX
transform forgets (NNX523).
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING, Any

from nnx_lint.diagnostics import Fix
from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import FuncVal, Transformed
from nnx_lint.model.classes import library_class
from nnx_lint.model.containers import Seq
from nnx_lint.model.effects import place_of
from nnx_lint.model.events import Called, Mutated, TransformApplied
from nnx_lint.model.expressions import text_of
from nnx_lint.model.instances import certainly_stateful
from nnx_lint.model.states import StateVal
from nnx_lint.model.unions import UnionVal, options, present
from nnx_lint.model.uses import RNGS
from nnx_lint.model.values import Array, Const, HostArray, Obj, Value
from nnx_lint.reporting import Reporter, judges, judges_calls, related
from nnx_lint.rules.attributes.given import noted_by_call
from nnx_lint.rules.blocks import fresh, in_block
from nnx_lint.rules.callees import called_value
from nnx_lint.rules.edits import exchange, insert, insert_before, replace, unsafe
from nnx_lint.rules.lifting import on_nnx
from nnx_lint.rules.program import (
    FUNCTIONS,
    block_of,
    canonical_of,
    enclosing,
    given,
    is_tried,
    keyword_node,
    own_nodes,
    reads_of,
    statement_of,
)
from nnx_lint.rules.randomness.reading import elements, is_rngs
from nnx_lint.rules.randomness.reuse import has_equal_numbers
from nnx_lint.rules.repeating import handed_for
from nnx_lint.rules.spelling import spelled
from nnx_lint.rules.traces.captures import REFERENCES, refuses_streams
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import names_in
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.places import begin, end
from nnx_lint.syntax.walk import children, walk
from nnx_rules.rules import rngs as rules
from nnx_rules.transforms import Arguments

if TYPE_CHECKING:
    from nnx_lint.model.callables import TransformVal
    from nnx_lint.model.frames import Frame, TraceScope
    from nnx_lint.model.modules import Module

MODULE = library_class("nnx.Module")
MAPS = frozenset({"nnx.vmap", "nnx.pmap"})


def axis_of(applied: TransformVal, position: int) -> object:
    """The axis over which a map takes an argument: an int, ``None``, or ``...`` where that is not known."""
    if "**" in applied.keywords:
        return ...
    axes = applied.keywords.get("in_axes")
    if axes is None:
        return ... if applied.row.name == "nnx.scan" and position == 0 else 0  # a scan carries its first argument
    if isinstance(axes, Seq) and axes.type == "tuple" and axes.exact:
        axes = axes.items[position] if position < len(axes.items) else None
    if isinstance(axes, Const) and (axes.value is None or isinstance(axes.value, int)):
        return axes.value
    return ...


# -- a single key ------------------------------------------------------------------------------------------------------


def calls_map(event: Called) -> bool:
    """Whether a function under a map or a scan is called, which both go over axes."""
    return isinstance(event.callee, Transformed) and event.callee.applied.row.name in {*MAPS, "nnx.scan"}


@judges_calls(rules.UNSPLIT_RNGS, Transformed, when=calls_map)
def unsplit_rngs(event: Called, report: Reporter) -> None:
    callee = event.callee
    if not isinstance(callee, Transformed) or None in event.args:
        return
    if isinstance(callee.func, Transformed) and callee.func.applied.row.name == "nnx.split_rngs":
        return  # NNX520 says so where the decorators are
    for position, value in enumerate(event.args):
        axis = axis_of(callee.applied, position)
        # Those that a function makes if it is given none have single keys, whatever else it may be given.
        held = [each for each in options(value) if isinstance(each, Obj)] if value is not None else []
        if not isinstance(axis, int) or not any(_is_single(event.frame, each, value) for each in held):
            continue
        value = held[0]
        node = event.nodes[position]
        path = text_of(node) if is_rngs(value) else f"{text_of(node)}.rngs"
        fix = partial(_split_around, event, callee.applied, position) if axis == 0 else None
        report(event.frame.module, node, fix=fix, transform=callee.applied.text, axis=axis, path=path)


@judges_calls(rules.UNSPLIT_RNGS, "class")
def unsplit_by_constructor(event: Called, report: Reporter) -> None:
    """A constructor maps over the streams that it is given, and gets such with single keys."""
    calls = [noted for noted in noted_by_call(event) if isinstance(noted, Called)]
    streams = [value for value in (*event.args, *event.keywords.values()) if isinstance(value, Obj) and is_rngs(value)]
    if not calls or len(streams) != 1 or not _is_single(event.frame, streams[0]):
        return
    for noted in calls:
        callee, frame = noted.callee, noted.frame
        scope = frame.func.node if frame.func is not None else None
        if not isinstance(callee, Transformed) or scope is None:
            continue
        if callee.applied.row.name not in MAPS or isinstance(callee.func, Transformed) or None in noted.args:
            continue
        for position, value in enumerate(noted.args):
            axis = axis_of(callee.applied, position)
            names = {name for name, held in frame.env.names.items() if held is value}
            taken = not names.isdisjoint(syntax_parameters.names(scope.args))
            whole = taken and isinstance(value, Obj) and value.cls is RNGS and value.origin is None
            told = any(_hands_on(frame, node, names) for node in own_nodes(scope))  # where the constructor is
            single = not told and not _is_split(frame, scope, names)
            if whole and isinstance(axis, int) and single and any(_is_handed_down(frame, name) for name in names):
                where = (related(frame.module, noted.node, "the constructor maps over it here"),)
                slots: dict[str, Any] = {"transform": callee.applied.text, "axis": axis, "path": next(iter(names))}
                report(event.frame.module, event.node, related=where, **slots)
                return


def _is_handed_down(frame: Frame, name: str) -> bool:
    """Whether a parameter of a function is what the constructor was given that calls it, and nothing made of that."""
    while frame.func is not None and frame.func.name != "__init__":
        handed = handed_for(frame, name)
        if not isinstance(handed, ast.Name) or frame.caller is None:
            return False
        frame, name = frame.caller, handed.id
        if frame.func is None or _is_split(frame, frame.func.node, {name}):
            return False
    return frame.func is not None and name in syntax_parameters.names(frame.func.node.args)


def _split_around(event: Called, applied: TransformVal, position: int) -> Fix | None:
    """Split the streams around the call, into as many as there are elements of another argument."""
    module, node = event.frame.module, event.nodes[position]
    name, here = spelled("nnx.split_rngs", module), statement_of(module, event.node)
    count = next((text for place in range(len(event.args)) if (text := _count(event, applied, place))), None)
    if name is None or count is None or not isinstance(here, (ast.Assign, ast.Expr, ast.Return, ast.AnnAssign)):
        return None
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    head = f"with {name}({module.source.segment(node)}, splits={count})"
    return unsafe("Split the streams around the call", in_block(module.source, [here], head))


def _count(event: Called, applied: TransformVal, position: int) -> str | None:
    """How many elements a map finds in an argument, as the program can say it."""
    axis, value, node = axis_of(applied, position), event.args[position], event.nodes[position]
    known = isinstance(value, (Array, HostArray)) and isinstance(node, (ast.Name, ast.Attribute))
    return f"{text_of(node)}.shape[{axis}]" if known and isinstance(axis, int) else None


def _is_single(frame: Frame, value: Obj, named: Value | None = None) -> bool:
    """Whether streams, or those of a dropout layer, certainly have single keys: they are made in this function or in
    one that leads to it, or it hands them to a layer, too. What a map has made has one for each element. They may be
    one of several values that are ``named``.
    """
    call = value.node
    if value.gained != 0:
        return False
    for each in frame.outwards():
        scope = each.func.node if each.func is not None else each.module.tree
        names = {name for name, held in each.env.names.items() if held is value or held is named}
        # Where a name stands for several values, all that it is bound to is among them.
        if splits_in_place(each, scope, names) if isinstance(named, UnionVal) else _is_split(each, scope, names):
            return False
        if not isinstance(call, ast.Call) or value.args is None:
            return is_rngs(value) and value.assumed and any(_hands_on(each, node, names) for node in own_nodes(scope))
        if any(node is call for node in walk(scope)):
            drops = value.cls.derives_from("nnx.Dropout") and is_rngs(value.args.get("rngs"))
            made = canonical_of(each.env, call.func) == getattr(value.cls, "canonical", None)
            return (value.cls is RNGS or drops) and made
        if not _is_called_plainly(each):
            return False
    return False


def _is_called_plainly(frame: Frame) -> bool:
    """Whether what calls a function is seen to get no other streams there, as by ``nnx.split_rngs``."""
    called = frame.call.func if isinstance(frame.call, ast.Call) else None
    callee = called_value(frame.caller.env, called) if frame.caller is not None and called is not None else None
    while isinstance(callee, Transformed) and callee.applied.row.name != "nnx.split_rngs":
        callee = callee.func
    return callee is not None and not isinstance(callee, Transformed)


def _is_split(frame: Frame, scope: ast.AST, names: set[str]) -> bool:
    """Whether a function may split streams in place, or bind their name to others."""
    if splits_in_place(frame, scope, names):
        return True
    own = [node for node in own_nodes(scope) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
    given_names = {item.arg for item in scope.args.args} if isinstance(scope, FUNCTIONS) else set[str]()
    return any(sum(node.id == name for node in own) + (name in given_names) > 1 for name in names)


def splits_in_place(frame: Frame, scope: ast.AST, names: set[str]) -> bool:
    """Whether a function may give streams other keys."""
    calls = (node for node in walk(scope) if isinstance(node, ast.Call))
    named = (call for call in calls if any(isinstance(item, ast.Name) and item.id in names for item in call.args))
    return any(canonical_of(frame.env, call.func) in SPLITTING for call in named)


SPLITTING = frozenset({"nnx.split_rngs", "nnx.fork_rngs", "nnx.update"})
"""Functions that may give streams other keys in place."""


def _hands_on(frame: Frame, node: ast.AST, names: set[str]) -> bool:
    """Whether a call makes a layer of the library with the streams, which needs a single key."""
    if not isinstance(node, ast.Call) or not (canonical_of(frame.env, node.func) or "").startswith("nnx."):
        return False
    return any(
        item.arg == "rngs" and isinstance(item.value, ast.Name) and item.value.id in names for item in node.keywords
    )


# -- the order of decorators -------------------------------------------------------------------------------------------


@judges(rules.SPLIT_INSIDE_MAP, TransformApplied)
def split_inside_map(event: TransformApplied, report: Reporter) -> None:
    inner = event.func
    if event.applied.row.name not in MAPS or not isinstance(inner, Transformed) or not isinstance(inner.func, FuncVal):
        return
    if inner.applied.row.name != "nnx.split_rngs" or not any(
        axis_of(event.applied, position) == 0 for position in range(len(inner.func.node.args.args))
    ):
        return
    module, outer = event.frame.module, event.applied
    fix = _swapped(module, outer.node, inner.applied.node)
    report(module, event.node, fix=fix, outer=f"@{outer.text}", inner=f"@{inner.applied.text}")


def _swapped(module: Module, one: ast.AST, other: ast.AST) -> Fix | None:
    """Exchange two decorators that follow each other."""
    func = enclosing(module, one, ast.FunctionDef)
    if func is None or one not in func.decorator_list or other not in func.decorator_list:
        return None
    return Fix("Exchange the decorators", exchange(module.source, one, other))


# -- a split that stays ------------------------------------------------------------------------------------------------


@judges_calls(rules.KEYS_ALREADY_SPLIT, "()")
def keys_already_split(event: Called, report: Reporter) -> None:
    module, call, obj = event.frame.module, event.node, event.callee
    func = call.func if isinstance(call, ast.Call) else None
    if func is None or root_of(func) is None or not isinstance(obj, Obj) or event.frame.scope:
        return
    held = obj.cls.derives_from("nnx.Dropout") and "rngs" in (obj.args or {})
    if not is_rngs(obj) and not (held and certainly_stateful(obj, given(event))):
        return
    here = statement_of(module, call)
    split = _split_statement(event.frame, func, here) if here is not None else None
    if split is None:
        return
    splits = next((item.value for item in split.keywords if item.arg == "splits"), None)
    shape = f"({ast.unparse(splits) if splits is not None else 'n'},)"
    report(module, call, fix=partial(_restored, module, split, call), name=_stream_of(obj), shape=shape)


def draws_of_split(event: Mutated) -> bool:
    """Whether streams are drawn from that were forked for so many elements, and nothing has gone over these."""
    return event.effect == "draw" and isinstance(event.target, Obj) and event.target.extent is not None


@judges(rules.KEYS_ALREADY_SPLIT, Mutated, when=draws_of_split)
def forked_keys_drawn(event: Mutated, report: Reporter) -> None:
    """``rngs.fork(split=4)`` has four keys a stream, for the elements of a map."""
    module, streams = event.frame.module, event.target
    if not isinstance(streams, Obj) or not is_rngs(streams) or event.frame.doubtful or is_tried(module, event.node):
        return
    if not all(scope.row.keeps_shapes for scope in event.frame.scope) or _is_merged(event.frame, streams):
        return  # a map takes the elements apart, and so may what became of a State before it was put together
    if event.method not in {"fork", "split", "broadcast", "restore"}:
        report(module, event.node, name=event.method or _stream_of(streams), shape=f"({streams.extent},)")


def _is_merged(frame: Frame, obj: Obj) -> bool:
    """Whether an object was put together from a State."""
    made = obj.origin[1] if obj.origin is not None and obj.origin[0] is frame.module else None
    return isinstance(made, ast.Call) and canonical_of(frame.env, made.func) == "nnx.merge"


def _restored(module: Module, split: ast.Call, use: ast.AST) -> Fix | None:
    """Keep what the split gives back, and restore the keys before they are used."""
    name, here = spelled("nnx.restore_rngs", module), statement_of(module, use)
    if name is None or here is None:
        return None
    backups = fresh(module, "backups")
    before = insert_before(module.source, here, f"{name}({backups})")
    kept = insert(module.source.span(split).start, f"{backups} = ")
    return unsafe("Restore the keys first", (*kept, *before)) if before is not None else None


def _stream_of(obj: Obj) -> str:
    rngs = obj if is_rngs(obj) else (obj.args or {}).get("rngs")
    names = list(rngs.args or ()) if isinstance(rngs, Obj) else []
    return (
        "dropout"
        if "dropout" in names and not is_rngs(obj)
        else "default"
        if "default" in names
        else (names or ["default"])[0]
    )


def _split_statement(frame: Frame, of: ast.expr, before: ast.stmt) -> ast.Call | None:
    """The statement that splits the streams of an object in place, in the same block, with nothing to undo it."""
    name = root_of(of)
    found: ast.Call | None = None
    block = block_of(frame.module, before)
    for statement in block[: block.index(before)]:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and _splits(frame, call, of):
            found = call
        elif name in names_in(statement):
            found = None  # who knows what has become of it
    return found


def _splits(frame: Frame, call: ast.Call, of: ast.expr) -> bool:
    first = call.args[0] if call.args else None
    if first is None or text_of(first) != text_of(of) or canonical_of(frame.env, call.func) != "nnx.split_rngs":
        return False
    return not any(item.arg in {"only", "squeeze", None} for item in call.keywords)


# -- the same numbers for all ------------------------------------------------------------------------------------------


def _map_of(callee: Value) -> Transformed | None:
    """The map that a call runs, where streams may be split for it before."""
    while isinstance(callee, Transformed) and callee.applied.row.name == "nnx.split_rngs":
        callee = callee.func
    return callee if isinstance(callee, Transformed) and callee.applied.row.name in {*MAPS, "jax.vmap"} else None


def _made_in(mapped: Transformed, result: Value | None) -> Obj | None:
    """The module that a mapped function returns, or one that it makes and returns the state of, alone or in a tuple."""
    for value in result.items if isinstance(result, Seq) and result.type == "tuple" else (result,):
        held = present(value.of) if isinstance(value, StateVal) else value
        if isinstance(held, Obj) and MODULE in held.cls.ancestors and (held is value or _makes(mapped.func, held)):
            return held
    return None


def _makes(func: Value, obj: Obj) -> bool:
    """Whether a function is where an object was made: the state of one from elsewhere may be meant for all."""
    if not isinstance(func, FuncVal) or obj.origin is None or obj.origin[0] is not func.module:
        return False
    return begin(func.node) <= begin(obj.origin[1]) <= end(obj.origin[1]) <= end(func.node)


@judges_calls(rules.IDENTICAL_MEMBERS, Transformed)
def identical_members(event: Called, report: Reporter) -> None:
    callee = _map_of(event.callee)
    if callee is None or not (_takes_all_whole(callee.applied) or _maps_for_nothing(callee)):
        return
    made = _made_in(callee, event.result)
    if made is None or "axis_name" in callee.applied.keywords:
        return
    if any(isinstance(value, Obj) and not is_rngs(value) for value in event.args) or not _draws_parameters(made):
        return  # what it is given, or a part of that
    fix = partial(_stream_for_each, event, callee.applied)
    report(event.frame.module, event.node, fix=fix, transform=callee.applied.text, cls=f"`{made.cls.name}`")


def _maps_for_nothing(callee: Transformed) -> bool:
    """Whether a function reads none of the parameters that a map takes along an axis: they count the members."""
    if not isinstance(callee.func, FuncVal) or callee.func.node.args.vararg is not None:
        return False
    func = callee.func.node
    names = syntax_parameters.positional_names(func.args)
    mapped = [name for position, name in enumerate(names) if axis_of(callee.applied, position) is not None]
    return bool(mapped) and not any(reads_of(func, name) for name in mapped)


def _draws_parameters(made: Obj, depth: int = 3) -> bool:
    """Whether a module, or a part of it, is made with random streams, and has numbers of them."""
    values = [] if made.args is None else list(made.args.values())
    if not has_equal_numbers(made):
        return False
    if any(map(is_rngs, values)):
        return True
    held = (attribute_of(made, name) for name in attribute_names(made))
    values += [attr.value for attr in held if attr is not None]
    parts = [part for value in values for part in elements(value)]
    return depth > 0 and any(_draws_parameters(part, depth - 1) for part in parts if part is not made)


def _stream_for_each(event: Called, applied: TransformVal) -> Fix | None:
    """Map over streams that are split where they are handed over, where this is the one call of the function."""
    module, call = event.frame.module, event.node
    source, axes, count = module.source, keyword_node(applied.node, "in_axes"), keyword_node(applied.node, "axis_size")
    func = call.func if isinstance(call, ast.Call) else None
    if applied.module is not module or axes is None or not isinstance(count, (ast.Constant, ast.Name)):
        return None
    if not isinstance(func, ast.Name) or len(reads_of(module.tree, func.id)) != 1:
        return None
    if len(event.args) != 1 or not is_rngs(event.args[0]):
        return None
    edits = (*replace(source, axes, "0"), *insert(source.span(event.nodes[0]).end, f".split({source.segment(count)})"))
    return unsafe("Give each a stream of its own", edits) if isinstance(event.nodes[0], PRIMARY) else None


PRIMARY = (ast.Attribute, ast.Call, ast.Name, ast.Subscript)
"""Expressions that an attribute can be asked of without parentheses."""


def draws(event: Mutated) -> bool:
    """Whether random streams advance."""
    return event.state == "RngCount" and bool(event.frame.scope)


def parameter_of(scope: TraceScope, target: Value) -> tuple[str, int, tuple[str, ...]] | None:
    """The parameter of a traced function through which it reaches an object: name, position, path below it."""
    frame = scope.frame
    if frame is None or frame.func is None:
        return None
    arguments = frame.func.node.args
    names = syntax_parameters.positional_names(arguments)
    held = {name: frame.env.names[name] for name in names if name in frame.env.names}
    place = place_of(held, target)
    return (place.parameter, names.index(place.parameter), place.path) if place is not None else None


@judges(rules.SHARED_NUMBERS, Mutated, when=draws)
def shared_numbers(event: Mutated, report: Reporter) -> None:
    scope = event.frame.scope[-1]
    if scope.row.name not in {*MAPS, "jax.vmap", "nnx.scan"} or not event.frame.certain_within(scope) or scope.held:
        return
    found = parameter_of(scope, event.target)
    if found is None:
        return
    name, position, _ = found
    argument = scope.frame.env.names[name] if scope.frame is not None else None
    shift = 1 if scope.frame is not None and scope.frame.receiver is not None else 0
    if axis_of(scope.applied, position) is not None or shift or event.action.startswith("creating"):
        return
    if is_rngs(argument) is not (scope.row.name == "nnx.scan") or (is_rngs(argument) and not _goes_over_layers(scope)):
        return  # the same numbers in each step of time may be meant, with streams that are passed on their own
    others = [axis_of(scope.applied, each) for each in range(position + 3) if each != position]
    if not _nothing_mapped(scope.applied) and not any(isinstance(axis, int) for axis in others):
        return
    module, node = event.frame.place_within(scope, event.node)
    report(module, node, transform=scope.text, path=name)


def _goes_over_layers(scope: TraceScope) -> bool:
    """Whether a scan takes a module along an axis: one layer of a stack in each step."""
    frame = scope.frame
    names = syntax_parameters.positional_names(frame.func.node.args) if frame is not None and frame.func else []
    held = [frame.env.names.get(name) if frame is not None else None for name in names]
    return any(
        isinstance(value, Obj) and not is_rngs(value) and isinstance(axis_of(scope.applied, position), int)
        for position, value in enumerate(held)
    )


def _nothing_mapped(applied: TransformVal) -> bool:
    """Whether a map takes all arguments whole, and repeats the function as often as an option says."""
    return "axis_size" in applied.keywords and _takes_all_whole(applied)


def _takes_all_whole(applied: TransformVal) -> bool:
    """Whether a map has an axis for no argument."""
    axes = applied.keywords.get("in_axes")
    items = axes.items if isinstance(axes, Seq) and axes.exact else [axes]
    return bool(items) and all(isinstance(item, Const) and item.value is None for item in items)


# -- progress that is lost ---------------------------------------------------------------------------------------------

NNX_COUNTERPARTS = frozenset({"jit", "grad", "value_and_grad", "vmap", "checkpoint"})


@judges(rules.NOT_ADVANCED, Mutated, when=draws)
def not_advanced(event: Mutated, report: Reporter) -> None:
    scope = event.frame.scope[-1]
    target = event.target
    if not scope.row.name.startswith("jax.") or scope.row.arguments is Arguments.KEPT or not isinstance(target, Obj):
        return
    if target.level != scope.level or not event.frame.certain_within(scope) or scope.frame is None:
        return
    found = parameter_of(scope, target)
    func = scope.frame.func
    if found is None or func is None or _is_returned(func.node, found[0]) or len(event.frame.scope) > 1:
        return
    short = scope.row.name.rpartition(".")[2]
    if short not in NNX_COUNTERPARTS or scope.applied.module.mentions(*REFERENCES):
        return
    if refuses_streams(scope):
        return
    module, node = event.frame.place_within(scope, event.node)
    mend = f"nnx.{'remat' if short == 'checkpoint' else short}"
    report(
        module,
        node,
        fix=partial(on_nnx, scope.applied, module),
        transform=scope.text,
        function=func.name,
        path=found[0],
        mend=mend,
    )


def _is_returned(func: ast.AST, name: str) -> bool:
    """Whether a function may return a parameter, or something made from it other than by calling it."""
    if isinstance(func, ast.Lambda):
        returned: list[ast.expr] = [func.body]
    else:
        returned = [node.value for node in walk(func) if isinstance(node, (ast.Return, ast.Yield)) and node.value]
    return any(_hands_out(value, name) for value in returned)


def _hands_out(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name
    if isinstance(node, ast.Call):
        func = node.func
        while isinstance(func, (ast.Attribute, ast.Subscript)):
            func = func.value
        parts: list[ast.AST] = [*node.args, *(item.value for item in node.keywords)]
        return any(_hands_out(part, name) for part in (parts if isinstance(func, ast.Name) else [*parts, func]))
    if isinstance(node, ast.Attribute):
        return False
    return any(_hands_out(part, name) for part in children(node))
