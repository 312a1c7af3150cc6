"""Copies where one thing was meant to be shared, or the reverse: weights that are tied by copying them (NNX363), an
object that is updated from itself, or that takes the place of its copy (NNX364).
"""

from __future__ import annotations

import ast
import itertools
import re
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_of, original_of
from nnx_lint.model.callables import FuncVal, Transformed
from nnx_lint.model.classes import UserClass, method_of
from nnx_lint.model.events import AttributeSet, Called, Mutated
from nnx_lint.model.expressions import text_of
from nnx_lint.model.later import is_set_later
from nnx_lint.model.leaves import same_object
from nnx_lint.model.states import StateVal
from nnx_lint.model.unions import UnionVal, present
from nnx_lint.model.values import UNKNOWN, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.bindings import pairs_of, place_of, target_of, value_of, values_in
from nnx_lint.rules.callees import compiled_by
from nnx_lint.rules.program import (
    FUNCTIONS,
    LOOPS,
    ancestors,
    assigned_in,
    calls_in,
    canonical_of,
    enclosing,
    in_test,
    names_of_parameters,
    own_nodes,
    resolved,
)
from nnx_lint.rules.repeating import handed_for
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.dotted import dotted_name
from nnx_lint.syntax.parameters import positional_names
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import graphs as rules
from nnx_rules.transforms import TREE_MAPS

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value

# -- weights that are copied -------------------------------------------------------------------------------------------

TRANSPOSED = frozenset({"T", "mT", "transpose", "swapaxes"})


@judges(rules.COPIED_WEIGHTS, AttributeSet, of=(Obj, UnionVal))
def param_copied(event: AttributeSet, report: Reporter) -> None:
    value = present(event.value)
    if event.frame.initializing is None or not isinstance(value, Obj) or not value.cls.derives_from("nnx.Param"):
        return
    place = place_of(event)
    if isinstance(event.value_node, ast.Call) and place is not None:
        _judge(event.frame, event.node, place, event.value_node, report)


@judges(rules.COPIED_WEIGHTS, Mutated)
def value_copied(event: Mutated, report: Reporter) -> None:
    node, target = event.node, event.target
    if event.frame.initializing is None or not isinstance(node, ast.Assign) or event.effect != "write":
        return
    place = node.targets[0]
    written = isinstance(place, (ast.Attribute, ast.Subscript)) and isinstance(target, Obj)
    if written and isinstance(target, Obj) and target.cls.derives_from("nnx.Param"):
        _judge(event.frame, node, place, node.value, report)


def _judge(frame: Frame, node: ast.AST, place: ast.expr, value: ast.expr, report: Reporter) -> None:
    """Report weights that are the transposed ones of another layer: that is what tied layers have."""
    turned = any(isinstance(item, ast.Attribute) and item.attr in TRANSPOSED for item in walk(value))
    for source in walk(value):
        found = resolved(frame.env, source) if isinstance(source, ast.Attribute) else None
        if turned and isinstance(found, Obj) and found.cls.derives_from("nnx.Param"):
            report(frame.module, node, name=text_of(place), source=text_of(source))
            return


# -- objects that are updated from themselves --------------------------------------------------------------------------


@judges_calls(rules.SELF_UPDATE, "nnx.update")
def updated_from_itself(event: Called, report: Reporter) -> None:
    if len(event.args) != 2 or None in event.args or len(event.nodes) != 2:
        return
    target, state = present(event.args[0] or event.result), event.args[1]
    if not isinstance(target, (Obj, UnionVal)) or not isinstance(state, StateVal):
        return
    source = source_of(event.frame, event.nodes[1])
    if source is None:
        return
    given = [value_of(event.frame.module, each) for each in (event.nodes[0], source)]
    own = [each for each in given if isinstance(each, ast.Attribute)]
    if len(own) == 2 and text_of(own[0]) == text_of(own[1]):
        return  # two names for it, and what the object has now is put into it
    place, node, (named, source) = _given_as(event, event.nodes[0], source)
    one = isinstance(target, Obj) and _are_one(place, target, named, present(state.of), source)
    if not one and not _stands_in(place.module, named, source):
        return
    report(place.module, node, name=text_of(named), other=text_of(source), so=", so this changes nothing")


