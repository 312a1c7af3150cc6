"""Ways that call, decorate and pass arguments otherwise."""

import ast
from collections.abc import Callable

from variants._trees import (
    DEFINITIONS,
    after_imports,
    assign,
    attribute,
    bodies,
    call,
    class_,
    classes,
    fresh,
    library,
    load,
    statements,
    store,
    user_functions,
)

_NOT_CALLED = frozenset({"super", "isinstance", "locals", "globals", "vars", "field", "print"})


def _head(tree: ast.Module, source: str) -> ast.Module:
    future = sum(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    tree.body[future:future] = statements(source)
    return tree


def decorators_called(tree: ast.Module) -> ast.Module:
    """`@nnx.jit` on a function as `f = nnx.jit(f)` after it."""

    def visit(body: list[ast.stmt], in_class: bool) -> None:
        made: list[ast.stmt] = []
        for statement in body:
            made.append(statement)
            match statement:
                case ast.FunctionDef(decorator_list=[_, *_] as decorators, name=name) if not in_class:
                    value: ast.expr = load(name)
                    for decorator in reversed(decorators):
                        value = ast.copy_location(call(decorator, value), decorator)
                    statement.decorator_list = []
                    made.append(ast.copy_location(assign(store(name), value), decorators[0]))
        body[:] = made
        for statement in body:
            if isinstance(statement, DEFINITIONS):
                visit(statement.body, isinstance(statement, ast.ClassDef))
            else:
                for _, held in ast.iter_fields(statement):
                    if isinstance(held, list) and held and isinstance(held[0], ast.stmt):
                        visit(held, False)

    visit(tree.body, False)
    return tree


def decorators_by_partial(tree: ast.Module) -> ast.Module:
    """`@nnx.jit` as `@functools.partial(nnx.jit)`, and the same with options."""
    called = library(tree)
    before = ast.dump(tree)
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for index, decorator in enumerate(node.decorator_list):
            partial = attribute(load("functools"), "partial")
            match decorator:
                case ast.Attribute(value=ast.Name(id=owner)) if owner in (called, "jax"):
                    node.decorator_list[index] = ast.copy_location(call(partial, decorator), decorator)
                case ast.Call(func=ast.Attribute(value=ast.Name(id=owner)) as made, args=[]) if owner in (
                    called,
                    "jax",
                ):
                    node.decorator_list[index] = ast.copy_location(
                        ast.Call(partial, [made], decorator.keywords), decorator
                    )
    return _head(tree, "import functools") if ast.dump(tree) != before else tree


def decorators_in_variables(tree: ast.Module) -> ast.Module:
    """`compiled = nnx.jit` before the function, and `@compiled` on it."""
    new = fresh(tree)

    def visit(body: list[ast.stmt], in_class: bool) -> None:
        made: list[ast.stmt] = []
        for statement in body:
            if isinstance(statement, ast.FunctionDef) and not in_class:
                for index, decorator in enumerate(statement.decorator_list):
                    if not isinstance(decorator, ast.Name):
                        name = new("transform")
                        made.append(ast.copy_location(assign(store(name), decorator), decorator))
                        statement.decorator_list[index] = load(name)
            made.append(statement)
        body[:] = made
        for statement in body:
            if isinstance(statement, DEFINITIONS):
                visit(statement.body, isinstance(statement, ast.ClassDef))

    visit(tree.body, False)
    return tree


class _Calls(ast.NodeTransformer):
    """Rewrites calls, but not those that are decorators, or that mean something by where they stand."""

    def __init__(self, rewrite: Callable[[ast.Call], ast.expr]) -> None:
        self.rewrite = rewrite

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _NOT_CALLED:
            return node
        made = self.rewrite(node)
        return ast.copy_location(made, node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = [self.visit(part) if isinstance(part, DEFINITIONS) else part for part in node.body]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [self.visit(part) for part in node.body]
        return node


def arguments_spread(tree: ast.Module) -> ast.Module:
    """`f(a, b, k=c)` as `f(*(a, b), **dict(k=c))`."""

    def rewrite(node: ast.Call) -> ast.expr:
        if any(isinstance(value, ast.Starred) for value in node.args) or any(
            part.arg is None for part in node.keywords
        ):
            return node
        if node.args:
            node.args = [ast.Starred(ast.Tuple(node.args, ast.Load()), ast.Load())]
        if node.keywords:
            keys: list[ast.expr | None] = [ast.Constant(part.arg) for part in node.keywords]
            node.keywords = [ast.keyword(None, ast.Dict(keys, [part.value for part in node.keywords]))]
        return node

    return _Calls(rewrite).visit(tree)  # type: ignore[no-any-return]


def options_in_dict(tree: ast.Module) -> ast.Module:
    """The keywords of a statement's calls lie in a variable: `options = dict(rngs=rngs); f(x, **options)`."""
    new = fresh(tree)

    def rewrite(statement: ast.stmt) -> list[ast.stmt]:
        match statement:
            case ast.Assign(value=ast.Call() as made) | ast.Expr(value=ast.Call() as made) if made.keywords:
                if any(part.arg is None for part in made.keywords):
                    return [statement]
                name = new("options")
                options = call(load("dict"))
                options.keywords = made.keywords
                made.keywords = [ast.keyword(None, load(name))]
                return [assign(store(name), options), statement]
        return [statement]

    for _, body in list(bodies(tree)):
        body[:] = [part for statement in body for part in rewrite(statement)]
    return tree


def by_partial(tree: ast.Module) -> ast.Module:
    """Calls of the program's own functions and classes: `functools.partial(f, a)(b)`."""
    own = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}

    def rewrite(node: ast.Call) -> ast.expr:
        if not isinstance(node.func, ast.Name) or node.func.id not in own or not node.args:
            return node
        partial = call(attribute(load("functools"), "partial"), node.func, node.args[0])
        return ast.Call(partial, node.args[1:], node.keywords)

    before = ast.dump(tree)
    made = _Calls(rewrite).visit(tree)
    return _head(made, "import functools") if ast.dump(made) != before else made


def through_lambda(tree: ast.Module) -> ast.Module:
    """Calls of the program's own functions and classes go through a function that passes everything on."""
    own = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    do = fresh(tree)("do")

    def rewrite(node: ast.Call) -> ast.expr:
        if not isinstance(node.func, ast.Name) or node.func.id not in own:
            return node
        return ast.Call(load(do), [node.func, *node.args], node.keywords)

    before = ast.dump(tree)
    made = _Calls(rewrite).visit(tree)
    if ast.dump(made) == before:
        return made
    head = after_imports(made)
    made.body[head:head] = statements(f"def {do}(function, *args, **kwargs):\n    return function(*args, **kwargs)")
    return made


def by_keyword(tree: ast.Module) -> ast.Module:
    """Arguments of the program's own functions are passed by name."""
    functions = user_functions(tree)
    constructors = {
        made.name: method
        for made in classes(tree)
        for method in made.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
    }

    def rewrite(node: ast.Call) -> ast.expr:
        if not isinstance(node.func, ast.Name) or any(isinstance(value, ast.Starred) for value in node.args):
            return node
        made = functions.get(node.func.id) or constructors.get(node.func.id)
        if made is None or made.args.posonlyargs or made.args.vararg:
            return node
        known = [argument.arg for argument in made.args.args][node.func.id in constructors :]
        if len(known) < len(node.args):
            return node
        node.keywords = [
            *(ast.keyword(name, value) for name, value in zip(known, node.args, strict=False)),
            *node.keywords,
        ]
        node.args = []
        return node

    return _Calls(rewrite).visit(tree)  # type: ignore[no-any-return]


def methods_unbound(tree: ast.Module) -> ast.Module:
    """`obj.method(x)` in two steps: `method = obj.method; method(x)`."""
    new = fresh(tree)
    imported = {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }

    def rewrite(statement: ast.stmt) -> list[ast.stmt]:
        match statement:
            case (
                ast.Assign(value=ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)) as made)
                | ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)) as made)
            ) if owner not in imported:
                method = new(f"{name}_method")
                first = ast.copy_location(assign(store(method), made.func), statement)
                made.func = load(method)
                return [first, statement]
        return [statement]

    for _, body in list(bodies(tree)):
        body[:] = [part for statement in body for part in rewrite(statement)]
    return tree


