"""Ways that say the same in other statements: nested in branches and loops, with helpers and temporaries."""

import ast
import copy
from collections.abc import Callable

from variants._trees import (
    COMPREHENSIONS,
    DEFINITIONS,
    FUNCTIONS,
    IMPORTS,
    after_imports,
    assign,
    attribute,
    bodies,
    bound,
    call,
    fresh,
    function,
    is_one_scope,
    load,
    locals_of,
    parameters,
    read,
    statements,
    store,
    within,
    without_docstring,
)

Wrap = Callable[[list[ast.stmt]], ast.stmt]
UNKNOWN = "len(sys.argv) < 1000"
"""A condition that is true, and that nobody can know of without running the program."""


def _nested(
    tree: ast.Module, wrap: Wrap, head: str, skips: Callable[[list[ast.stmt]], bool] = lambda _: False
) -> ast.Module:
    """Put the statements of each body that define nothing into another statement."""
    changed = False
    for owner, body in list(bodies(tree)):
        start = after_imports(tree) if isinstance(owner, ast.Module) else without_docstring(body)
        kept, moved = body[start:], list[ast.stmt]()
        while kept and not isinstance(kept[-1], (*DEFINITIONS, *IMPORTS)):
            moved.insert(0, kept.pop())
        if moved and not skips(moved):
            body[start:] = [*kept, wrap(moved)]
            changed = True
    if changed:
        tree.body[_future(tree) : _future(tree)] = statements(head)
    return tree


def _future(tree: ast.Module) -> int:
    return sum(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)


def _condition() -> ast.expr:
    return ast.parse(UNKNOWN, mode="eval").body


def _otherwise(body: list[ast.stmt]) -> list[ast.stmt]:
    """What happens in the branch that is not taken: nothing, but for code that has to give or to make something."""
    makes = any(
        isinstance(node, ast.Return) or (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
        for node in within(body)
    )
    return statements("raise SystemExit") if makes else []


def in_branch(tree: ast.Module) -> ast.Module:
    """`if unknown: ...` around each body."""
    return _nested(tree, lambda body: ast.If(_condition(), body, _otherwise(body)), "import sys")


def in_other_branch(tree: ast.Module) -> ast.Module:
    """`if unknown: raise ... else: ...` around each body."""
    never = statements("raise SystemExit")
    return _nested(
        tree,
        lambda body: ast.If(ast.UnaryOp(ast.Not(), _condition()), copy.deepcopy(never), body),
        "import sys",
    )


def in_match(tree: ast.Module) -> ast.Module:
    """`match` around each body."""

    def wrap(body: list[ast.stmt]) -> ast.stmt:
        taken = ast.match_case(ast.MatchSingleton(True), None, body)
        other = ast.match_case(ast.MatchAs(), None, _otherwise(body) or statements("pass"))
        return ast.Match(_condition(), [taken, other])

    return _nested(tree, wrap, "import sys")


def in_try(tree: ast.Module) -> ast.Module:
    """`try: ... finally: ...` around each body."""
    return _nested(tree, lambda body: ast.Try(body, [], [], statements("pass")), "")


def in_with(tree: ast.Module) -> ast.Module:
    """A `with` statement that does nothing around each body."""

    def wrap(body: list[ast.stmt]) -> ast.stmt:
        return ast.With([ast.withitem(ast.parse("contextlib.nullcontext()", mode="eval").body, None)], body)

    return _nested(tree, wrap, "import contextlib")


def in_loop(tree: ast.Module) -> ast.Module:
    """A loop of one round around each body."""

    def wrap(body: list[ast.stmt]) -> ast.stmt:
        return ast.For(store("_"), ast.parse("range(1)", mode="eval").body, body, [])

    return _nested(tree, wrap, "", lambda body: not is_one_scope(body) or "_" in read(body))


def guarded(tree: ast.Module) -> ast.Module:
    """Each function leaves early in a case that does not come."""
    changed = False
    for owner, body in bodies(tree):
        if isinstance(owner, ast.FunctionDef):
            start = without_docstring(body)
            generator = any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in within(body))
            if not generator:
                body[start:start] = statements(f"if not {UNKNOWN}:\n    raise RuntimeError('too many arguments')")
                changed = True
    if changed:
        tree.body[_future(tree) : _future(tree)] = statements("import sys")
    return tree


# -- one statement said otherwise --------------------------------------------------------------------------------------


