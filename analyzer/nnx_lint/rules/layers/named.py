"""Sizes that have two names, where a layer takes one and gets the other.

Whoever writes ``Linear(dim, hidden)`` means two numbers; where a layer for ``dim`` then gets ``hidden``, the class
works for nobody who gives it two. Invariants: nothing is said of names that the file itself shows to be one number: it
compares them, has the same default for both, makes the class with the same for both, or says itself how large the
fields of a configuration are. An axis of what somebody gives may have any size; but one array that has it beside
another axis, of which a parameter says how many heads there are, has two axes for two things.
"""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from nnx_lint.model.classes import UserClass, method_of
from nnx_lint.model.values import ClassVal, Const, Obj
from nnx_lint.rules.bindings import target_of
from nnx_lint.rules.program import ancestors, attribute_reads, attributes_stored, calls_in, resolved
from nnx_lint.syntax import parameters
from nnx_lint.syntax.binding import assigned_names, is_name
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import dumped, remembered, walk
from nnx_rules.sizes import Size, differ, is_local, two_names

if TYPE_CHECKING:
    from nnx_lint.model.callables import FuncVal
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_rules.shapes import Dimension, Shape


def are_unlike(frame: Frame, node: ast.AST, one: Dimension, other: Dimension, *shapes: Shape) -> bool:
    """Whether two sizes are different for all that may make the object at hand, or by their names; or where both stand
    in one of these shapes, the one read off an array that somebody gives, and the other a parameter.
    """
    if differ(one, other):
        return True
    names = two_names(one, other)
    if names is None or not any(map(is_local, names)):
        return names is not None and mean_two_numbers(frame, names, node)
    beside = {one, other} == {*names} and any(one in shape and other in shape for shape in shapes)
    return beside and one != other and _are_of_call_and_class(frame, node, names)


PARTS = frozenset({"experts", "groups", "heads"})
"""What the last word of a name says that stands for a number of parts, which is no number of places or features."""


def _are_of_call_and_class(frame: Frame, node: ast.AST, names: tuple[Dimension, Dimension]) -> bool:
    """Whether one of two names is that of a parameter of the class for a number of parts, which nothing compares with
    the other one.
    """
    given, own = names if is_local(names[0]) else reversed(names)
    if is_local(own) or not isinstance(own, Size) or str(own).rpartition("_")[2].rpartition(".")[2] not in PARTS:
        return False
    found = _constructor_with(frame, {str(own).partition(".")[0]})
    return found is not None and not _are_compared(found[0], (node,), str(given), str(own))


def mean_two_numbers(frame: Frame, names: tuple[Dimension, Dimension], *places: ast.AST) -> bool:
    """Whether nothing shows that two names of sizes in the constructor of the object at hand stand for one number,
    where these places of its class need them to; or that one name stands for that number.
    """
    if any(map(is_local, names)):
        return False  # what an array has that somebody gives may be any of them
    known = [str(name) for name in names if not isinstance(name, int)]
    roots = {name.partition(".")[0] for name in known}
    found = _constructor_with(frame, roots)
    if found is None:
        return False
    cls, func = found
    if len(known) == 1:
        usual = _default(func, known[0])
        needed = 1 in names and "." not in known[0] and known[0] not in func.defaults
        told = type(usual) is int or (needed and not _is_given(frame, cls, func, known[0], 1))
        if not told or usual in names or _is_said_in_call(frame.module, known[0]):
            return False
        return not _are_compared(cls, places, *known)
    if _are_said(frame.module, *known) or _are_compared(cls, places, *known):
        return False
    one, other = known
    if _may_be_aliases(func, one, other):
        return False
    return not (_have_one_default(func, one, other) or _are_given_as_one(frame, cls, func, one, other))


ALIASES = frozenset({"d_model", "dim", "hidden_size", "n_embd"})
"""What configurations of transformers call the size of the model; many have two of these names for it."""