@judges_calls(rules.SELF_UPDATE, *TREE_MAPS, "optax.incremental_update")
def averaged_with_itself(event: Called, report: Reporter) -> None:
    """A mean of two States of one object: that of a moving average, or of a target network."""
    taken = [
        (present(value.of), source)
        for value, node in zip(event.args, event.nodes, strict=False)
        if isinstance(value, StateVal) and (source := source_of(event.frame, node)) is not None
    ]
    for (one, one_node), (other, other_node) in itertools.pairwise(taken):
        kept = _is_kept_as_given(event.frame, one_node, other_node)
        frame, node = event.frame, event.node
        if not kept:
            frame, node, (one_node, other_node) = _given_as(event, one_node, other_node)
        same = kept or (one is not UNKNOWN and _are_one(frame, one, one_node, other, other_node))
        same = same or _are_given_alike(frame, one_node, other_node)
        if same or _stands_in(frame.module, one_node, other_node) or _stands_in(frame.module, other_node, one_node):
            name, shown = text_of(one_node), text_of(other_node)
            report(frame.module, node, name=name, other=shown, so=", so this is the State that it has")
            return


def _stands_in(module: Module, copy: ast.expr, original: ast.expr) -> bool:
    """Whether an object takes the place of its copy where the caller has given none: ``if target is None: target =
    net``.
    """
    scope = enclosing(module, copy, *FUNCTIONS)
    names = [node.id for node in (copy, original) if isinstance(node, ast.Name)]
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) or len(names) < 2:
        return False
    parameters, (kept, other) = names_of_parameters(scope), names
    if not {kept, other} <= parameters or assigned_in(scope)[kept] != 1 or assigned_in(scope)[other]:
        return False
    anew = next(iter(_assigned_anew(scope).get(kept, ())), None)
    inside = enclosing(module, anew[0], ast.If) if anew is not None and is_name(anew[1], other) else None
    if anew is None or inside is None or anew[0] not in inside.body:
        return False
    return ast.unparse(inside.test) == f"{kept} is None"


def _given_as(event: Called, one: ast.expr, other: ast.expr) -> tuple[Frame, ast.AST, tuple[ast.expr, ast.expr]]:
    """The call that gives two objects to the functions that lead to another one, and how it names them."""
    frame, node = event.frame, event.node
    while frame.func is not None and frame.caller is not None and (call := frame.call) is not None:
        func = frame.func.node
        own = [each for each in (one, other) if isinstance(each, ast.Name) and each.id in names_of_parameters(func)]
        given = [handed_for(frame, each.id) for each in own if not assigned_in(func)[each.id]]
        if len(given) != 2 or given[0] is None or given[1] is None:
            break
        one, other = given[0], given[1]
        frame, node = frame.caller, call
    return frame, node, (one, other)


def _is_kept_as_given(frame: Frame, one: ast.expr, other: ast.expr) -> bool:
    """Whether one of two expressions is an attribute that holds what its object was made with, as it was given, and the
    other one a parameter that the method is given the same for.
    """
    owner = frame.receiver
    for kept, given in ((one, other), (other, one)):
        if not isinstance(kept, ast.Attribute) or not isinstance(given, ast.Name) or not isinstance(owner, Obj):
            continue
        made, value = _given_for(owner, kept.attr), resolved(frame.env, given)
        if resolved(frame.env, kept.value) is not owner or made is None or not isinstance(value, Obj):
            continue
        named = _given_first(frame, given)
        if named is not None and not _is_copied(*named) and same_object(made, value):
            return True
    return False


def _given_first(frame: Frame, node: ast.expr) -> tuple[Module, ast.expr] | None:
    """How a parameter is called where it is first handed over, by name; ``None`` for anything but a parameter."""
    found: tuple[Module, ast.expr] | None = None
    while isinstance(node, ast.Name) and frame.func is not None and frame.caller is not None:
        func = frame.func.node
        if node.id not in names_of_parameters(func) or assigned_in(func)[node.id]:
            break
        handed = handed_for(frame, node.id)
        if handed is None:
            return None
        node, frame = handed, frame.caller
        found = frame.module, node
    return found