class _Assignments(ast.NodeTransformer):
    """Rewrites the assignments of functions and of the module, and leaves those of classes alone."""

    def __init__(self, rewrite: Callable[[ast.Assign], list[ast.stmt] | None]) -> None:
        self.rewrite = rewrite

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        made = self.rewrite(node)
        if made is None:
            return node
        for statement in made:
            ast.copy_location(statement, node)
        return made

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = [self.visit(part) if isinstance(part, DEFINITIONS) else part for part in node.body]
        return node


def unpacked(tree: ast.Module) -> ast.Module:
    """`x = a` as `(x, _) = (a, None)`."""

    def rewrite(node: ast.Assign) -> list[ast.stmt] | None:
        if len(node.targets) > 1:
            return None
        target = ast.Tuple([node.targets[0], store("_rest")], ast.Store())
        return [assign(target, ast.Tuple([node.value, ast.Constant(None)], ast.Load()))]

    return _Assignments(rewrite).visit(tree)  # type: ignore[no-any-return]


def annotated_assignments(tree: ast.Module) -> ast.Module:
    """`x = a` as `x: object = a`."""
    seen: set[str] = set()

    def rewrite(node: ast.Assign) -> list[ast.stmt] | None:
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Name) or target.id in seen | outer:
            return None
        seen.add(target.id)
        return [ast.AnnAssign(target, load("object"), node.value, 1)]

    outer = {name for node in ast.walk(tree) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    return _Assignments(rewrite).visit(tree)  # type: ignore[no-any-return]


def by_setattr(tree: ast.Module) -> ast.Module:
    """`obj.x = a` as `setattr(obj, "x", a)`."""

    def rewrite(node: ast.Assign) -> list[ast.stmt] | None:
        match node.targets:
            case [ast.Attribute(value=owner, attr=name)] if not name.startswith("__"):
                owner = ast.Name(owner.id, ast.Load()) if isinstance(owner, ast.Name) else owner
                return [ast.Expr(call(load("setattr"), owner, ast.Constant(name), node.value))]
        return None

    return _Assignments(rewrite).visit(tree)  # type: ignore[no-any-return]


def by_getattr(tree: ast.Module) -> ast.Module:
    """`obj.x` as `getattr(obj, "x")`, where `obj` is no module."""
    modules = _imported(tree)

    class Reads(ast.NodeTransformer):
        def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
            self.generic_visit(node)
            owner = node.value
            if not isinstance(node.ctx, ast.Load) or not isinstance(owner, ast.Name) or owner.id in modules:
                return node
            if node.attr.startswith("__"):
                return node
            return ast.copy_location(call(load("getattr"), owner, ast.Constant(node.attr)), node)

    return Reads().visit(tree)  # type: ignore[no-any-return]


def temporaries(tree: ast.Module) -> ast.Module:
    """The arguments of a statement's outermost call are variables: `argument = f(x); g(argument)`."""
    new = fresh(tree)

    def hoist(statement: ast.stmt) -> list[ast.stmt]:
        match statement:
            case (
                ast.Assign(value=ast.Call() as made)
                | ast.Expr(value=ast.Call() as made)
                | ast.Return(value=ast.Call() as made)
            ):
                before: list[ast.stmt] = []
                for index, value in enumerate(made.args):
                    if _worth(value):
                        name = new("argument")
                        before.append(ast.copy_location(assign(store(name), value), statement))
                        made.args[index] = load(name)
                for keyword in made.keywords:
                    if keyword.arg is not None and _worth(keyword.value):
                        name = new(f"the_{keyword.arg}")
                        before.append(ast.copy_location(assign(store(name), keyword.value), statement))
                        keyword.value = load(name)
                return [*before, statement]
        return [statement]

    for _, body in list(bodies(tree)):
        _each(body, hoist)
    return tree


def _worth(value: ast.expr) -> bool:
    return not isinstance(value, (ast.Name, ast.Constant, ast.Starred))


def _each(body: list[ast.stmt], rewrite: Callable[[ast.stmt], list[ast.stmt]]) -> None:
    """Rewrite the statements of a body, and of the loops and branches in it, but not those of functions and classes."""
    body[:] = [made for statement in body for made in rewrite(statement)]
    for statement in body:
        if not isinstance(statement, DEFINITIONS):
            for _, held in ast.iter_fields(statement):
                if isinstance(held, list) and held and isinstance(held[0], ast.stmt):
                    _each(held, rewrite)


def values_from_functions(tree: ast.Module) -> ast.Module:
    """What is assigned is what a function returns: `x = make_x(a, b)`, with the local names that it needs."""
    new = fresh(tree)
    made: list[ast.stmt] = []

    def extract(scope: set[str]) -> Callable[[ast.stmt], list[ast.stmt]]:
        def rewrite(statement: ast.stmt) -> list[ast.stmt]:
            match statement:
                case ast.Assign(value=value) if _worth(value) and is_one_scope([value]) and _is_plain(value):
                    needed = sorted((read(value) - _comprehended(value)) & scope)
                    name = new("make_value")
                    returned = ast.copy_location(ast.Return(value), value)
                    made.append(function(name, parameters(*needed), [returned]))
                    statement.value = call(load(name), *map(load, needed))
            return [statement]

        return rewrite

    _in_scopes(tree, extract)
    head = after_imports(tree)
    return _put(tree, head, made)


def statements_in_functions(tree: ast.Module) -> ast.Module:
    """An assignment to an attribute or an item is made by a function that gets the objects."""
    new = fresh(tree)
    made: list[ast.stmt] = []

    def extract(scope: set[str]) -> Callable[[ast.stmt], list[ast.stmt]]:
        def rewrite(statement: ast.stmt) -> list[ast.stmt]:
            match statement:
                case (
                    ast.Assign(targets=[ast.Attribute() | ast.Subscript() as target])
                    | ast.AugAssign(target=ast.Attribute() | ast.Subscript() as target)
                ) if is_one_scope([statement]) and _is_plain(statement) and not bound([statement]):
                    needed = sorted((read(statement) - _comprehended(statement)) & scope)
                    name = new("put")
                    made.append(function(name, parameters(*needed), [statement]))
                    return [ast.copy_location(ast.Expr(call(load(name), *map(load, needed))), target)]
            return [statement]

        return rewrite

    _in_scopes(tree, extract)
    return _put(tree, after_imports(tree), made)


def _in_scopes(tree: ast.Module, extract: Callable[[set[str]], Callable[[ast.stmt], list[ast.stmt]]]) -> None:
    """Rewrite statements of functions and of the module, knowing the names that an extracted part cannot see."""

    def visit(body: list[ast.stmt], outer: set[str], local: bool) -> None:
        if local:
            _each(body, extract(outer))
        for statement in _nested_definitions(body):
            if isinstance(statement, ast.ClassDef):
                visit(statement.body, outer, local=False)
            else:
                visit(statement.body, outer | locals_of(statement), local=True)

    visit(tree.body, bound([node for node in tree.body if not isinstance(node, (*DEFINITIONS, *IMPORTS))]), local=True)


def _nested_definitions(body: list[ast.stmt]) -> list[ast.FunctionDef | ast.ClassDef]:
    return [node for node in within(body) if isinstance(node, (ast.FunctionDef, ast.ClassDef))]


def _put(tree: ast.Module, head: int, made: list[ast.stmt]) -> ast.Module:
    """Functions go where all that they read is known when they are called: after the imports, before the script."""
    tree.body[head:head] = made
    return tree


def _is_plain(tree: ast.AST) -> bool:
    """Whether it may be evaluated elsewhere: no function in it, whose own names would need care."""
    return not any(isinstance(node, (*FUNCTIONS, ast.NamedExpr)) for node in ast.walk(tree))


def _comprehended(tree: ast.AST) -> set[str]:
    return {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, COMPREHENSIONS)
        for part in node.generators
        for name in ast.walk(part.target)
        if isinstance(name, ast.Name)
    }