def _may_be_aliases(func: FuncVal, *names: str) -> bool:
    """Whether two fields of a configuration that is out of sight may be two names of one number."""
    owners = {name.rpartition(".")[0] for name in names}
    named = all(name.rpartition(".")[2] in ALIASES and _default(func, name) is None for name in names)
    return named and len(owners) == 1 and "" not in owners


def _constructor_with(frame: Frame, names: set[str]) -> tuple[UserClass, FuncVal] | None:
    """The class whose constructor has parameters of these names: that of the object at hand, or of one that has it,
    where nothing on the way to it asks whether the sizes are equal that it is given.
    """
    for each in (frame, *(outer for outer, _ in frame.callers())):
        cls = each.receiver.cls if isinstance(each.receiver, Obj) else None
        found = method_of(cls, "__init__") if isinstance(cls, UserClass) else None
        if isinstance(cls, UserClass) and found is not None:
            taken = parameters.positional_names(found[1].wrapped.node.args)[1:]
            taken += [item.arg for item in found[1].wrapped.node.args.kwonlyargs]
            if names <= {*taken}:
                return cls, found[1].wrapped
            compared = itertools.chain.from_iterable(_comparisons(item.node) for item in cls.lineage)
            if any(len(named & {*taken}) > 1 for _, named in compared):
                return None
    return None


CHECKING = ("assert", "check", "ensure", "equal", "require", "same", "valid")
"""Words in the names of functions that refuse what they are given."""


@remembered
def _comparisons(node: ast.AST) -> list[tuple[ast.Compare | ast.Call, frozenset[str]]]:
    """The comparisons in a class, and what it calls to have sizes compared, with the names in each."""
    found = (each for each in map(_comparison, walk(node)) if each is not None)
    return [(each, frozenset(last_name(part) for part in walk(each) if isinstance(part, ast.expr))) for each in found]


def _comparison(node: ast.AST) -> ast.Compare | ast.Call | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        name = last_name(node.value.func).lower()
        return node.value if any(word in name for word in CHECKING) else None
    return node if isinstance(node, ast.Compare) else None


def _are_compared(cls: UserClass, places: tuple[ast.AST, ...], *names: str) -> bool:
    """Whether the class asks somewhere whether they are equal, or chooses by one of them: but where it makes something
    more for those that differ, they may differ everywhere else.
    """
    ends = {name.rpartition(".")[2] for name in names}
    for item in cls.lineage:
        for asked, named in _comparisons(item.node):
            if ends <= named:
                if len(names) > 1 and _is_bound(item.module, asked):
                    continue
                nodes = _where_equal(cls, item.module, asked)
                if nodes is None or len(names) == 1 or any(each in places for each in nodes):
                    return True
    return False


def _where_equal(cls: UserClass, module: Module, asked: ast.Compare | ast.Call) -> list[ast.AST] | None:
    """The nodes that may be run although what is compared is equal, where the answer only chooses what is done."""
    if isinstance(asked, ast.Call) or not isinstance(asked.ops[0], (ast.Eq, ast.NotEq)):
        return None
    equal = isinstance(asked.ops[0], ast.Eq)
    kept = target_of(module, asked)
    if not isinstance(kept, ast.Attribute):
        return _arm(module, asked, equal=equal)
    nodes: list[ast.AST] = []
    for owner in cls.lineage:
        for read in attribute_reads(owner.node, kept.attr):
            outer = next(ancestors(owner.module, read), None)
            negated = isinstance(outer, ast.UnaryOp) and isinstance(outer.op, ast.Not)
            arm = _arm(owner.module, outer if negated and outer else read, equal=equal is not negated)
            if arm is None:
                return None
            nodes += arm
    return nodes


