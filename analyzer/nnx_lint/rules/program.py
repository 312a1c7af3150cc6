"""What the text around a place says: what encloses it, what a name means there, what a call gives.

Rules judge values; they come here where the text decides, too: whether a call is the default of a parameter, whether a
name is bound once, which functions a decorator list applies. Invariants: nothing is executed, and a name is resolved
only through scopes that the interpreter has already filled; what cannot be resolved is ``None``.
"""

from __future__ import annotations

import ast
import bisect
import functools
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from nnx_lint.model.attributes import attribute_of
from nnx_lint.model.callables import PartialVal
from nnx_lint.model.calls import Arguments
from nnx_lint.model.expressions import BUILTINS, text_of
from nnx_lint.model.imports import library_value
from nnx_lint.model.values import ClassVal, Ext, ModuleVal, Obj
from nnx_lint.rules.sorting import sorted_in
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import ASKING
from nnx_lint.syntax.compact import for_both
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.places import CLAUSES, begin, standing_in
from nnx_lint.syntax.walk import STATEMENTS, children, dumped, first_line, remembered, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nnx_lint.model.classes import ClassBase
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Env, Module
    from nnx_lint.model.values import Value

N = TypeVar("N", bound=ast.AST)

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
STATEMENT_LOOPS = (ast.For, ast.AsyncFor, ast.While)
LOOPS = (*STATEMENT_LOOPS, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@functools.lru_cache(maxsize=2_000)  # questions are about one function at a time
def _parents(statement: ast.AST) -> dict[ast.AST, ast.AST]:
    """The nodes around all nodes in a statement, or in a clause of one, that are in no block of it."""
    own: list[ast.AST] = [node for node in children(statement) if not isinstance(node, (ast.stmt, *CLAUSES))]
    parents: dict[ast.AST, ast.AST] = dict.fromkeys(own, statement)
    for parent in own:
        below = children(parent)
        parents.update(dict.fromkeys(below, parent))
        own += below
    return parents


@functools.lru_cache(maxsize=50)
def _parents_of_all(statement: ast.stmt) -> dict[ast.AST, ast.AST]:
    """The nodes around all nodes in a statement."""
    return {node: parent for parent in walk(statement) for node in children(parent)}


def ancestors(module: Module, node: ast.AST) -> Iterator[ast.AST]:
    """The nodes around a node of a module, innermost first."""
    return iter(_around(module.source.tree, node))


@functools.lru_cache(maxsize=200)  # several rules ask about one call
def _around(tree: ast.Module, node: ast.AST) -> tuple[ast.AST, ...]:
    if node is tree:
        return ()
    placed = node
    while not hasattr(placed, "lineno") and (below := children(placed)):
        placed = below[0]
    line: int = getattr(placed, "lineno", 0)
    outer = standing_in(tree, line, getattr(placed, "col_offset", 0))
    statement = next(outer, None)
    if statement is not None and (node is statement or node in _parents(statement)):
        return (*_up(node, statement, _parents(statement)), *outer, tree)
    # Python is not always right about the places of what stands in an f-string.
    for top in tree.body[: bisect.bisect_right(tree.body, line, key=first_line)][::-1]:
        if node in (parents := _parents_of_all(top)):
            return (*_up(node, top, parents), tree)
        if first_line(top) < line:
            break
    return (tree,)


def _up(node: ast.AST, statement: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    """The nodes around a node, up to a statement."""
    while node is not statement:
        node = parents[node]
        yield node


def around(frame: Frame, node: ast.AST) -> list[ast.AST]:
    """The nodes around a node, from the function or module of a frame to its parent; empty if it stands elsewhere."""
    top: ast.AST = frame.func.node if frame.func is not None else frame.module.source.tree
    found: list[ast.AST] = []
    for outer in ancestors(frame.module, node):
        found.append(outer)
        if outer is top:
            return found[::-1]
    return []


def in_test(frame: Frame) -> bool:
    """Whether code is a test or stands in a file of tests, by the conventions of pytest and unittest: it may call
    something to see it pass, and what it tries out may be any numbers, the same ones twice.
    """
    named = frame.func is not None and frame.func.name.startswith("test")
    return named or _is_of_tests(frame.module.source.path)


@functools.lru_cache(maxsize=1_000)
def _is_of_tests(path: str) -> bool:
    name = PurePath(path).name
    return name == "conftest.py" or (name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py")))


def enclosing(module: Module, node: ast.AST, *kinds: type[N]) -> N | None:
    """The innermost node of these kinds around a node."""
    return next((item for item in ancestors(module, node) if isinstance(item, kinds)), None)


def call_of(module: Module, node: ast.AST) -> ast.Call | None:
    """The call that calls an expression."""
    parent = next(ancestors(module, node), None)
    return parent if isinstance(parent, ast.Call) and parent.func is node else None


def is_called(module: Module, node: ast.AST) -> bool:
    """Whether an expression is what a call calls."""
    return call_of(module, node) is not None


def statement_of(module: Module, node: ast.AST) -> ast.stmt | None:
    """The statement that a node belongs to."""
    return node if isinstance(node, ast.stmt) else enclosing(module, node, ast.stmt)


def block_of(module: Module, statement: ast.stmt) -> list[ast.stmt]:
    """The statements that a statement stands among, itself included."""
    parent = next(ancestors(module, statement), None)
    for name in BLOCKS:
        block: list[ast.stmt] = getattr(parent, name, [])
        if _number_in(block, statement) is not None:
            return block
    return [statement]


def _number_in(block: Sequence[ast.stmt], statement: ast.stmt) -> int | None:
    """Which of the statements of a block a statement is."""
    number = bisect.bisect_left(block, begin(statement), key=begin)
    return number if number < len(block) and block[number] is statement else None


def certain_block(statement: ast.stmt) -> list[ast.stmt] | None:
    """The block in a statement that runs whenever the statement ends without an error; ``None`` if none has to."""
    match statement:
        case ast.With(body=inner) | ast.AsyncWith(body=inner):
            return inner
        case ast.If(body=inner, orelse=[*_, ast.Raise()]) | ast.If(body=[*_, ast.Raise()], orelse=inner):
            return inner
        case ast.Try(body=inner, handlers=handlers, orelse=[]):
            return inner if all(isinstance(each.body[-1], ast.Raise) for each in handlers) else None
        case ast.Match(cases=cases):
            others = [case.body for case in cases if not isinstance(case.body[-1], ast.Raise)]
            *_, last = cases
            whole = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and last.guard is None
            return others[0] if whole and len(others) == 1 else None
        case _:
            return None


def straight(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a function that run whenever it ends without an error, up to one that may end it."""
    found: list[ast.stmt] = []
    _goes_straight(body, found)
    return found


def _goes_straight(body: list[ast.stmt], found: list[ast.stmt]) -> bool:
    for statement in body:
        inner = certain_block(statement)
        if inner is not None:
            if not _goes_straight(inner, found):
                return False
        elif isinstance(statement, (ast.For, ast.AsyncFor, ast.While, ast.If, ast.Match, ast.Try)):
            if any(isinstance(node, ast.Return) for node in walk(statement)):
                return False
        else:
            found.append(statement)
            if isinstance(statement, (ast.Return, ast.Raise)):
                return False
    return True


BLOCKS = ("body", "orelse", "finalbody")
"""The fields of a statement that are blocks."""


def follows(module: Module, first: ast.stmt, second: ast.stmt) -> bool:
    """Whether a statement runs after another one whenever both are reached: in the same block, or in one below it."""
    block = block_of(module, first)
    above = (item for item in (second, *ancestors(module, second)) if isinstance(item, ast.stmt))
    place = next((place for item in above if (place := _number_in(block, item)) is not None), None)
    return place is not None and place >= (_number_in(block, first) or 0)


def is_tried(module: Module, node: ast.AST) -> bool:
    """Whether the node stands in the body of a ``try`` with handlers: the program is prepared for it to fail."""
    inner = node
    for item in ancestors(module, node):
        if isinstance(item, ast.Try) and item.handlers and any(inner is part for part in item.body):
            return True
        inner = item
    return False


def as_method(frame: Frame) -> Frame:
    """The run of the method that a function does all the work of, ``return forward(self, x)``, or the run at hand."""
    while frame.func is not None and frame.func.cls is None and frame.caller is not None:
        if frame.call is None or frame.caller.func is None or frame.caller.func.expression is not frame.call:
            break
        frame = frame.caller
    return frame


def called_as(frame: Frame) -> ClassBase | None:
    """The class whose method runs: that of the object where this is known, else the one that has the method."""
    frame = as_method(frame)
    if frame.func is None or frame.func.cls is None:
        return None
    return frame.receiver.cls if isinstance(frame.receiver, Obj) else frame.func.cls


def is_for_others(frame: Frame) -> bool:
    """Whether code stands under a condition in a method that the present instance inherits: it may be meant for
    instances of another class below.
    """
    method = frame
    while method.receiver is None and method.caller is not None:
        method = method.caller
    inherited = isinstance(method.receiver, Obj) and method.receiver.cls is not method.cls
    return inherited and frame.doubtful


def is_asked_for(module: Module, node: ast.AST) -> bool:
    """Whether a condition around a node asks what some value is: what stands there is for one kind of value only. The
    function may ask it of the node's own name anywhere, or by trying.
    """
    for item in ancestors(module, node):
        if isinstance(item, FUNCTIONS):
            return isinstance(node, ast.Attribute) and root_of(node) in sorted_in(item)
        if isinstance(item, ast.ExceptHandler) and getattr(item.type, "id", "") == "AttributeError":
            return True
        tests = [item.test] if isinstance(item, (ast.If, ast.IfExp, ast.While)) else []
        tests += item.values if isinstance(item, ast.BoolOp) else []
        if any(_asks(call.func) for test in tests for call in walk(test) if isinstance(call, ast.Call)):
            return True
    return False


def _asks(func: ast.expr) -> bool:
    return isinstance(func, ast.Name) and func.id in ASKING


def is_chosen(module: Module, node: ast.AST) -> bool:
    """Whether a node stands under a condition in its function, or where something else has failed."""
    return isinstance(enclosing(module, node, *CHOOSING, *FUNCTIONS), CHOOSING)


CHOOSING = (ast.BoolOp, ast.ExceptHandler, ast.If, ast.IfExp, ast.Match)


def canonical_of(env: Env, node: ast.expr | None) -> str | None:
    """The canonical name of a function or class of a library, or of Python, that an expression names in a scope."""
    value = resolved(env, node)
    if value is None and isinstance(node, ast.Name) and node.id in BUILTINS:
        return f"builtins.{node.id}"
    return canonical_name(value)


def canonical_name(value: Value | None) -> str | None:
    """The canonical name of a library function or class."""
    if isinstance(value, ClassVal):
        return getattr(value.cls, "canonical", None)
    return value.name if isinstance(value, Ext) else None


def is_measured(env: Env, scope: ast.AST) -> bool:
    """Whether a function measures how long something takes: it waits for results, or asks for the time."""
    for func in _called_in(scope):
        name = canonical_of(env, func) or text_of(func)
        if name.rpartition(".")[2] in MEASURING:
            return True
    return False


@remembered
def _called_in(scope: ast.AST) -> list[ast.expr]:
    """What the calls in a function or module call: of what is written alike, one."""
    called = (call.func for call in calls_in(scope))
    return list({dumped(each) if root_of(each) else getattr(each, "attr", ""): each for each in called}.values())


MEASURING = frozenset({"block_until_ready", "monotonic", "perf_counter", "perf_counter_ns", "process_time", "time"})


def resolved(env: Env, node: ast.expr | None) -> Value | None:
    """What a name means in a scope, or an attribute of a library, of a module or of an object that a name means."""
    if isinstance(node, ast.Name):
        found = env.lookup(node.id)
        return found[1] if found is not None else None
    if isinstance(node, ast.Attribute):
        base = resolved(env, node.value)
        if isinstance(base, Ext):
            return library_value(f"{base.name}.{node.attr}")
        if isinstance(base, ModuleVal):
            return base.module.env.get(node.attr)
        attr = attribute_of(base, node.attr) if isinstance(base, Obj) else None
        return attr.value if attr is not None else None
    return None


def given(event: Called) -> Arguments:
    """The arguments of a call, those that a partial brings along included."""
    positional, keywords, nodes = event.args, event.keywords, event.nodes
    callee = event.callee
    while isinstance(callee, PartialVal):
        whole = event.node.func if isinstance(event.node, ast.Call) else ast.Constant(None)
        positional = [*callee.args, *positional]
        nodes = [*([whole] * len(callee.args)), *nodes]
        keywords = {**callee.keywords, **keywords}
        callee = callee.func
    return Arguments(event.node, positional, keywords, nodes)


def keyword_node(call: ast.AST, name: str) -> ast.expr | None:
    """The expression of a keyword argument; of one that is written twice the last, which is what was evaluated."""
    keywords = call.keywords if isinstance(call, ast.Call) else []
    return next((item.value for item in reversed(keywords) if item.arg == name), None)


@functools.lru_cache(maxsize=50)  # as above
def own_nodes(scope: ast.AST) -> Sequence[ast.AST]:
    """The nodes of a function or module that belong to no function or class inside of it."""
    nodes = children(scope)
    for node in nodes:
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            nodes.extend(children(node))
    return nodes


@functools.lru_cache(maxsize=50)  # as above
def own_set(scope: ast.AST) -> frozenset[ast.AST]:
    """The same, to ask whether a node is one of them."""
    return frozenset(own_nodes(scope))


def is_own(module: Module, scope: ast.AST, node: ast.AST) -> bool:
    """Whether a node belongs to a function or module, and to no function or class inside of it."""
    return (enclosing(module, node, *FUNCTIONS, ast.ClassDef) or module.tree) is scope


def results_of(func: ast.AST) -> list[ast.expr]:
    """The expressions that a function returns."""
    if isinstance(func, ast.Lambda):
        return [func.body]
    return [node.value for node in own_nodes(func) if isinstance(node, ast.Return) and node.value is not None]


def own_statements(scope: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.AST]:
    """The statements of a function, with the clauses that blocks of them stand in; of none inside of it."""
    found: list[ast.AST] = [*scope.body]
    for each in found:
        if not isinstance(each, (*FUNCTIONS, ast.ClassDef)):
            found += (inner for name in STATEMENTS for inner in getattr(each, name, ()))
    return found


def scopes_around(module: Module, node: ast.AST) -> list[ast.AST]:
    """The functions around a node, innermost first, and the module."""
    return [outer for outer in ancestors(module, node) if isinstance(outer, (*FUNCTIONS, ast.Module))]


def names_of_parameters(func: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """The names of all parameters of a function."""
    rest = (func.args.vararg, func.args.kwarg)
    return {*syntax_parameters.names(func.args), *(item.arg for item in rest if item is not None)}


def binds(scope: ast.AST, name: str) -> bool:
    """Whether a function or module binds a name itself."""
    return name in _bound_in(scope)


@remembered
def _bound_in(scope: ast.AST) -> frozenset[str]:
    """The names that a function or module binds itself."""
    bound: set[object] = set(names_of_parameters(scope)) if isinstance(scope, FUNCTIONS) else set()
    for node in own_nodes(scope):
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                bound.add(node.id)
        else:
            bound.add(getattr(node, "asname", None) or getattr(node, "name", None))
            bound.update(getattr(node, "names", ()))
    return frozenset(name for name in bound if isinstance(name, str))


@functools.lru_cache(maxsize=50)  # as above
def uses_in(scope: ast.AST) -> dict[str, list[ast.Name]]:
    """Where names are read in a function or module and in all that is inside of it, whatever they mean there."""
    found: dict[str, list[ast.Name]] = {}
    for node in walk(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.setdefault(node.id, []).append(node)
    return found


def reads_of(scope: ast.AST, name: str) -> list[ast.Name]:
    """Where a name of a function or module is read, in functions inside of it too unless the name is one of theirs."""
    return _reads(scope).get(name, [])


@functools.lru_cache(maxsize=50)  # as above
def _reads(scope: ast.AST) -> dict[str, list[ast.Name]]:
    """Where names are read in a function or module, outer nodes before inner ones."""
    found: dict[str, list[ast.Name]] = {}
    nodes: list[tuple[ast.AST, frozenset[str]]] = [(node, frozenset()) for node in children(scope)]
    for node, hidden in nodes:
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and node.id not in hidden:
                found.setdefault(node.id, []).append(node)
            continue
        inside = children(node)
        if isinstance(node, FUNCTIONS):  # its decorators, annotations and defaults are none of its own
            body = {node.body} if isinstance(node, ast.Lambda) else {*node.body}
            own = hidden | _own_names(node)
            nodes += ((each, own if each in body else hidden) for each in inside)
        else:
            nodes += ((each, hidden) for each in inside)
    return found


@remembered
def outer_names(scope: ast.AST) -> frozenset[str]:
    """The names that a function takes from the scopes around it to bind them."""
    outer = (node for node in own_nodes(scope) if isinstance(node, (ast.Global, ast.Nonlocal)))
    return frozenset(name for node in outer for name in node.names)


@remembered
def free_names(func: ast.AST) -> frozenset[str]:
    """The names that a function does not bind itself."""
    names = {part.id for part in walk(func) if isinstance(part, ast.Name)}
    return frozenset(names - assigned_in(func).keys() - parameters_in(func).keys())


@remembered
def _own_names(func: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    """The names that are a function's own: its parameters, and what it assigns."""
    names = names_of_parameters(func)
    nodes = own_nodes(func)
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return frozenset(names | (stored - outer_names(func)))


class _Said(NamedTuple):
    """What is said in a function, class or module, and in all that is inside of it."""

    calls: list[ast.Call]
    assigned: Counter[str]
    parameters: Counter[str]
    defined: Counter[str]
    stored: list[str]


@remembered
def _said_in(scope: ast.AST) -> _Said:
    """Many rules ask for one of these, of most functions: it takes as long to go over a tree as to read all of them."""
    calls: list[ast.Call] = []
    assigned: list[str] = []
    parameters: list[str] = []
    defined: list[str] = []
    stored: list[str] = []
    for node in walk(scope):
        if type(node) not in _SAYING:
            continue
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                assigned.append(node.id)
        elif isinstance(node, ast.Attribute):
            if not isinstance(node.ctx, ast.Load):
                stored.append(node.attr)
        elif isinstance(node, ast.Call):
            if node is not scope:
                calls.append(node)
        elif isinstance(node, ast.arg):
            parameters.append(node.arg)
        else:
            defined += {name for name in (getattr(node, "name", None), getattr(node, "asname", None)) if name}
    return _Said(calls or _NO_CALLS, _counted(assigned), _counted(parameters), _counted(defined), stored or _UNSAID)


_NO_CALLS: list[ast.Call] = []
_UNSAID: list[str] = []
_NEVER: Counter[str] = Counter()
"""What of most functions is said, once for all: there are many, and nobody changes it."""


def _counted(names: list[str]) -> Counter[str]:
    return Counter(names) if names else _NEVER


_DEFINING = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.alias,
    ast.ExceptHandler,
    ast.MatchAs,
    ast.MatchStar,
)
"""What binds a name that stands in it as a text."""

_SAYING: frozenset[type[ast.AST]] = frozenset(
    for_both(dict.fromkeys([ast.Name, ast.Attribute, ast.Call, ast.arg, *_DEFINING], True))
)
"""The types of nodes that say anything of these, of which most trees are not made."""


def assigned_in(scope: ast.AST) -> Counter[str]:
    """How often each name is assigned or deleted in a function."""
    return _said_in(scope).assigned


@remembered
def bound_in(scope: ast.AST) -> Counter[str]:
    """How often each name of a function or module is assigned or deleted: by itself, or anywhere in it where a function
    takes it from there to bind it.
    """
    own = _counted([node.id for node in own_nodes(scope) if isinstance(node, ast.Name) and not _is_read(node)])
    taken = {name for node in walk(scope) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    return own if not taken else Counter({**own, **{name: assigned_in(scope)[name] for name in taken}})


def _is_read(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def parameters_in(scope: ast.AST) -> Counter[str]:
    """How often each name is a parameter of a function, or of one inside of it."""
    return _said_in(scope).parameters


def defined_in(scope: ast.AST) -> Counter[str]:
    """How often each name is that of a function, class, import, exception or pattern in a function, or its own."""
    return _said_in(scope).defined


def attributes_stored(tree: ast.AST) -> list[str]:
    """The attributes that a text assigns or deletes, as often as it does."""
    return _said_in(tree).stored


@remembered
def attributes_named(tree: ast.AST) -> dict[str, list[ast.Attribute]]:
    """Where a text names attributes, to read, to assign or to delete them, by name."""
    found: dict[str, list[ast.Attribute]] = {}
    for node in walk(tree):
        if isinstance(node, ast.Attribute):
            found.setdefault(node.attr, []).append(node)
    return found


def attribute_reads(tree: ast.AST, name: str) -> list[ast.Attribute]:
    """Where a text reads attributes of a name."""
    return [node for node in attributes_named(tree).get(name, ()) if isinstance(node.ctx, ast.Load)]


def calls_in(scope: ast.AST) -> list[ast.Call]:
    """The calls in a function or module, with those of functions and classes inside of it, or in an expression."""
    return [scope, *_said_in(scope).calls] if isinstance(scope, ast.Call) else _said_in(scope).calls