def comprehensions_as_loops(tree: ast.Module) -> ast.Module:
    """`x = [f(a) for a in b]` as a loop that appends."""
    new = fresh(tree)

    def rewrite(statement: ast.stmt) -> list[ast.stmt]:
        match statement:
            case ast.Assign() | ast.Return() | ast.Expr() | ast.Assert():
                found = next((node for node in within([statement]) if isinstance(node, ast.ListComp)), None)
                if found is None or len(found.generators) > 1 or isinstance(statement, ast.Assert):
                    return [statement]
                part = found.generators[0]
                name = new("items")
                body: list[ast.stmt] = [ast.Expr(call(attribute(load(name), "append"), found.elt))]
                if part.ifs:
                    body = [ast.If(test, body, []) for test in part.ifs[:1]]
                loop = ast.For(part.target, part.iter, body, [])
                _Replace(found, load(name)).visit(statement)
                before = [ast.copy_location(assign(store(name), ast.List([], ast.Load())), found), loop]
                return [*before, statement]
        return [statement]

    for _, body in list(bodies(tree)):
        _each(body, rewrite)
    return tree


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


def loops_by_index(tree: ast.Module) -> ast.Module:
    """`for x in xs:` as `for index, x in enumerate(xs):`."""
    new = fresh(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            node.target = ast.Tuple([store(new("index")), node.target], ast.Store())
            node.iter = call(load("enumerate"), node.iter)
    return tree


def augmented_in_full(tree: ast.Module) -> ast.Module:
    """`x[...] += a` as `x[...] = x[...] + a`, where that is the same: for items."""

    class Full(ast.NodeTransformer):
        def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
            if not isinstance(node.target, ast.Subscript):
                return node
            value = copy.deepcopy(node.target)
            value.ctx = ast.Load()
            return ast.copy_location(assign(node.target, ast.BinOp(value, node.op, node.value)), node)

    return Full().visit(tree)  # type: ignore[no-any-return]


def in_holder(tree: ast.Module) -> ast.Module | None:
    """The variables of the script are items of a dict."""
    return _held(tree, "dict()", lambda name, ctx: ast.Subscript(load("held"), ast.Constant(name), ctx))


def in_namespace(tree: ast.Module) -> ast.Module | None:
    """The variables of the script are attributes of a namespace."""
    made = _held(tree, "types.SimpleNamespace()", lambda name, ctx: ast.Attribute(load("held"), name, ctx))
    if made is not None:
        made.body[_future(made) : _future(made)] = statements("import types")
    return made


def _held(tree: ast.Module, holder: str, item: Callable[[str, ast.expr_context], ast.expr]) -> ast.Module | None:
    head = after_imports(tree)
    script = [node for node in tree.body[head:] if not isinstance(node, (*DEFINITIONS, *IMPORTS))]
    variables = bound(script)
    everything = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    own = {name for made in everything for name in locals_of(made)}
    own |= {name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for name in bound(node.body)}
    own |= _comprehended(tree) | {node.target.id for node in ast.walk(tree) if isinstance(node, ast.NamedExpr)}
    own |= {
        node.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    own |= {
        name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name for name in [node.name]
    }
    variables -= own | {
        name for node in ast.walk(tree) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names
    }
    variables -= {node.name for node in tree.body if isinstance(node, DEFINITIONS)}
    if not variables:
        return None

    class Items(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return ast.copy_location(item(node.id, node.ctx), node) if node.id in variables else node

    tree = Items().visit(tree)
    tree.body[head:head] = [assign(store("held"), ast.parse(holder, mode="eval").body)]
    return tree


def _imported(tree: ast.AST) -> set[str]:
    return {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, IMPORTS)
        for alias in node.names
    }


def one_statement_functions(tree: ast.Module) -> ast.Module:
    """`def f(x): return e` of the module as `f = lambda x: e`."""

    def rewrite(statement: ast.stmt) -> list[ast.stmt]:
        match statement:
            case ast.FunctionDef(decorator_list=[], body=[ast.Return(value=ast.expr() as value)]) as made:
                if any(argument.annotation for argument in ast.walk(made.args) if isinstance(argument, ast.arg)):
                    return [statement]
                return [ast.copy_location(assign(store(made.name), ast.Lambda(made.args, value)), value)]
        return [statement]

    for _, body in list(bodies(tree)):
        _each(body, rewrite)
    return tree


def lambdas_as_functions(tree: ast.Module) -> ast.Module:
    """A lambda in a statement as a function before it."""
    new = fresh(tree)

    def rewrite(statement: ast.stmt) -> list[ast.stmt]:
        if not isinstance(statement, (ast.Assign, ast.Expr, ast.Return, ast.AugAssign, ast.Assert)):
            return [statement]
        before: list[ast.stmt] = []
        inside = {
            id(part)
            for node in ast.walk(statement)
            if isinstance(node, (ast.Lambda, *COMPREHENSIONS))
            for part in ast.walk(node)
            if part is not node
        }
        for found in [node for node in ast.walk(statement) if isinstance(node, ast.Lambda) and id(node) not in inside]:
            if isinstance(found.body, ast.Yield):
                continue
            name = new("local")
            before.append(function(name, found.args, [ast.copy_location(ast.Return(found.body), found)]))
            _Replace(found, load(name)).visit(statement)
        return [*before, statement]

    for _, body in list(bodies(tree)):
        _each(body, rewrite)
    return tree