def _arm(module: Module, test: ast.AST, *, equal: bool) -> list[ast.AST] | None:
    """What may be run although two sizes are equal, of what a test chooses that is true where they are, or are not."""
    outer = next((each for each in ancestors(module, test) if not isinstance(each, ast.BoolOp)), None)
    if not isinstance(outer, (ast.If, ast.IfExp)):
        return None
    ends = (ast.Raise, ast.Return, ast.Assert, ast.Continue, ast.Break)
    if isinstance(outer, ast.If) and any(isinstance(each, ends) for part in outer.body for each in walk(part)):
        return None
    if outer.test is not test:
        return walk(outer)
    arm = outer.body if equal else outer.orelse
    return [node for part in (arm if isinstance(arm, list) else [arm]) for node in walk(part)]


def _is_bound(module: Module, asked: ast.Compare | ast.Call) -> bool:
    """Whether a comparison only rules out numbers that do not go together, such as one that is larger than the other,
    or does not divide it.
    """
    if isinstance(asked, ast.Call):
        return False
    outer = next((each for each in ancestors(module, asked) if not isinstance(each, (ast.BoolOp, ast.UnaryOp))), None)
    ends = isinstance(outer, ast.Assert) or (isinstance(outer, ast.If) and isinstance(outer.body[-1], ast.Raise))
    equal = isinstance(asked.ops[0], (ast.Eq, ast.NotEq))
    divided = isinstance(asked.left, ast.BinOp) and isinstance(asked.left.op, ast.Mod)
    return ends and len(asked.ops) == 1 and (divided or not equal)


def _are_said(module: Module, *names: str) -> bool:
    """Whether the file says somewhere what one of two fields of a configuration is."""
    fields = frozenset(name.rpartition(".")[2] for name in names if "." in name)
    if not fields or all(fields.isdisjoint(_said(statement)) for statement in module.tree.body):
        return False
    return len(fields) == 1 or not _are_told_apart(module.tree, *fields)


def _is_said_in_call(module: Module, name: str) -> bool:
    """Whether the file makes a configuration with a number of its own for a field, or puts one there."""
    field = name.rpartition(".")[2]
    return "." in name and any(field in _said_by_calls(statement) for statement in module.tree.body)


@remembered
def _said_by_calls(statement: ast.AST) -> frozenset[str]:
    """The names under which a statement puts something, but for the defaults that fields have in their class."""
    declared = (item.body for item in walk(statement) if isinstance(item, ast.ClassDef))
    fields = {name for body in declared for name in assigned_names([x for x in body if isinstance(x, ast.AnnAssign)])}
    calls = {item.arg for item in walk(statement) if isinstance(item, ast.keyword)}
    return _said(statement) - (fields - calls)


def _are_told_apart(tree: ast.AST, one: str, other: str) -> bool:
    """Whether every place of a file that says how large one of two fields is says another number of the other one."""
    for node in walk(tree):
        given: dict[str | None, ast.expr | None] = {}
        if isinstance(node, ast.Call):
            # what only hands the field on says nothing: `Embedder(dim=config.dim)`
            given = {item.arg: item.value for item in node.keywords if last_name(item.value) != item.arg}
        elif isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, (ast.AnnAssign, ast.Assign)) and item.value is not None:
                    given.update(dict.fromkeys(assigned_names([item]), item.value))
            given.update((name, None) for name in attributes_stored(node) if name in given)  # it computes them
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and not is_name(node.value, "self"):
            given = {node.attr: None}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            given = {node.value.lstrip("-").replace("-", "_"): None}
        if one in given or other in given:
            values = [given.get(one), given.get(other)]
            numbers = {item.value for item in values if isinstance(item, ast.Constant) and type(item.value) is int}
            if len(numbers) != len(values):
                return False
    return True


