"""What the ways of rewriting share: names and scopes of a program, and where a rewritten line comes from.

A way gets a tree that is its own, and may change it. What it moves keeps its `lineno`; what it makes has none. That is
how a line of the result is known to come from lines of the original, once :func:`origins` has walked the two side by
side.
"""

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def store(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def attribute(owner: ast.expr, name: str) -> ast.Attribute:
    return ast.Attribute(owner, name, ast.Load())


def call(function: ast.expr, *arguments: ast.expr, **keywords: ast.expr) -> ast.Call:
    return ast.Call(function, list(arguments), [ast.keyword(name, value) for name, value in keywords.items()])


def assign(target: ast.expr, value: ast.expr) -> ast.Assign:
    return ast.Assign([target], value)


def parameters(*names: str) -> ast.arguments:
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def function(name: str, arguments: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    made = ast.FunctionDef(name, arguments, body, [], None, None)
    made.type_params = []
    return made


def class_(name: str, bases: list[ast.expr], body: list[ast.stmt]) -> ast.ClassDef:
    made = ast.ClassDef(name, bases, [], body, [])
    made.type_params = []
    return made


def statements(source: str) -> list[ast.stmt]:
    """Statements without places, to be put into a program."""
    body = ast.parse(source).body
    for statement in body:
        unplaced(statement)
    return body


def unplaced(tree: ast.AST) -> None:
    """Forget where a tree comes from."""
    for node in ast.walk(tree):
        for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
            if hasattr(node, name):
                delattr(node, name)


# -- names -------------------------------------------------------------------------------------------------------------


def names(tree: ast.AST) -> set[str]:
    """Every name that a program uses for anything, and the words of its strings."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                found.add(name)
            case ast.keyword(arg=str(name)):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found |= {other or name.split(".")[0]}
            case ast.Global(names=several) | ast.Nonlocal(names=several):
                found |= set(several)
            case ast.Constant(value=str(text)):
                found |= set(text.replace("/", " ").replace(".", " ").replace(",", " ").split())
    return found


def fresh(tree: ast.AST) -> Callable[[str], str]:
    """A function that makes names that the program does not have, from a word."""
    taken = names(tree) | set(dir(builtins))

    def name(word: str) -> str:
        found = next(word + suffix for suffix in ("", *map(str, range(2, 1000))) if word + suffix not in taken)
        taken.add(found)
        return found

    return name


def module_names(tree: ast.Module) -> dict[str, str]:
    """Modules that the program imports, and what it calls them: `{"nnxkit": "nnx", "jax.numpy": "jnp"}`."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {
                alias.name: alias.asname or alias.name for alias in node.names if alias.asname or "." not in alias.name
            }
        elif isinstance(node, ast.ImportFrom) and node.module == "flax":
            found |= {f"flax.{alias.name}": alias.asname or alias.name for alias in node.names}
    return found


def library(tree: ast.Module) -> str | None:
    """What the program calls nnxkit or flax.nnx."""
    modules = module_names(tree)
    return modules.get("nnxkit") or modules.get("flax.nnx")


# -- scopes ------------------------------------------------------------------------------------------------------------


def within(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of one scope: of functions and classes in it only what is evaluated here."""
    for node in body:
        yield node
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from within([*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)])
            case ast.Lambda():
                yield from within([*node.args.defaults, *filter(None, node.args.kw_defaults)])
            case ast.ClassDef():
                yield from within([*node.decorator_list, *node.bases, *node.keywords])
            case _:
                yield from within(ast.iter_child_nodes(node))


def arguments_of(made: Function) -> list[str]:
    """The names of a function's parameters."""
    held = made.args
    several = [*held.posonlyargs, *held.args, *held.kwonlyargs, *filter(None, [held.vararg, held.kwarg])]
    return [argument.arg for argument in several]


def bound(body: Sequence[ast.AST]) -> set[str]:
    """The names that statements of one scope bind in it."""
    found: set[str] = set()
    elsewhere: set[str] = set()
    comprehended: set[int] = set()
    for node in within(body):
        match node:
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                comprehended |= {id(name) for part in node.generators for name in ast.walk(part.target)}
    for node in within(body):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if id(node) not in comprehended:
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found.add(name)
            case ast.Import() | ast.ImportFrom():
                found |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            case ast.Global(names=several) | ast.Nonlocal(names=several):
                elsewhere |= set(several)
    return found - elsewhere


def locals_of(made: Function) -> set[str]:
    """The names that belong to a function."""
    body = made.body if isinstance(made.body, list) else [made.body]
    return bound(body) | set(arguments_of(made))


def read(tree: ast.AST | Iterable[ast.AST]) -> set[str]:
    """The names that are read in a tree, functions and classes in it included, even if they are their own."""
    trees = [tree] if isinstance(tree, ast.AST) else list(tree)
    return {
        node.id
        for part in trees
        for node in ast.walk(part)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }


def free(body: Sequence[ast.AST]) -> set[str]:
    """The names that code takes from outside of itself, builtins included."""
    found: set[str] = set()
    own = bound(body)
    for node in within(body):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                found.add(name)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found |= free(node.body) - set(arguments_of(node))
            case ast.Lambda():
                found |= free([node.body]) - set(arguments_of(node))
            case ast.ClassDef():
                found |= free(node.body)
            case ast.Global(names=several) | ast.Nonlocal(names=several):
                found |= set(several)
    for node in within(body):
        if isinstance(node, COMPREHENSIONS):
            own |= {name.id for part in node.generators for name in ast.walk(part.target) if isinstance(name, ast.Name)}
    return found - own


def is_one_scope(body: Sequence[ast.AST]) -> bool:
    """Whether nothing in it is about the scope itself: no `yield`, `return`, `await`, `super()`, `nonlocal`."""
    return not any(
        isinstance(
            node,
            (ast.Yield, ast.YieldFrom, ast.Return, ast.Await, ast.Global, ast.Nonlocal, ast.Break, ast.Continue),
        )
        or (isinstance(node, ast.Name) and node.id in ("super", "__class__", "locals", "globals", "exec", "eval"))
        for node in within(body)
    )


# -- parts of a program ------------------------------------------------------------------------------------------------


def after_imports(tree: ast.Module) -> int:
    """The index of the first statement after the imports at the head."""
    head = 0
    for index, statement in enumerate(tree.body):
        documents = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not (isinstance(statement, IMPORTS) or documents):
            break
        head = index + 1
    return head


def without_docstring(body: list[ast.stmt]) -> int:
    """The index of the first statement that is no docstring."""
    first = body[0] if body else None
    return int(
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )


def blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Every list of statements in a tree, those of the module and of classes included."""
    for node in ast.walk(tree):
        for _, held in ast.iter_fields(node):
            if isinstance(held, list) and held and isinstance(held[0], ast.stmt):
                yield held


def bodies(tree: ast.Module) -> Iterator[tuple[Function | ast.Module, list[ast.stmt]]]:
    """The functions, and the module, with the statements that run in each."""
    yield tree, tree.body
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node, node.body


def methods(made: ast.ClassDef) -> list[ast.FunctionDef]:
    """The methods of a class that take `self` and nothing decorates."""
    return [
        node
        for node in made.body
        if isinstance(node, ast.FunctionDef) and not node.decorator_list and node.args.args and node.name != "__new__"
    ]


def user_functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """The functions of the module that nothing decorates."""
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.decorator_list}


def classes(tree: ast.Module) -> list[ast.ClassDef]:
    """The classes of the module."""
    return [node for node in tree.body if isinstance(node, ast.ClassDef)]


# -- lines -------------------------------------------------------------------------------------------------------------


def origins(tree: ast.AST, text: str) -> dict[int, set[int]]:
    """For each line of the text that was made of a tree, the lines of the original that it comes from."""
    found: dict[int, set[int]] = {}
    pairs: list[tuple[ast.AST, ast.AST]] = [(tree, ast.parse(text))]
    while pairs:
        old, new = pairs.pop()
        if type(old) is not type(new):
            continue
        if (line := getattr(old, "lineno", None)) is not None:
            last = line if isinstance(old, (ast.stmt, ast.excepthandler)) else getattr(old, "end_lineno", line)
            found.setdefault(getattr(new, "lineno"), set()).update(range(line, last + 1))  # noqa: B009
        former, latter = list(ast.iter_child_nodes(old)), list(ast.iter_child_nodes(new))
        if len(former) == len(latter):
            pairs += zip(former, latter, strict=True)
    return found
