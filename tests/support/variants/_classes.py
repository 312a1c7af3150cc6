"""Ways that distribute a class over several, and that say what types things have."""

import ast

from variants._trees import (
    attribute,
    call,
    class_,
    classes,
    fresh,
    function,
    library,
    load,
    parameters,
    statements,
    without_docstring,
)


def inherited(tree: ast.Module) -> ast.Module | None:
    """What stands in a class comes from a base class of the program's own; the class itself is empty."""
    new = fresh(tree)
    body: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef) and statement.bases and _movable(statement):
            name = statement.name
            statement.name = new(f"{name}Base")
            body += [statement, class_(name, [load(statement.name)], [ast.Pass()])]
        else:
            body.append(statement)
    tree.body = body
    return tree


def mixed_in(tree: ast.Module) -> ast.Module | None:
    """The methods but `__init__` come from a mixin that has no base of its own."""
    new = fresh(tree)
    body: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef) and statement.bases and _movable(statement):
            moved = [
                part
                for part in statement.body
                if isinstance(part, ast.FunctionDef) and part.name not in ("__init__", "__new__", "__post_init__")
            ]
            kept = [part for part in statement.body if part not in moved]
            if moved:
                mixin = class_(new(f"{statement.name}Mixin"), [], list[ast.stmt](moved))
                statement.bases.insert(0, load(mixin.name))
                statement.body = kept or [ast.Pass()]
                body.append(mixin)
        body.append(statement)
    tree.body = body
    return tree


def set_up_by_method(tree: ast.Module) -> ast.Module | None:
    """`__init__` calls a method that does all the work."""
    for made in classes(tree):
        for index, part in enumerate(made.body):
            match part:
                case ast.FunctionDef(name="__init__", decorator_list=[], args=held) if held.args and not (
                    held.vararg or held.kwarg or held.kwonlyargs or held.posonlyargs or held.defaults
                ):
                    if any(isinstance(node, ast.Name) and node.id in ("super", "__class__") for node in ast.walk(part)):
                        continue
                    names = [argument.arg for argument in held.args]
                    head = without_docstring(part.body)
                    other = function("_set_up", parameters(*names), part.body[head:])
                    other.args.args[0] = ast.arg(names[0])
                    delegate = call(attribute(load(names[0]), "_set_up"), *map(load, names[1:]))
                    part.body[head:] = [ast.Expr(delegate)]
                    made.body.insert(index + 1, other)
                    break
    return tree


def super_first(tree: ast.Module) -> ast.Module | None:
    """`super().__init__()` at the head of each constructor that has none."""
    called = library(tree)
    for made in classes(tree):
        match made.bases:
            case [ast.Attribute(value=ast.Name(id=owner), attr="Module" | "Pytree")] if owner == called:
                for part in made.body:
                    if isinstance(part, ast.FunctionDef) and part.name == "__init__" and not _calls_super(part):
                        head = without_docstring(part.body)
                        part.body[head:head] = statements("super().__init__()")
    return tree


def _calls_super(part: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "super" for node in ast.walk(part))


def documented(tree: ast.Module) -> ast.Module | None:
    """Docstrings, annotations of nothing, and `from __future__ import annotations`."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not without_docstring(node.body):
            node.body.insert(0, ast.Expr(ast.Constant("Does what it does.")))
        if isinstance(node, ast.FunctionDef):
            if node.returns is None:
                node.returns = ast.Constant("typing.Any")
            for argument in node.args.args:
                if argument.annotation is None and argument.arg not in ("self", "cls"):
                    argument.annotation = ast.Constant("typing.Any")
    tree.body[:0] = statements("from __future__ import annotations\nimport typing")
    return tree


def generic(tree: ast.Module) -> ast.Module | None:
    """Classes are generic: `class Net(nnx.Module, typing.Generic[T])`."""
    changed = False
    for made in classes(tree):
        if made.bases and not any(isinstance(base, ast.Subscript) for base in made.bases) and _movable(made):
            made.bases.append(ast.parse("typing.Generic[_T]", mode="eval").body)
            changed = True
    if not changed:
        return None
    tree.body[:0] = statements("import typing\n_T = typing.TypeVar('_T')")
    return tree


def _movable(made: ast.ClassDef) -> bool:
    """Whether nothing in the class says what it is: no decorator, no `super()`, no words beside its bases."""
    return not (
        made.decorator_list
        or made.keywords
        or any(isinstance(node, ast.Name) and node.id in ("super", "__class__") for node in ast.walk(made))
        or any(isinstance(part, (ast.AnnAssign,)) for part in made.body)
    )
