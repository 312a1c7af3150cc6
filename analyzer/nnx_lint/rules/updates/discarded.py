"""Results that are thrown away (NNX225): a call in a statement of its own, of something that only returns.

Whether a call does nothing besides is a fact of what is called: of functions and methods that are listed, of layers and
functions that compute arrays, of a function over a tree whose function is an expression of such calls.

Invariants: the last expression of a cell is shown, in a notebook and in a script of cells (`# %%`), and what a test
expects to fail is not executed; neither throws a result away by mistake. An array is computed for nothing only in a
method of a module: elsewhere a program may compute one to see how long that takes.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Fix
from nnx_lint.model import foreign
from nnx_lint.model.arrays import UPDATES, is_array_function
from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal, Transformed
from nnx_lint.model.classes import FIELD_DECORATORS, UserClass
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.elements import element_of
from nnx_lint.model.events import AttributeMissed, Called, Used
from nnx_lint.model.expressions import text_of
from nnx_lint.model.instances import ARRAY_LAYERS, effect_of
from nnx_lint.model.modules import Env
from nnx_lint.model.states import GraphDefVal, StateVal, TransformationVal
from nnx_lint.model.tables.jax_results import METHODS, RESULTS
from nnx_lint.model.unions import UnionVal, present
from nnx_lint.model.values import Array, ArrayAttr, Ext, Obj, Unknown, VariableVal
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.bindings import bound_to, names_of_first, value_of
from nnx_lint.rules.callees import called_value
from nnx_lint.rules.edits import insert, unsafe
from nnx_lint.rules.program import (
    FUNCTIONS,
    STATEMENT_LOOPS,
    ancestors,
    as_method,
    binds,
    called_as,
    canonical_of,
    given,
    in_test,
    is_measured,
    is_tried,
    outer_names,
    own_nodes,
    own_set,
    own_statements,
    reads_of,
    resolved,
)
from nnx_lint.rules.updates.probes import is_probe
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.places import begin
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.api import Effect
from nnx_rules.rules import updates as rules
from nnx_rules.transforms import COMPILING_ONLY, HANDING_ON

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value

    Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

FUNCTIONS_OF_VALUES = {
    "dataclasses.replace": "a new object",
    "flax.core.freeze": "a new dict",
    "flax.serialization.from_bytes": "what it has read",
    "flax.serialization.from_state_dict": "what it has read",
    "flax.training.checkpoints.restore_checkpoint": "what it has read",
    "jax.device_put": "a copy",
    "jax.lax.pmean": "the mean",
    "jax.lax.psum": "the sum",
    "jax.lax.stop_gradient": "an array",
    "jax.lax.with_sharding_constraint": "an array",
    "jax.random.fold_in": "a new key",
    "jax.random.split": "new keys",
    "nnx.capture": "a function",
    "nnx.clone": "a copy",
    "nnx.from_flat_state": "a new State",
    "nnx.merge": "a new object",
    "nnx.merge_state": "a new State",
    "nnx.restore_int_paths": "a new State",
    "nnx.to_pure_dict": "a dict",
    "nnx.view": "a new object",
    "nnx.with_attributes": "a new object",
    "optax.apply_updates": "new parameters",
    "optax.incremental_update": "new parameters",
}
"""Functions that are called for what they return, and nothing else, with what that is."""

MAPS = {
    "jax.tree.map": "a new tree",
    "jax.tree.map_with_path": "a new tree",
    "nnx.map": "a new object",
    "nnx.map_state": "a new State",
}
"""Functions that call a function for each leaf, which may be there for what it does: to print, to check, to collect."""

IN_PLACE = frozenset({"nnx.fork_rngs", "nnx.split_rngs"})
"""Functions that make a decorator, or change the streams that they are given."""

OF_VARIABLES = frozenset({"copy", "get_value", "replace"})
"""Methods of Variables that change nothing."""

LASTING = frozenset({"block_until_ready", "copy_to_host_async", "delete"})
"""Methods of arrays that are called for what they do."""


def discarded(event: Called) -> bool:
    """Whether a call is all of a statement."""
    return event.frame.discards is event.node


@judges(rules.UNUSED_RESULT, Called, when=discarded)
def unused_result(event: Called, report: Reporter) -> None:
    frame = event.frame
    if is_shown(frame):
        return
    result = new_value(event)
    # A script may try whether something can be put together at all; nobody does that with `jit`, which takes anything.
    tries = frame.func is None and event.subject in {"nnx.merge", "nnx.grad", "nnx.scan"} and not _is_used_on(event)
    if result is not None and not tries and not is_probe(frame.module, event.node):
        fix, mend = partial(_bound_again, event), "bind the result to a name"
        report(frame.module, event.node, fix=fix, name=event.name, result=f"returns {result}", mend=mend)


def _is_used_on(event: Called) -> bool:
    """Whether a program goes on with the object whose graphdef is merged, as if that had changed it."""
    first = present(event.args[0]) if event.args and event.args[0] is not None else None
    of = present(first.of) if isinstance(first, GraphDefVal) else first
    names = [name for name, value in event.frame.env.names.items() if value is of]
    return any(begin(read) > begin(event.node) for name in names for read in reads_of(event.frame.module.tree, name))


CHANGED = frozenset(
    {"dataclasses.replace", "jax.device_put", "jax.lax.with_sharding_constraint", "nnx.restore_int_paths", "nnx.view"}
    | {"nnx.with_attributes", "optax.apply_updates", ".apply_gradients", ".replace"}
)
"""Calls that give what they are given back in another form, for which the same name will do."""


def _bound_again(event: Called) -> Fix | None:
    """Bind the result to the name of what was given, which is read later on."""
    module, call, frame = event.frame.module, event.node, event.frame
    changed = event.subject in CHANGED or isinstance(event.callee, Obj)
    if not isinstance(call, ast.Call) or not changed:
        return None
    method = isinstance(call.func, ast.Attribute) and (event.subject or "").startswith(".")
    given = call.func.value if method and isinstance(call.func, ast.Attribute) else next(iter(call.args), None)
    scope = frame.func.node if frame.func is not None else module.tree
    if not isinstance(given, ast.Name) or (frame.func is not None and not binds(scope, given.id)):
        return None
    later = (each for each in reads_of(scope, given.id) if begin(each) > begin(call))
    if all(each is given for each in later):
        return None
    return unsafe(f"Bind it to `{given.id}`", insert(module.source.span(call).start, f"{given.id} = "))


@judges_calls(rules.UNUSED_RESULT, *FUNCTIONS_OF_VALUES, *MAPS, ".apply_gradients", ".replace", ".restore")
def overwritten_name(event: Called, report: Reporter) -> None:
    """A result that takes the place of what a name of the function stood for, after which nobody reads the name."""
    frame, module, node = event.frame, event.frame.module, event.node
    if is_shown(frame):
        return
    bound = bound_to(module, node)
    target = bound.target if bound is not None else None
    if not isinstance(target, ast.Name) or target.id.startswith("_"):
        return
    result = new_value(event)
    if result is not None and _is_lost_element(module, target):
        mend = f"`{target.id}` is a name for one element: the next round takes another, and what it came from stays"
        report(module, node, name=event.name, result=f"returns {result}", mend=mend)
        return
    followed = event.subject in MAPS and any(_is_named(frame, value) for value in event.args[1:])
    if frame.func is None or followed:
        return
    if result is not None and _is_last_word(module, frame.func.node, node, target):
        mend = f"nothing reads `{target.id}` after this: return it, or put it into its object by `nnx.update`"
        report(module, node, name=event.name, result=f"returns {result}", mend=mend)


def _is_named(frame: Frame, state: Value | None) -> bool:
    """Whether a value is the State of an object that a function has a name for: NNX229 follows those."""
    of = present(state.of) if isinstance(state, StateVal) else None
    return of is not None and any(value is of for value in frame.env.names.values())


def is_operand(event: Used) -> bool:
    """Whether a value is computed with."""
    return event.what == "an operator"


@judges(rules.UNUSED_RESULT, Used, when=is_operand)
def overwritten_variable(event: Used, report: Reporter) -> None:
    """``count = count + 1`` for a Variable that a function has a name for: the name stands for an array then."""
    frame, module, node = event.frame, event.frame.module, event.node
    whole = node
    for outer in itertools.takewhile(lambda outer: isinstance(outer, ast.BinOp), ancestors(module, node)):
        whole = outer
    bound = bound_to(module, whole)
    target = bound.target if bound is not None else None
    known = isinstance(event.value, Obj) and event.value.cls.is_variable and not event.value.cls.is_open
    if not known or frame.func is None or not isinstance(node, ast.BinOp) or not isinstance(target, ast.Name):
        return
    own = any(is_name(side, target.id) for side in (node.left, node.right))
    if own and not in_test(frame) and _is_last_word(module, frame.func.node, whole, target):
        text = module.source.segment(whole)
        mend = f"write it into the Variable: `{target.id}[...] = {text}`"
        report(module, node, name=text, result="makes an array", mend=mend)


@judges_calls(rules.UNUSED_RESULT, "nnx.*", "class")
def replaced_element(event: Called, report: Reporter) -> None:
    """A layer that is to take the place of another one, and takes only the name that a loop has for that."""
    module, result = event.frame.module, event.result
    if not isinstance(result, Obj) or not result.cls.derives_from("nnx.Module"):
        return
    bound = bound_to(module, event.node)
    target = bound.target if bound is not None else None
    if isinstance(target, ast.Name) and _is_lost_element(module, target):
        mend = f"`{target.id}` is a name for one element: set the attribute of the module that holds it"
        report(module, event.node, name=event.name, result="returns a new layer", mend=mend)


def _is_lost_element(module: Module, target: ast.Name) -> bool:
    """Whether a loop binds the name of its element anew, and nothing reads that name afterwards."""
    outer = list(ancestors(module, target))
    loop = next((node for node in outer if isinstance(node, (*STATEMENT_LOOPS, *FUNCTIONS))), None)
    if not isinstance(loop, (ast.For, ast.AsyncFor)) or not any(is_name(node, target.id) for node in walk(loop.target)):
        return False
    scope = next(node for node in outer if isinstance(node, (*FUNCTIONS, ast.Module)))
    inside, statement = set(walk(loop)), set(walk(outer[0]))
    place = begin(target)
    reads = reads_of(scope, target.id)
    return all(read in statement or (read in inside and begin(read) < place) for read in reads)


def _is_last_word(module: Module, func: Function, value: ast.AST, target: ast.Name) -> bool:
    """Whether a value takes the place of another one that a name had, and nothing reads the name after that."""
    name, nodes = target.id, own_set(func)
    if target not in nodes or name in outer_names(func):
        return False
    if name not in syntax_parameters.names(func.args) and _times_stored(func)[name] < 2:
        return False
    around = itertools.takewhile(lambda node: node is not func, ancestors(module, target))
    again = {inner for loop in around if isinstance(loop, STATEMENT_LOOPS) for inner in walk(loop)}
    taken = set(walk(value))
    place = begin(target)
    return all(
        read in nodes and read not in again and (read in taken or begin(read) < place) for read in reads_of(func, name)
    )


@remembered
def _times_stored(func: Function) -> Counter[str]:
    """How often a function gives each name a value."""
    names = (node for node in own_nodes(func) if isinstance(node, ast.Name))
    return Counter(node.id for node in names if isinstance(node.ctx, ast.Store))


def is_shown(frame: Frame) -> bool:
    """Whether a statement may be there for its value, in a notebook, or for what it raises, in a test."""
    source = frame.module.source
    return in_test(frame) or (frame.func is None and (source.path.endswith(".ipynb") or "\n# %%" in source.text))


def new_value(event: Called) -> str | None:
    """What a call returns that is made for what it returns only."""
    callee = event.callee
    if _computes(event) and (_is_in_forward_pass(event.frame) or _is_in_method(event)):
        return "an array"
    if isinstance(callee, Ext):
        if isinstance(event.result, Transformed):
            return "a function" if callee.name not in IN_PLACE else None
        made = event.result if event.frame.func is not None else None
        if isinstance(made, TransformationVal) and not made.schedule:
            return "a transformation"
        if event.subject in MAPS:
            return MAPS[event.subject] if _maps_purely(event) else None
        return FUNCTIONS_OF_VALUES.get(event.subject or "")
    if isinstance(callee, Transformed) and event.frame.rounds() and callee.applied.row.name in COMPILING_ONLY:
        callee = callee.func  # outside of a loop it may be called to be compiled
    if isinstance(callee, FuncVal):
        return _of_maker(callee)
    if event.subject == ".replace" and isinstance(event.owner, VariableVal) and event.args:
        return "a new Variable"
    if isinstance(callee, Unknown):
        restores = event.subject == ".restore" and foreign.is_of_orbax(event.keywords.get("args"))
        return "what it has read" if restores else _of_record(event)
    if isinstance(callee, BoundMethod) and isinstance(callee.func, FuncVal):
        return _of_maker(callee.func)
    if not isinstance(callee, BoundMethod) or callee.func is not None:
        return None
    if isinstance(callee.receiver, StateVal):
        pure = callee.name in {"filter", "split"} or (callee.name == "map" and _maps_purely(event))
        return "a new State" if pure else None
    if not isinstance(callee.receiver, Obj):
        known = "args" not in event.keywords or foreign.is_of_orbax(event.keywords["args"])
        return foreign.methods_of(callee.receiver).get(callee.name) if known else None
    cls = callee.receiver.cls
    if cls.is_variable:
        return "a new Variable" if callee.name in {"replace", "copy"} else None
    if cls.derives_from("nnx.TrainState"):
        return foreign.RETURNING["nnx.TrainState"].get(callee.name)
    streams = cls.derives_from("nnx.Rngs") or cls.derives_from("nnx.RngStream")
    # Of streams that are made for this call alone nothing can be drawn twice.
    func = event.node.func if isinstance(event.node, ast.Call) else None
    named = isinstance(func, ast.Attribute) and isinstance(func.value, (ast.Name, ast.Attribute))
    return "new streams" if streams and named and callee.name in {"fork", "split"} else None


HARMLESS = frozenset({"builtins.print", "nnx.replace_by_pure_dict"})
"""Functions that a maker may call for what they do, to what is its own."""

READING = frozenset({"nnx.graphdef", "nnx.split", "nnx.state", "nnx.to_flat_state", "nnx.variables"})
"""Functions that change nothing, and give parts of what they are given."""


DERIVING = frozenset(name for name in HANDING_ON if name.startswith("jax.")) - {"jax.jit", "jax.pmap"}
"""Transforms of JAX whose function works on copies: a call of what they make changes nothing."""

CHANGING = frozenset({"builtins.delattr", "builtins.next", "builtins.setattr"})
"""Functions of Python that change what they are given."""


@remembered
def returned_by(func: ast.AST) -> ast.Call | ast.Name | None:
    """What a function returns that has one statement for that, where a call gives it, or a name has it."""
    statements = own_statements(func) if isinstance(func, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    returned = [node.value for node in statements if isinstance(node, ast.Return)]
    value = returned[0] if len(returned) == 1 else None
    return value if isinstance(value, (ast.Call, ast.Name)) else None


def made_by(func: FuncVal) -> ast.Call | None:
    """The call whose result a function of the project returns that does nothing else, where that is something new."""
    env, value = func.env, returned_by(func.node)
    result = (value_of(func.module, value) or value) if value is not None else None
    if not isinstance(result, ast.Call) or {*func.decorators} - {"staticmethod"} or not isinstance(env, Env):
        return None
    for node in own_nodes(func.node):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            return None
        if isinstance(node, (ast.Global, ast.Nonlocal, *EFFECTS)):
            return None
        if isinstance(node, ast.Call) and node is not result and not _does_nothing(func, env, node.func):
            return None
    return result


def _does_nothing(func: FuncVal, env: Env, callee: ast.expr) -> bool:
    """Whether what a maker calls changes nothing that others see; what another library does for it is no matter."""
    callee = value_of(func.module, callee) or callee
    name, root = canonical_of(env, callee) or "", root_of(callee)
    known = name in HARMLESS or name in READING or name in FUNCTIONS_OF_VALUES or name in MAPS
    if known or _computes_array(env, callee):
        return True
    if name or root is None:
        derives = isinstance(callee, ast.Call) and canonical_of(env, callee.func) in DERIVING
        return derives or (root is not None and name not in CHANGING and not name.startswith("nnx."))
    found = env.lookup(root)
    owner = resolved(env, callee.value) if isinstance(callee, ast.Attribute) else None
    held = any(isinstance(value, (Seq, DictVal)) for value in (owner, found[1] if found is not None else None))
    if isinstance(callee, ast.Attribute) and (held or binds(func.node, root)):
        return callee.attr in LOOKING
    called = called_value(env, callee)
    derives = isinstance(called, Transformed) and called.applied.row.name in DERIVING
    return derives or not isinstance(called, (FuncVal, Obj, PartialVal, Transformed))


LOOKING = frozenset({"copy", "get", "items", "keys", "read", "replace", "values"})
"""Methods of what a function has a name for that change nothing, as far as anybody knows."""


def _of_maker(func: FuncVal) -> str | None:
    """What a function of the project returns that only makes something new."""
    result, env = made_by(func), func.env
    if result is None or not isinstance(env, Env):
        return None
    name = canonical_of(env, result.func) or ""
    mapped = result.args[0] if result.args and name in MAPS else None
    if mapped is not None:
        own = mapped.body if isinstance(mapped, ast.Lambda) else None
        known = _is_computation(env, own) if own is not None else _maps(resolved(env, mapped))
        return MAPS[name] if known else None
    return FUNCTIONS_OF_VALUES.get(name)


def _is_in_forward_pass(frame: Frame) -> bool:
    """Whether a statement is part of the forward pass of a module, which is there for what it returns."""
    frame, own = as_method(frame), called_as(frame)
    if frame.func is None or not isinstance(own, UserClass) or not own.derives_from("nnx.Module"):
        return False
    if frame.func.name == "__call__":
        return True
    found = own.find("__call__")
    return found is not None and isinstance(found[1], FuncVal) and frame.func.name in _methods_called(found[1].node)


def _is_in_method(event: Called) -> bool:
    """Whether a function of arrays is called in a method of a module, which has no reason to see how long it takes."""
    func, frame, cls = event.frame.func, event.frame, called_as(event.frame)
    called = event.node.func if isinstance(event.node, ast.Call) else None
    if func is None or not isinstance(cls, UserClass) or not isinstance(called, ast.Attribute):
        return False  # what a plain name stands for may be a layer in the next round, which has a state
    if canonical_of(frame.env, called) is None:
        return False
    tried = is_tried(frame.module, event.node) or is_measured(frame.env, func.node)
    return cls.derives_from("nnx.Module") and not tried


@remembered
def _methods_called(func: Function) -> frozenset[str]:
    """The methods of its own object that a method calls."""
    own = names_of_first(func)
    called = (node.func for node in own_nodes(func) if isinstance(node, ast.Call))
    methods = (each for each in called if isinstance(each, ast.Attribute))
    return frozenset(each.attr for each in methods if isinstance(each.value, ast.Name) and each.value.id in own)


def _computes(event: Called) -> bool:
    """Whether a call computes an array, and nothing that matters without it: a layer may count what it has seen."""
    callee = event.callee
    if isinstance(callee, Obj):
        return isinstance(event.result, Array) and _is_of_layers(callee)
    if isinstance(callee, ArrayAttr):
        return not callee.host and not callee.owner and METHODS.get(callee.name) == "array" and _is_pure(callee.name)
    return isinstance(callee, Ext) and isinstance(event.result, Array) and is_array_function(callee.name)


COMPUTING = frozenset({None, Effect.PURE, Effect.DRAWS, Effect.WRITES_STATE})
"""What a layer may do besides when it computes its result."""


MAX_LAYERS = 100
"""How many parts of a module are looked at."""


def _is_of_layers(module: Obj) -> bool:
    """Whether a module is a layer that computes an array, or one of the project that only puts such ones together."""
    todo: list[Value] = [module]
    for each in todo:
        if isinstance(each, Unknown) or len(todo) > MAX_LAYERS:
            return False
        if isinstance(each, (UnionVal, Seq)):
            todo += each.options if isinstance(each, UnionVal) else each.items
        elif isinstance(each, DictVal):
            todo += (item for _, item in each.items)
        elif isinstance(each, Obj) and (each.cls.derives_from("nnx.List") or each.cls.derives_from("nnx.Dict")):
            todo.append(element_of(each, each.level))
        elif isinstance(each, Obj) and each.cls.derives_from("nnx.Module"):
            library = each.cls.called_as
            if library is not None:
                if library.name not in ARRAY_LAYERS or effect_of(each, "__call__") not in COMPUTING:
                    return False
            elif not isinstance(each.cls, UserClass) or not _puts_together(each.cls):
                return False
            else:
                attrs = (attribute_of(each, name) for name in attribute_names(each))
                todo += (attr.value for attr in attrs if attr is not None)
    return True


def _puts_together(cls: UserClass) -> bool:
    """Whether the methods of a class bind names and return: they set nothing and do nothing."""
    methods = [value for item in cls.lineage for name, value in item.methods.items() if name != "__init__"]
    return not cls.opaque and all(isinstance(method, FuncVal) and _only_binds(method.node) for method in methods)


@remembered
def _only_binds(func: ast.AST) -> bool:
    return all(
        not isinstance(node, (*EFFECTS, ast.Global, ast.Nonlocal))
        and not (isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load))
        and not (isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant))
        for node in walk(func)
    )


def _is_pure(method: str) -> bool:
    return method not in LASTING


def _of_record(event: Called) -> str | None:
    """What a method returns that a decorator or a base has made for a class of records."""
    owner, func = event.owner, event.node.func if isinstance(event.node, ast.Call) else None
    if not isinstance(owner, Obj) or not isinstance(owner.cls, UserClass) or not isinstance(func, ast.Attribute):
        return None
    if owner.cls.foreign and not any(func.attr in item.methods for item in owner.cls.lineage):
        return foreign.RETURNING[owner.cls.foreign].get(func.attr)
    if func.attr == "_replace":
        return "a new object" if owner.cls.named_tuple else None
    if func.attr != "replace":
        return None
    records = owner.cls.lineage
    made = any(item.made_by_base or not item.decorators.keys().isdisjoint(FIELD_DECORATORS) for item in records)
    return "a new object" if made else None


def _maps_purely(event: Called) -> bool:
    """Whether a function that is called for the leaves of a tree only computes."""
    return _maps(given(event).get(0, "f"))


def _maps(func: Value | None) -> bool:
    if isinstance(func, Ext):
        return _is_computing(func.name)
    return isinstance(func, FuncVal) and _only_computes(func)


def _only_computes(func: FuncVal) -> bool:
    """Whether a function is made of operators and calls that compute arrays, and of nothing else.

    One that returns a constant is there to see whether trees fit together.
    """
    body, env = func.expression, func.env
    if not isinstance(env, Env):
        return False
    if body is not None or isinstance(func.node, ast.Lambda):
        return body is not None and _is_computation(env, body)
    parts = [part for statement in func.node.body for part in walk(statement)]
    plain = all(_computes_only(env, part) for part in parts if isinstance(part, (ast.stmt, ast.Call, *EFFECTS)))
    return plain and any(_is_worth(part) for part in parts)


def _computes_only(env: Env, part: ast.AST) -> bool:
    """Whether a statement or a call only computes, and binds names of its own to what it has computed."""
    if isinstance(part, ast.Call):
        name = canonical_of(env, part.func)
        return name in ASKING or RESULTS.get(name or "") == "plain" or _computes_array(env, part.func)
    if isinstance(part, ast.Assign):
        return all(isinstance(target, ast.Name) for target in part.targets)
    said = isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
    return said or isinstance(part, (ast.If, ast.Return))


def _is_worth(part: ast.AST) -> bool:
    """Whether this returns something that is no constant."""
    return isinstance(part, ast.Return) and part.value is not None and not isinstance(part.value, ast.Constant)


ASKING = frozenset({"builtins.getattr", "builtins.hasattr", "builtins.isinstance", "builtins.len"})
"""Functions of Python that only ask what something is or has."""


def _is_computation(env: Env, body: ast.expr) -> bool:
    return not isinstance(body, ast.Constant) and all(
        _computes_array(env, node.func) if isinstance(node, ast.Call) else not isinstance(node, EFFECTS)
        for node in (body, *walk(body))
    )


EFFECTS = (ast.Await, ast.NamedExpr, ast.Yield, ast.YieldFrom)

QUESTIONS = frozenset({"builtins.isinstance", "jax.dtypes.issubdtype", "jax.numpy.issubdtype", "numpy.issubdtype"})
"""What a function over leaves asks to tell them apart, which changes nothing."""


def _is_computing(name: str) -> bool:
    """Whether a function of a library makes arrays of arrays, and nothing besides."""
    return is_array_function(name) or RESULTS.get(name) == "ufunc" or name == "jax.lax.stop_gradient"


def _computes_array(env: Env, func: ast.expr) -> bool:
    name = canonical_of(env, func)
    if name is not None:
        return _is_computing(name) or name in QUESTIONS
    if not isinstance(func, ast.Attribute):
        return False
    return func.attr in OF_VARIABLES or _is_of_at(func) or (METHODS.get(func.attr) == "array" and _is_pure(func.attr))


def _is_of_at(func: ast.Attribute) -> bool:
    """Whether this names a method of ``array.at[...]``."""
    at = func.value.value if isinstance(func.value, ast.Subscript) else None
    return isinstance(at, ast.Attribute) and at.attr == "at" and func.attr in UPDATES


@judges(rules.UNUSED_RESULT, AttributeMissed)
def method_not_called(event: AttributeMissed, report: Reporter) -> None:
    module, node = event.frame.module, event.node
    known = event.name in {"train", "eval"} and event.obj.cls.derives_from("nnx.Module")
    if not known and (effect_of(event.obj, event.name) is None or isinstance(event.obj.cls, UserClass)):
        return
    if is_shown(event.frame) or not isinstance(node, ast.Attribute):
        return
    if isinstance(next(ancestors(module, node), None), ast.Expr):
        text = text_of(node)
        report(module, node, name=text, result="is not called: it names a method", mend=f"call it: `{text}()`")
