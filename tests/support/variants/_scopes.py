"""Ways that move code to another scope: into functions, methods, closures."""

import ast

from variants._trees import (
    DEFINITIONS,
    FUNCTIONS,
    IMPORTS,
    after_imports,
    arguments_of,
    assign,
    attribute,
    bound,
    call,
    class_,
    fresh,
    function,
    is_one_scope,
    load,
    parameters,
    read,
    store,
    user_functions,
    without_docstring,
)


def in_function(tree: ast.Module) -> ast.Module | None:
    """Everything after the imports is the body of `main()`: classes are local, variables are captured."""
    head = after_imports(tree)
    if not _can_move(tree.body[head:]):
        return None
    main = fresh(tree)("main")
    tree.body[head:] = [function(main, parameters(), tree.body[head:]), ast.Expr(call(load(main)))]
    return tree


def script_in_function(tree: ast.Module) -> ast.Module | None:
    """What comes after the last class or function is the body of `main()`."""
    split = _script(tree)
    if split is None:
        return None
    main = fresh(tree)("main")
    tree.body[split:] = [function(main, parameters(), tree.body[split:]), ast.Expr(call(load(main)))]
    return tree


def script_in_method(tree: ast.Module) -> ast.Module | None:
    """The script is a method of a class, and its variables are attributes of the object."""
    split = _script(tree)
    if split is None:
        return None
    script = tree.body[split:]
    variables = bound(script)
    if any(isinstance(node, ast.Import) for statement in script for node in ast.walk(statement)):
        return None
    new = fresh(tree)

    class Attributes(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            if node.id not in variables:
                return node
            return ast.copy_location(ast.Attribute(load("self"), node.id, node.ctx), node)

    if not variables or _shadowed(script, variables) or _walrus(script):
        return None
    script = [Attributes().visit(statement) for statement in script]
    name = new("Program")
    program = class_(name, [], [function("run", parameters("self"), script)])
    tree.body[split:] = [program, ast.Expr(call(attribute(call(load(name)), "run")))]
    return tree


def constructed_in_init(tree: ast.Module) -> ast.Module | None:
    """The script in a class: its first variable is set by `__init__`, and the rest is a method."""
    split = _script(tree)
    if split is None:
        return None
    script = tree.body[split:]
    first = next((statement for statement in script if isinstance(statement, ast.Assign)), None)
    if first is None or not isinstance(first.targets[0], ast.Name) or len(first.targets) > 1 or script[0] is not first:
        return None
    variable = first.targets[0].id
    rest = script[1:]
    if not rest or _shadowed(script, {variable}) or variable in bound(rest):
        return None

    class Attributes(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return attribute(load("self"), variable) if node.id == variable else node

    rest = [Attributes().visit(statement) for statement in rest]
    name = fresh(tree)("Trainer")
    target = ast.Attribute(load("self"), variable, ast.Store())
    start = function(
        "__init__", parameters("self", variable), [ast.copy_location(assign(target, load(variable)), first)]
    )
    made = class_(name, [], [start, function("run", parameters("self"), rest)])
    tree.body[split:] = [made, first, ast.Expr(call(attribute(call(load(name), load(variable)), "run")))]
    return tree


def class_factories(tree: ast.Module) -> ast.Module | None:
    """Each class is made by a function that is called once."""
    return _made_by_functions(tree, ast.ClassDef)


def _made_by_functions(tree: ast.Module, kind: type[ast.ClassDef | ast.FunctionDef]) -> ast.Module:
    """Each definition of this kind is made by a function that is called once."""
    new = fresh(tree)
    body: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, kind):
            make = new(f"make_{statement.name}")
            body.append(function(make, parameters(), [statement, ast.Return(load(statement.name))]))
            body.append(assign(store(statement.name), call(load(make))))
        else:
            body.append(statement)
    tree.body = body
    return tree


def static_methods(tree: ast.Module) -> ast.Module | None:
    """The functions of the module that nothing decorates are static methods of one class."""
    functions = user_functions(tree)
    assigned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    functions = {
        name: made for name, made in functions.items() if name not in assigned and not _shadowed(tree.body, {name})
    }
    if not functions:
        return None
    steps = fresh(tree)("Steps")

    class Through(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            if node.id not in functions:
                return node
            return ast.copy_location(attribute(load(steps), node.id), node)

    first = min(tree.body.index(made) for made in functions.values())
    for made in functions.values():
        tree.body.remove(made)
    tree = Through().visit(tree)
    inside: list[ast.stmt] = []
    for made in functions.values():
        moved = Through().visit(made)
        moved.decorator_list = [load("staticmethod")]
        inside.append(moved)
    if any(read(made.args) & bound(tree.body[first:]) for made in functions.values()):
        return None
    tree.body.insert(first, class_(steps, [], inside))
    return tree


def instance_methods(tree: ast.Module) -> ast.Module | None:
    """The functions of the module are methods of an object that does nothing else."""
    changed = static_methods(tree)
    if changed is None:
        return None
    steps = next(node for node in changed.body if isinstance(node, ast.ClassDef) and node.name.startswith("Steps"))
    for made in steps.body:
        assert isinstance(made, ast.FunctionDef)
        if "self" in arguments_of(made):
            return None
        made.decorator_list = []
        held = made.args.posonlyargs or made.args.args
        held.insert(0, ast.arg("self"))
    name = steps.name
    steps.name = "Kind" + name
    steps_at = changed.body.index(steps)
    changed.body.insert(steps_at + 1, assign(store(name), call(load(steps.name))))
    return changed


def function_factories(tree: ast.Module) -> ast.Module | None:
    """A function of the module is returned by another one: `step = make_step()`."""
    return _made_by_functions(tree, ast.FunctionDef)


def bodies_extracted(tree: ast.Module) -> ast.Module | None:
    """The body of each function is another function, which it calls: `def f(x): return do_f(x)`."""
    new = fresh(tree)

    class Delegate(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | list[ast.stmt]:
            self.generic_visit(node)
            plain = not (node.args.posonlyargs or node.args.vararg or node.args.kwonlyargs or node.args.kwarg)
            owner = owners.get(id(node))
            if owner == "class" and not node.args.args:
                return node
            head = without_docstring(node.body)
            if not plain or node.name == "__new__" or _is_special(node) or not node.body[head:]:
                return node
            do = new(f"do_{node.name.strip('_')}")
            names = arguments_of(node)
            inner = function(do, parameters(*names), node.body[head:])
            node.body = [*node.body[:head], ast.Return(call(load(do), *map(load, names)))]
            if owner == "class":
                outer.append(inner)
                return node
            return [inner, node]

    outer: list[ast.stmt] = []
    owners = {id(part): "class" for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for part in node.body}
    body: list[ast.stmt] = []
    for statement in tree.body:
        made = Delegate().visit(statement)
        if isinstance(statement, ast.ClassDef):
            body += outer
            outer.clear()
        body += made if isinstance(made, list) else [made]
    tree.body = body
    return tree


def _is_special(made: ast.FunctionDef) -> bool:
    """Whether the function means something by where it stands."""
    return any(
        isinstance(node, (ast.Yield, ast.YieldFrom, ast.Nonlocal, ast.Global))
        or (isinstance(node, ast.Name) and node.id in ("super", "__class__"))
        for node in ast.walk(made)
    )


def _can_move(body: list[ast.stmt]) -> bool:
    future = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in body)
    stars = any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in body)
    return bool(body) and not future and not stars and is_one_scope(body) and not _uses_globals(body)


def _uses_globals(body: list[ast.stmt]) -> bool:
    return any(
        isinstance(node, (ast.Global, ast.Nonlocal))
        or (isinstance(node, ast.Name) and node.id in ("globals", "locals"))
        for statement in body
        for node in ast.walk(statement)
    )


def _script(tree: ast.Module) -> int | None:
    """Where the last statements begin that define nothing; no function defined before reads what they bind."""
    split = len(tree.body)
    while split and not isinstance(tree.body[split - 1], (*DEFINITIONS, *IMPORTS)):
        split -= 1
    script = tree.body[split:]
    if not script or not _can_move(script) or bound(script) & read(tree.body[:split]):
        return None
    return split


def _shadowed(body: list[ast.stmt], variables: set[str]) -> bool:
    """Whether a function or class in it has a name of its own that is one of these, or a comprehension binds one."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, FUNCTIONS) and variables & set(arguments_of(node)):
                return True
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and variables & bound(node.body):
                return True
            if isinstance(node, ast.ClassDef) and variables & bound(node.body):
                return True
            if isinstance(node, ast.comprehension) and variables & bound([node.target]):
                return True
            if isinstance(node, (ast.Import, ast.ImportFrom)) and variables & {a.asname or a.name for a in node.names}:
                return True
    return False


def _walrus(body: list[ast.stmt]) -> bool:
    return any(
        isinstance(node, (ast.NamedExpr, ast.ExceptHandler, *DEFINITIONS)) for part in body for node in ast.walk(part)
    )