@remembered
def _said(statement: ast.AST) -> frozenset[str]:
    """The names under which a statement puts something: attributes, keywords of calls, entries of dicts and options."""
    found: set[str] = set()
    for node in walk(statement):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and not is_name(node.value, "self"):
            found.add(node.attr)
        elif isinstance(node, ast.keyword) and node.arg is not None:
            found.add(node.arg)
        elif isinstance(node, ast.ClassDef):
            given = [item for item in node.body if isinstance(item, (ast.AnnAssign, ast.Assign)) and item.value]
            found |= assigned_names(given)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value.lstrip("-").replace("-", "_"))
    return frozenset(found)


def _have_one_default(func: FuncVal, *names: str) -> bool:
    found = [_default(func, name) for name in names]
    return found[0] is not None and found[0] == found[1]


def _default(func: FuncVal, name: str) -> object:
    """The number that a parameter has if nobody gives it, or a field of the class that annotates the parameter."""
    parameter, _, field = name.partition(".")
    value = func.defaults.get(parameter)
    if field:
        every = [*parameters.positional(func.node.args), *func.node.args.kwonlyargs]
        node = next((item.annotation for item in every if item.arg == parameter), None)
        record = resolved(func.module.env, node)
        known = isinstance(record, ClassVal) and isinstance(record.cls, UserClass)
        value = record.cls.class_attribute(field) if known else None  # type: ignore[union-attr]
    return value.value if isinstance(value, Const) else None


ASKING = frozenset({"isinstance", "issubclass", "iter_modules", "super"})
"""Functions that get a class and make nothing of it."""


def _is_given(frame: Frame, cls: UserClass, func: FuncVal, name: str, number: int) -> bool:
    """Whether a call in the file gives the class this number for a parameter, or hands the class on."""
    order = parameters.positional_names(func.node.args)[1:]
    for statement in frame.module.tree.body:
        if cls.name in _handed_over(statement):
            return True
        for call in calls_in(statement):
            if last_name(call.func) in {cls.name, "__init__"}:
                value = _arguments(call, order).get(name)
                if isinstance(value, ast.Constant) and value.value == number:
                    return True
    return False


def _arguments(call: ast.Call, order: list[str]) -> dict[str, ast.expr]:
    """What a call gives to parameters, by their names."""
    given = dict(zip(order, call.args, strict=False))
    return given | {item.arg: item.value for item in call.keywords if item.arg is not None}


def _are_given_as_one(frame: Frame, cls: UserClass, func: FuncVal, *names: str) -> bool:
    """Whether a call in the file gives the class the same for both parameters, and none something else for the second
    one, or hands the class to who may do so.
    """
    order = parameters.positional_names(func.node.args)[1:]
    statements = frame.module.tree.body
    if any(cls.name in _handed_over(statement) for statement in statements):
        return True
    made_here = [call for part in statements for call in calls_in(part) if last_name(call.func) == cls.name]
    arguments = [_arguments(call, order) for call in made_here]
    if any(len({dumped(given[name]) for name in names if name in given}) > 1 for given in arguments):
        return False
    for call in itertools.chain.from_iterable(map(_giving_twice, statements)):
        given = _arguments(call, order)
        texts = [dumped(given[name]) for name in names if name in given]
        if len(texts) == len(names) and len(set(texts)) == 1:
            made = resolved(frame.module.env, call.func)
            if (isinstance(made, ClassVal) and cls in made.cls.ancestors) or last_name(call.func) == cls.name:
                return True
    return False


@remembered
def _handed_over(statement: ast.AST) -> frozenset[str]:
    """The names that calls in a statement give by position."""
    calls = (call for call in calls_in(statement) if last_name(call.func) not in ASKING)
    return frozenset(item.id for call in calls for item in call.args if isinstance(item, ast.Name))


@remembered
def _giving_twice(statement: ast.AST) -> list[ast.Call]:
    """The calls in a statement that give two parameters the same."""
    found: list[ast.Call] = []
    for call in calls_in(statement):
        given = [*call.args, *(item.value for item in call.keywords)]
        if len(given) > 1 and len({ast.dump(item) for item in given}) < len(given):
            found.append(call)
    return found