def _given_for(owner: Obj, name: str) -> Obj | None:
    """What the constructor was given that an attribute holds since then, where the call names one object for it."""
    attr = original_of(owner, name)
    first = attr.first if attr is not None and len(attr.assignments) == 1 else None
    source = first.value_node if first is not None and not first.branches else None
    found = method_of(owner.cls, "__init__") if isinstance(owner.cls, UserClass) else None
    init = found[1] if found is not None else None
    if not isinstance(source, ast.Name) or owner.origin is None or not isinstance(init, FuncVal):
        return None
    module, call = owner.origin
    plain = source.id in names_of_parameters(init.node) and not assigned_in(init.node)[source.id]
    if not isinstance(call, ast.Call) or not plain or is_set_later(owner.cls, name):
        return None
    given = dict(zip(positional_names(init.node.args)[1:], call.args, strict=False))
    given |= {item.arg: item.value for item in call.keywords if item.arg is not None}
    node, made = given.get(source.id), (owner.args or {}).get(source.id)
    repeated = isinstance(enclosing(module, call, *LOOPS, *FUNCTIONS), LOOPS)
    if node is None or repeated or _is_copied(module, node):
        return None
    return made if isinstance(made, Obj) else None


def _is_copied(module: Module, node: ast.expr) -> bool:
    """Whether an expression is anything but a name of an object, or what has the name may be a copy."""
    if not isinstance(node, (ast.Attribute, ast.Name)):
        return True
    cls = enclosing(module, node, ast.ClassDef) if isinstance(node, ast.Attribute) else None
    scope: ast.AST = cls or enclosing(module, node, *FUNCTIONS) or module.tree
    made = [value_of(module, value) or value for _, value in _assigned_anew(scope).get(text_of(node), ())]
    calls = (each for value in made for each in walk(value) if isinstance(each, ast.Call))
    return any(canonical_of(module.env, each.func) in (*COPYING, "nnx.merge") for each in calls)


def updated_with(frame: Frame, state: ast.AST) -> ast.expr | None:
    """The object that ``nnx.update`` puts a State into."""
    call = next(ancestors(frame.module, state), None)
    if not isinstance(call, ast.Call) or len(call.args) != 2 or call.args[1] is not state:
        return None
    return call.args[0] if canonical_of(frame.env, call.func) == "nnx.update" else None


def source_of(frame: Frame, node: ast.expr) -> ast.expr | None:
    """The object whose State an expression is, or a name that is bound once to its State, before it is bound anew."""
    node = value_of(frame.module, node) or _first_of_two(frame.module, node) or node
    call = node if isinstance(node, ast.Call) and canonical_of(frame.env, node.func) == "nnx.state" else None
    return call.args[0] if call is not None and call.args else None


def _first_of_two(module: Module, node: ast.expr) -> ast.expr | None:
    """What a name is bound to that an expression is computed from which it then stands for: ``t = f(s, t)``."""
    scope = enclosing(module, node, *FUNCTIONS) or module.tree
    values = values_in(scope).get(node.id, []) if isinstance(node, ast.Name) else []
    before = [value for value in values if value.lineno < node.lineno and node not in walk(value)]
    return before[0] if len(values) == 2 and len(before) == 1 else None


# -- copies that give way to the original ------------------------------------------------------------------------------

NO_LONGER = " from here on, and no longer a copy"
COPYING = ("nnx.clone", "copy.deepcopy", "copy.copy")


@judges(rules.SELF_UPDATE, AttributeSet, of=(Obj, UnionVal))
def original_on_attribute(event: AttributeSet, report: Reporter) -> None:
    """An attribute that holds a clone of another one is assigned that one itself."""
    copied = present(event.before.value) if event.before is not None else UNKNOWN
    value, frame = present(event.value), event.frame
    if not isinstance(copied, Obj) or copied.merged or copied.leaf_level is not None or copied.template is None:
        return
    if not isinstance(value, Obj) or frame.initializing is event.obj or in_test(frame):
        return
    names = [name for name in event.obj.attrs if name != event.name and _held(event.obj, name) is value]
    if any(_original(event.obj, name) is copied.template for name in names):
        owner = "self." if frame.receiver is event.obj else ""
        report(frame.module, event.node, name=f"{owner}{event.name}", other=f"{owner}{names[0]}", so=NO_LONGER)