def called_by_dunder(tree: ast.Module) -> ast.Module:
    """`self.layer(x)` as `self.layer.__call__(x)`."""

    def rewrite(node: ast.Call) -> ast.expr:
        match node.func:
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if name not in methods:
                node.func = attribute(node.func, "__call__")
        return node

    methods = {
        part.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for part in node.body
        if isinstance(part, ast.FunctionDef)
    }
    return _Calls(rewrite).visit(tree)  # type: ignore[no-any-return]


def layers_subclassed(tree: ast.Module) -> ast.Module | None:
    """Layers of the library are used through classes of the program's own: `class MyLinear(nnx.Linear): pass`."""
    called = library(tree)
    layers = ("Linear", "Dropout", "BatchNorm", "LayerNorm", "Conv", "Embed", "Sequential", "Module", "Param", "Rngs")
    if called is None:
        return None
    new = fresh(tree)
    made: dict[str, str] = {}

    class Own(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            match node.func:
                case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == called and name in layers:
                    if name not in made:
                        made[name] = new(f"My{name}")
                    node.func = load(made[name])
            return node

    tree = Own().visit(tree)
    head = after_imports(tree)
    tree.body[head:head] = [
        class_(mine, [attribute(load(called), name)], [ast.Pass()]) for name, mine in made.items() if name != "Rngs"
    ] + [assign(store(mine), attribute(load(called), name)) for name, mine in made.items() if name == "Rngs"]
    return tree


def layers_by_functions(tree: ast.Module) -> ast.Module | None:
    """Objects of the library are made by functions of the program's own, which pass all that they get."""
    called = library(tree)
    if called is None:
        return None
    new = fresh(tree)
    made: dict[str, str] = {}

    class Own(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            match node.func:
                case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == called and name[0].isupper():
                    if name not in made:
                        made[name] = new(f"make_{name}")
                    node.func = load(made[name])
            return node

        def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
            node.body = [self.visit(part) if isinstance(part, DEFINITIONS) else part for part in node.body]
            return node

    tree = Own().visit(tree)
    head = after_imports(tree)
    tree.body[head:head] = statements(
        "\n".join(
            f"def {mine}(*args, **kwargs):\n    return {called}.{name}(*args, **kwargs)" for name, mine in made.items()
        )
    )
    return tree
