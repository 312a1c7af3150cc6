"""Ways that change what things are called, and how they are reached."""

import ast
import builtins

from variants._trees import (
    IMPORTS,
    after_imports,
    assign,
    attribute,
    fresh,
    library,
    load,
    methods,
    module_names,
    store,
)

_SPOKEN = frozenset(
    {"kernel", "bias", "value", "scale", "embedding", "layers", "rngs", "tx", "opt_state", "step", "model"}
    | {"train", "eval", "sow", "perturb", "set_attributes", "training"}
)
"""Attributes that the library has as well, and the one that is a mode by its name alone: renamed, it is a plain one."""


def renamed(tree: ast.Module) -> ast.Module:
    """Names of the program's own: variables, parameters, functions, classes, methods, attributes."""
    words = {word for node in ast.walk(tree) if isinstance(node, ast.Constant) for word in _words(node.value)}
    fixed = words | {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg}
    imported = {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, IMPORTS)
        for alias in node.names
    }
    own: set[str] = set()
    attributes: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                own.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()) if name not in _SPOKEN:
                attributes.add(name)
            case ast.ClassDef():
                own.add(node.name)
                attributes |= {made.name for made in methods(node)}
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                own.add(name)
    in_class = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        for name in ast.walk(statement)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }
    all_methods = {
        made.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for made in node.body
        if isinstance(made, ast.FunctionDef)
    }
    own = {name for name in own if not name.startswith("_")} - imported - fixed - in_class - all_methods
    attributes = {name for name in attributes if not name.startswith("_")} - fixed - in_class - imported
    attributes -= {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported
    }
    new = fresh(tree)
    table = {
        name: new(f"{'Kind' if name[0].isupper() else 'it'}_{number}")
        for number, name in enumerate(sorted(own - attributes))
    }
    members = {name: new(f"member_{number}") for number, name in enumerate(sorted(attributes))}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if name in table:
                node.id = table[name]
            case ast.arg(arg=name) if name in table:
                node.arg = table[name]
            case ast.Attribute(attr=name) if name in members:
                node.attr = members[name]
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                node.name = members.get(name, table.get(name, name))
            case ast.Global(names=several) | ast.Nonlocal(names=several):
                node.names = [table.get(name, name) for name in several]
    return tree


def _words(value: object) -> list[str]:
    if not isinstance(value, str):
        return []
    text = value
    for mark in "/.,:()[]{}'`=":
        text = text.replace(mark, " ")
    return text.split()


def imports_renamed(tree: ast.Module) -> ast.Module:
    """`import nnxkit as N`, `import jax as J`."""
    new = fresh(tree)
    table = {called: new(f"M_{called}") for called in module_names(tree).values() if "." not in called}
    return _modules_renamed(tree, table)


def _modules_renamed(tree: ast.Module, table: dict[str, str]) -> ast.Module:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if name in table:
                node.id = table[name]
            case ast.Import() | ast.ImportFrom(module="flax"):
                for alias in node.names:
                    called = alias.asname or alias.name
                    if called in table:
                        alias.asname = table[called]
    return tree


def imported_names(tree: ast.Module) -> ast.Module | None:
    """`from nnxkit import Linear` and `Linear(...)`, and the same with `jax` and `jax.numpy`."""
    taken = set(dir(builtins)) | {
        name
        for node in ast.walk(tree)
        for name in (getattr(node, "id", None), getattr(node, "arg", None), getattr(node, "name", None))
        if name is not None
    }
    wanted: dict[tuple[str, str], str] = {}
    modules = {called: name for name, called in module_names(tree).items()}

    class Short(ast.NodeTransformer):
        def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
            match node:
                case ast.Attribute(value=ast.Name(id=called), attr=name, ctx=ast.Load()) if called in modules:
                    module = modules[called]
                    if (module, name) not in wanted and f"{module}.{name}" not in modules.values():
                        # Two modules may have the same name for different things.
                        wanted[module, name] = f"{name}_" if name in {*taken, *wanted.values()} else name
                    if (module, name) in wanted:
                        return ast.copy_location(load(wanted[module, name]), node)
            return self.generic_visit(node)

    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    if bound & set(modules):
        return None
    plain = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules = {called: name for called, name in modules.items() if name in plain or name.startswith("flax.")}
    modules = {
        called: name for called, name in modules.items() if name.split(".")[0] in ("nnxkit", "flax", "jax", "optax")
    }
    tree = Short().visit(tree)
    head = after_imports(tree)
    tree.body[head:head] = [
        ast.ImportFrom(module, [ast.alias(name, called if called != name else None)], 0)
        for (module, name), called in wanted.items()
    ]
    return tree


def module_in_full(tree: ast.Module) -> ast.Module | None:
    """`import nnxkit` and `nnxkit.Linear(...)`; `import flax.nnx` and `flax.nnx.Linear(...)`."""
    called = library(tree)
    if called is None or called == "nnxkit":
        return None
    path = next(name for name, other in module_names(tree).items() if other == called)
    if path.split(".")[0] in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}:
        return None

    class Full(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            if node.id != called:
                return node
            made: ast.expr = load(path.split(".")[0])
            for part in path.split(".")[1:]:
                made = attribute(made, part)
            return ast.copy_location(made, node)

        def visit_Import(self, node: ast.Import) -> ast.AST:
            node.names = [alias if alias.asname != called else ast.alias(path) for alias in node.names]
            return node

        def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
            if node.module == "flax" and any((alias.asname or alias.name) == called for alias in node.names):
                return ast.copy_location(ast.Import([ast.alias(path)]), node)
            return node

    return Full().visit(tree)  # type: ignore[no-any-return]


def library_in_variables(tree: ast.Module) -> ast.Module | None:
    """`Dense = nnx.Linear` at the head, and `Dense(...)`."""
    called = library(tree)
    if called is None:
        return None
    new = fresh(tree)
    made: dict[str, str] = {}

    class Short(ast.NodeTransformer):
        def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
            match node:
                case ast.Attribute(value=ast.Name(id=owner), attr=name, ctx=ast.Load()) if owner == called:
                    if name not in made:
                        made[name] = new(f"the_{name}")
                    return ast.copy_location(load(made[name]), node)
            return self.generic_visit(node)

    tree = Short().visit(tree)
    values = [assign(store(short), attribute(load(called), name)) for name, short in made.items()]
    head = after_imports(tree)
    tree.body[head:head] = values
    return tree


def self_aliased(tree: ast.Module) -> ast.Module:
    """A method calls its object otherwise: `this = self`."""
    new = fresh(tree)
    for made in [method for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for method in methods(node)]:
        first = made.args.args[0].arg
        if first != "self" or any(isinstance(node, ast.Name) and node.id == "super" for node in ast.walk(made)):
            continue
        this = new("this")
        for statement in made.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and node.id == first:
                    node.id = this
        made.body.insert(0, assign(store(this), load(first)))
    return tree


def variables_aliased(tree: ast.Module) -> ast.Module:
    """What is assigned to a variable is assigned to another one first: `other = Net(); model = other`."""
    new = fresh(tree)

    class Twice(ast.NodeTransformer):
        def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
            if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
                return node
            other = new("other")
            first = ast.copy_location(assign(store(other), node.value), node)
            node.value = load(other)
            return [first, node]

        def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
            node.body = [self.visit(part) if isinstance(part, ast.FunctionDef) else part for part in node.body]
            return node

    return Twice().visit(tree)  # type: ignore[no-any-return]