@judges_calls(rules.SELF_UPDATE, *COPYING)
def original_in_place_of_copy(event: Called, report: Reporter) -> None:
    """A copy that is kept beside an object, and is brought up to date by assigning the object itself."""
    module, call = event.frame.module, event.node
    target = target_of(module, call)
    source = event.nodes[0] if event.nodes else None
    made = event.args[0] if event.args else None
    if target is None or source is None:
        return
    if event.subject != "nnx.clone" and not (isinstance(made, Obj) and made.cls.derives_from("nnx.Module")):
        return
    if isinstance(target, ast.Attribute):
        scope: ast.AST | None = enclosing(module, call, ast.ClassDef)
    else:
        scope = enclosing(module, call, *FUNCTIONS)
    if scope is None or in_test(event.frame) or not isinstance(target, (ast.Attribute, ast.Name)):
        return
    name, others = text_of(target), _names_of(module, call, source)
    if isinstance(target, ast.Name) and assigned_in(scope)[text_of(source)]:
        return
    for item, value in _assigned_anew(scope).get(name, ()):
        if item.lineno <= target.lineno:
            continue
        again = isinstance(target, ast.Attribute) or isinstance(enclosing(module, item, *LOOPS, *FUNCTIONS), LOOPS)
        if again and text_of(value) in others:
            report(module, item, name=name, other=text_of(value), so=NO_LONGER)


KEPT_APART = re.compile(r"_*(anchor|baseline|ema|frozen|old|prev|previous|ref|reference|target|teacher)(_|$)")
"""How a parameter begins that is a model of before, or one beside the model that is trained."""

ALONG = ": what is trained is no fixed copy any more"


@judges_calls(rules.SELF_UPDATE, Transformed)
def original_as_reference(event: Called, report: Reporter) -> None:
    """``ref = policy``, and a step that trains the policy gets both."""
    func = compiled_by(event.callee).func if isinstance(event.callee, Transformed) else None
    if not isinstance(func, FuncVal) or len(event.args) < 2 or in_test(event.frame):
        return
    given = [*zip(positional_names(func.node.args), event.args, event.nodes, strict=False)]
    for name, value, node in given:
        if not KEPT_APART.match(name) or not isinstance(value, Obj):
            continue
        for trained, other, beside in given:
            if other is not value or trained == name or not _is_updated(func.node, trained):
                continue
            if _are_one(event.frame, value, node, value, beside) and not _is_brought_up(event.frame.module, node):
                place = value_of(event.frame.module, node, depth=0) or node
                report(event.frame.module, place, name=text_of(node), other=text_of(beside), so=ALONG)
                return


def _is_brought_up(module: Module, node: ast.expr) -> bool:
    """Whether a file brings an object up to date from another one: there it shows that they are one."""
    named = dotted_name(node)
    calls = (call for call in calls_in(module.tree) if canonical_of(module.env, call.func) == "nnx.update")
    return any(call.args and dotted_name(call.args[0]) == named for call in calls)


def _is_updated(func: ast.AST, name: str) -> bool:
    """Whether a function hands a parameter to an optimizer, with its gradients."""
    updates = (call for call in calls_in(func) if isinstance(call.func, ast.Attribute) and call.func.attr == "update")
    return any(len(call.args) == 2 and is_name(call.args[0], name) for call in updates)


def _names_of(module: Module, call: ast.AST, source: ast.expr) -> set[str]:
    """How a class calls what a constructor copies: what it is bound to beside the copy."""
    scope = enclosing(module, call, *FUNCTIONS)
    shown = text_of(source)
    return {shown, *(_names_by_value(scope).get(shown, ()) if scope is not None else ())}


@remembered
def _assigned_anew(scope: ast.AST) -> dict[str, list[tuple[ast.stmt, ast.expr]]]:
    """The assignments in a class or function with what they assign, by how the target is written."""
    found: dict[str, list[tuple[ast.stmt, ast.expr]]] = {}
    for item in (node for node in walk(scope) if isinstance(node, ast.stmt)):
        for target, value in pairs_of(item):
            found.setdefault(text_of(target), []).append((item, value))
    return found


@remembered
def _names_by_value(scope: ast.AST) -> dict[str, list[str]]:
    """What a function binds to a value, by how that is written."""
    found: dict[str, list[str]] = {}
    for item in own_nodes(scope):
        for target, value in pairs_of(item):
            found.setdefault(text_of(value), []).append(text_of(target))
    return found


