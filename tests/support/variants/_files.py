"""Ways that spread a program over several files. The program itself is the file `program.py`."""

import ast

from variants._trees import DEFINITIONS, IMPORTS, after_imports, attribute, bound, free, fresh, load

Files = dict[str, ast.Module]
PROGRAM = "program.py"


def _parts(tree: ast.Module) -> tuple[list[ast.stmt], list[ast.stmt], list[ast.stmt], set[str]] | None:
    """The imports, the definitions that can stand in a file of their own, what is left, and the names that are moved.

    What is moved reads nothing that is left behind.
    """
    head = after_imports(tree)
    imports, rest = tree.body[:head], tree.body[head:]
    if any(isinstance(node, (ast.Global, *IMPORTS)) for part in rest for node in ast.walk(part)):
        return None
    moved: list[ast.stmt] = []
    left: list[ast.stmt] = []
    behind: set[str] = set()
    later = {name for part in rest if not isinstance(part, DEFINITIONS) for name in bound([part])}
    for part in rest:
        names = free([part])
        if isinstance(part, DEFINITIONS) and not names & (behind | later):
            moved.append(part)
        else:
            left.append(part)
            behind |= bound([part])
    own = bound(moved)
    if not moved or not left or own & behind:
        return None
    return imports, moved, left, own


def definitions_elsewhere(tree: ast.Module) -> Files | None:
    """Classes and functions stand in another file: `from parts import Net`."""
    parts = _parts(tree)
    if parts is None:
        return None
    imports, moved, left, own = parts
    wanted = ast.ImportFrom("parts", [ast.alias(name) for name in sorted(own)], 0)
    return {"parts.py": _module(imports, moved), PROGRAM: _module(imports, [wanted, *left])}


def definitions_in_module(tree: ast.Module) -> Files | None:
    """Classes and functions stand in another file: `import parts` and `parts.Net`."""
    parts = _parts(tree)
    if parts is None:
        return None
    imports, moved, left, own = parts
    if any(own & bound([node]) for part in left for node in ast.walk(part) if isinstance(node, ast.stmt)):
        return None

    class Through(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return ast.copy_location(attribute(load("parts"), node.id), node) if node.id in own else node

    left = [Through().visit(part) for part in left]
    return {"parts.py": _module(imports, moved), PROGRAM: _module(imports, [ast.Import([ast.alias("parts")]), *left])}


def definitions_in_package(tree: ast.Module) -> Files | None:
    """Each class and function has a file in a package that exports all of them."""
    parts = _parts(tree)
    if parts is None:
        return None
    imports, moved, left, own = parts
    files: Files = {}
    order: list[str] = []
    for index, part in enumerate(moved):
        assert isinstance(part, DEFINITIONS)
        needed = sorted(free([part]) & own - {part.name})
        if set(needed) - set(order):
            return None  # what it reads comes later, in a circle of imports
        before: list[ast.stmt] = [ast.ImportFrom(f"_{order.index(name)}", [ast.alias(name)], 1) for name in needed]
        files[f"parts/_{index}.py"] = _module(imports, [*before, part])
        order.append(part.name)
    if len(set(order)) < len(order):
        return None
    exports: list[ast.stmt] = [
        ast.ImportFrom(f"_{index}", [ast.alias(name, name)], 1) for index, name in enumerate(order)
    ]
    wanted = ast.ImportFrom("parts", [ast.alias(name) for name in order], 0)
    init = ast.Module(exports, [])
    return {**files, "parts/__init__.py": init, PROGRAM: _module(imports, [wanted, *left])}


def constants_elsewhere(tree: ast.Module) -> Files | None:
    """Numbers and strings that are arguments stand in a file of settings."""
    new = fresh(tree)
    made: dict[str, ast.Constant] = {}

    class Settings(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            if isinstance(node.func, ast.Name):
                return node
            for index, value in enumerate(node.args):
                if isinstance(value, ast.Constant) and type(value.value) in (int, float, str):
                    node.args[index] = self.setting(value)
            for keyword in node.keywords:
                value = keyword.value
                if isinstance(value, ast.Constant) and type(value.value) in (int, float, str, bool):
                    keyword.value = self.setting(value)
            return node

        def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
            return node

        def setting(self, value: ast.Constant) -> ast.expr:
            name = new("SETTING")
            made[name] = value
            return ast.copy_location(attribute(load("settings"), name), value)

    if any(isinstance(node, ast.Name) and node.id == "settings" for node in ast.walk(tree)):
        return None
    tree = Settings().visit(tree)
    if not made:
        return None
    head = after_imports(tree)
    tree.body.insert(head, ast.Import([ast.alias("settings")]))
    settings = ast.Module([ast.Assign([ast.Name(name, ast.Store())], value) for name, value in made.items()], [])
    return {"settings.py": settings, PROGRAM: tree}


def _module(imports: list[ast.stmt], body: list[ast.stmt]) -> ast.Module:
    return ast.Module([*imports, *body], [])
