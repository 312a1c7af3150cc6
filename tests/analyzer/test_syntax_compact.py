"""Trees whose nodes have slots say what those of ``ast`` say, and hold nothing besides."""

import ast
import copy
import inspect
import sys
import textwrap

import pytest

from nnx_lint.source import SourceFile
from nnx_lint.syntax import recovery
from nnx_lint.syntax.compact import COMPACT, compact, for_both
from nnx_lint.syntax.parsing import parse
from nnx_lint.syntax.walk import walk

EVERYTHING = """
@decorated
async def f(a, /, b: int = 1, *c, d=None, **e) -> None:
    global g
    async with a as b, c: pass
    async for x in y: await z
    else: yield
    return (yield from a), lambda: 0, [*a, -1], {1, "two"}, {**d, 1: not 2}, {a: b for a, b in c if d if e}


class C(B, metaclass=M):
    x: int
    y: "str" = f"{a!r:>{width}} {b}"
    a.b[c:d, ..., 1] += b"3" if x < y <= z else (x := 2j)
    del x, y[0]


try:
    from . import a as b, c
    import d.e as f, g
except (A, B) as error:
    raise C from error
else:
    assert x, "y"
finally:
    while a and b or c: continue
match a:
    case {"x": [1, *_], **rest} | C(x, y=None) as z if z: ...
    case -1 | "s": ...
"""


def same(one: object, other: object) -> bool:
    """Whether two trees say the same in the same places."""
    if not isinstance(one, ast.AST):
        if isinstance(one, list) and isinstance(other, list):
            return len(one) == len(other) and all(map(same, one, other))
        return type(one) is type(other) and one == other
    if type(one).__name__ != type(other).__name__:
        return False
    names = [*one._fields, *one._attributes]
    return all(same(getattr(one, name, None), getattr(other, name, None)) for name in names)


@pytest.mark.parametrize("text", [EVERYTHING, inspect.getsource(recovery), ""], ids=["all", "a module", "none"])
def test_what_is_compact_says_the_same(text: str) -> None:
    plain = ast.parse(text)
    tree = compact(copy.deepcopy(plain))
    for node in ast.walk(plain):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value.value = ""

    assert same(plain, tree)
    assert len(list(ast.walk(plain))) == len(list(ast.walk(tree)))
    assert not any(vars(node) for node in walk(tree))
    for node, other in zip(walk(tree), walk(plain), strict=True):
        assert type(node) is COMPACT[type(other)]
        assert isinstance(node, type(other))
    numbers = {id(node.lineno) for node in walk(tree) if isinstance(node, ast.expr)}
    assert len(numbers) == len({node.lineno for node in walk(tree) if isinstance(node, ast.expr)})


def test_a_string_that_is_a_statement_is_empty_and_others_are_not() -> None:
    text = "class C:\n    '''What it\n    is.'''\n    name = \"n\"\n    f(\"x\")\n    b\"bytes\"\n"
    tree = parse(text).tree

    assert [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)] == ["", "n", b"bytes", "x"]
    first = tree.body[0]
    assert isinstance(first, ast.ClassDef)
    assert SourceFile.from_text(text).segment(first.body[0]) == "'''What it\n    is.'''"


def test_patterns_match_what_is_compact() -> None:
    match parse("a.b(c)\n").tree.body[0]:
        case ast.Expr(ast.Call(func=ast.Attribute(ast.Name("a"), "b"), args=[ast.Name(id=name)])):
            assert name == "c"
        case other:
            pytest.fail(ast.dump(other))


def test_a_table_is_for_both() -> None:
    plain: dict[type[ast.AST], int] = {ast.Name: 1, ast.Call: 2}
    table = for_both(plain)
    (statement,) = parse("f(x)\n").tree.body
    assert isinstance(statement, ast.Expr)

    assert table[type(statement.value)] == table[ast.Call] == 2


def test_what_is_too_deep_is_left() -> None:
    text = textwrap.dedent("x = " + " + ".join(["a"] * 400))
    plain = ast.parse(text)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 100)
    try:
        tree = compact(plain)
    finally:
        sys.setrecursionlimit(limit)

    assert tree is plain
    assert [type(node).__name__ for node in walk(tree)] == [type(node).__name__ for node in walk(ast.parse(text))]