def _are_one(frame: Frame, one: Value, one_node: ast.expr, other: Value, other_node: ast.expr) -> bool:
    """Whether two expressions, which are written differently, are one object: by name, or as attributes of one.

    The values alone do not tell: one stands for all elements of a list whose length is not known.
    """
    if ast.dump(one_node) == ast.dump(other_node):
        return False
    if isinstance(one_node, ast.Attribute) and isinstance(other_node, ast.Attribute):
        owner = resolved(frame.env, one_node.value)
        if not isinstance(owner, Obj) or ast.dump(one_node.value) != ast.dump(other_node.value):
            return False
        original = _original(owner, one_node.attr)
        same = original is not None and original is _original(owner, other_node.attr)
        return same and _source(owner, one_node.attr) == _source(owner, other_node.attr)
    one, other = (_unwrapped(frame.module, *each) for each in ((one_node, one), (other_node, other)))
    return one is other and _named(frame.module, one_node) == _named(frame.module, other_node)


def _are_given_alike(frame: Frame, one: ast.expr, other: ast.expr) -> bool:
    """Whether two attributes of an object are kept as one parameter gave them, and as nothing else."""
    if not isinstance(one, ast.Attribute) or not isinstance(other, ast.Attribute) or one.attr == other.attr:
        return False
    owners = [resolved(frame.env, each.value) for each in (one, other)]
    owner = owners[0]
    if not isinstance(owner, Obj) or owner is not owners[1]:
        return False
    attrs = [attribute_of(owner, each.attr) for each in (one, other)]
    if not all(attr is not None and len(attr.assignments) == 1 for attr in attrs):
        return False
    made = [attr.assignments[0] for attr in attrs if attr is not None]
    names = {each.value_node.id for each in made if isinstance(each.value_node, ast.Name)}
    scopes = {enclosing(each.module, each.value_node, *FUNCTIONS) for each in made if each.value_node is not None}
    scope, name = scopes.pop() if len(scopes) == 1 else None, names.pop() if len(names) == 1 else None
    if name is None or not isinstance(scope, FUNCTIONS) or not all(isinstance(e.value_node, ast.Name) for e in made):
        return False
    return name in names_of_parameters(scope) and not assigned_in(scope)[name]


def _unwrapped(module: Module, node: ast.expr, value: Value) -> Value:
    """What has the Variables of an object: for a name of a shallow copy, the object that it was made of."""
    bound = value_of(module, node)
    source = _copied_from(module, bound) if bound is not None else None
    if source is None or not isinstance(value, Obj) or value.template is None:
        return value
    return _unwrapped(module, source, value.template)


def _copied_from(module: Module, node: ast.expr) -> ast.expr | None:
    """What a call makes a shallow copy of, which has the same Variables."""
    plain = isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords
    copies = plain and isinstance(node, ast.Call) and canonical_of(module.env, node.func) == "copy.copy"
    return node.args[0] if copies and isinstance(node, ast.Call) else None


def _named(module: Module, node: ast.expr) -> object:
    """What tells objects apart that names stand for: what made them, or the name, dotted or not, that has no other."""
    while (bound := value_of(module, node)) is not None:
        node = _copied_from(module, bound) or bound
    name = dotted_name(node)
    return (id(enclosing(module, node, *FUNCTIONS)), name) if name is not None else id(node)


def _source(owner: Obj, name: str) -> object:
    """The same for an attribute, which may be assigned another one."""
    for _ in owner.attrs:
        attr = attribute_of(owner, name)
        last = attr.assignments[-1] if attr is not None and attr.assignments else None
        node = last.value_node if last is not None else None
        if last is None or node is None:
            return name
        node = value_of(last.module, node) or node
        node = _copied_from(last.module, node) or node
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            return _named(last.module, node)
        name = node.attr
    return name


def _original(owner: Obj, name: str) -> Obj | None:
    """The object that an attribute was assigned: an instance has copies of what its template holds, each by itself."""
    value = _held(owner, name)
    while value is not None and owner.template is not None and value.template is _held(owner.template, name):
        owner, value = owner.template, value.template
    attr = attribute_of(owner, name)
    made = attr.assignments[-1] if attr is not None and attr.assignments else None
    node = made.value_node if made is not None else None
    shallow = made is not None and node is not None and _copied_from(made.module, node) is not None
    return value.template if shallow and value is not None else value


def _held(owner: Obj, name: str) -> Obj | None:
    attr = attribute_of(owner, name)
    value = present(attr.value) if attr is not None else None
    return value if isinstance(value, Obj) else None
