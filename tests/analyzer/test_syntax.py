"""Recovery from syntax errors: the rest of a broken text is in the tree, at its exact place, and nothing is raised."""

import ast
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_lint.syntax import parsing, recovery
from nnx_lint.syntax.names import mentioned
from nnx_lint.syntax.parsing import parse
from nnx_lint.syntax.trees import Blank


def names(tree: ast.AST) -> set[str]:
    """What the statements that are left define."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def said(node: object) -> object:
    """What a tree says, and where, whatever types its nodes are of."""
    if isinstance(node, list):
        return [said(each) for each in node]
    if not isinstance(node, ast.AST):
        return node
    return type(node).__name__, [said(getattr(node, name, None)) for name in (*node._fields, *node._attributes)]


def blanks(tree: ast.AST) -> list[Blank]:
    return [node for node in ast.walk(tree) if isinstance(node, Blank)]


def bound(tree: ast.AST) -> set[str]:
    return {target.id for blank in blanks(tree) for target in blank.targets}


BROKEN: dict[str, tuple[str, set[str], set[str], list[int]]] = {
    # name: (text, what is left, what may be bound by the rest, the lines of the errors)
    "an unfinished assignment": ("a = 1\nb = \nc = 3\n", {"a", "c"}, {"b"}, [2]),
    "a half-typed attribute": ("a = 1\na.\nc = 3\n", {"a", "c"}, set(), [2]),
    "a half-typed import": ("from flax.nnx import \na = 1\n", {"a"}, set(), [1]),
    "a half-typed import of names": ("from flax import nnx,\nimport jax.\na = 1\n", {"a"}, {"nnx", "jax"}, [1, 2]),
    "a missing colon": ("def f(x)\n    a = x\nclass C\n    b = 1\n", {"f", "a", "C", "b"}, set(), [1, 3]),
    "a missing colon before a comment": ("if x  # why\n    a = x\nelse\n    b = 1\n", {"a", "b"}, set(), [1, 3]),
    "a missing body": ("def f():\ndef g():  # soon\nif a:\nb = 1\n", {"f", "g", "b"}, set(), [1, 2, 3]),
    "an open bracket": ("a = f(1,\nb = 2\ng()\nc = 3\n", {"b", "c"}, {"a"}, [1]),
    "an open bracket over lines": ("a = f(\n    1,\n    x=[2,\nb = 2\n", {"b"}, {"a", "x"}, [3]),
    "an open bracket at the end": ("a = 1\nb = {\n", {"a"}, {"b"}, [2]),
    "a wrong bracket": ("a = (1]\nb = 2\n", {"b"}, {"a"}, [1]),
    "a bracket too many": ("a = (1))\nb = 2\n", {"b"}, {"a"}, [1]),
    "an open header": ("def f(x, y\n    a = 1\ndef g():\n    b = 1\n", {"g", "b"}, {"f"}, [1]),
    "a broken class header": ("class A(B, :\n    def f(self): pass\nb = 1\n", {"b"}, {"A"}, [1]),
    "a line too far to the left": (
        "class A:\n    def f(self):\n        a = 1\n(\n        b = 1\n\n    def g(self): pass\n",
        {"A", "f", "a", "g"},
        {"b"},
        [4],
    ),
    "a broken method": (
        "class A:\n    def f(self, x=:\n        y = 1\n    def g(self):\n        z = 1\n",
        {"A", "g", "z"},
        {"f"},
        [2],
    ),
    "a broken decorator": ("@f(\ndef g(): pass\na = 1\n", {"a"}, {"g"}, [1]),
    "an open string": ("a = 'x\nb = 2\n", {"b"}, {"a"}, [1]),
    "an open docstring": (
        'def f():\n    """Open.\n    a = 1\n\ndef g():\n    """Closed."""\n    b = 1\n\ndef h():\n    """Too."""\n',
        {"f", "g", "b", "h"},
        set(),
        [2],
    ),
    "an unexpected indent": ("a = 1\n    b = 2\nc = 3\n", {"a", "c"}, {"b"}, [2]),
    "an indent at the start": ("  a = 1\nc = 3\n", {"c"}, {"a"}, [1]),
    "an unindent to nowhere": ("if x:\n        a = 1\n    b = 2\n        c = 3\nd = 4\n", {"a", "c", "d"}, {"b"}, [3]),
    "tabs and spaces": ("if x:\n        a = 1\n\tb = 2\nc = 3\n", {"a", "c"}, {"b"}, [3]),
    "a try without handlers": ("try:\n    a = 1\nb = 2\n", {"a", "b"}, set(), [1]),
    "a broken handler": (
        "try:\n    a = 1\nexcept (:\n    b = 2\nfinally:\n    c = 3\n",
        {"a", "c"},
        {"b"},
        [3],
    ),
    "a broken branch": ("if x:\n    a = 1\nelif :\n    b = 2\nelse:\n    c = 3\n", {"a", "c"}, {"b"}, [3]),
    "a broken first branch": ("if :\n    a = 1\nelse:\n    b = 2\nc = 3\n", {"c"}, {"a", "b"}, [1]),
    "an orphaned else": ("a = 1\nelse:\n    b = 2\nc = 3\n", {"a", "c"}, {"b"}, [2]),
    "a broken case": (
        "match x:\n    case 1:\n        a = 1\n    case (:\n        b = 1\nc = 1\n",
        {"a", "c"},
        {"b"},
        [4],
    ),
    "a merge conflict": (
        "a = 1\n<<<<<<< HEAD\nb = 1\n=======\nb = 2\n>>>>>>> other\nc = 3\n",
        {"a", "c"},
        {"b"},
        [2],
    ),
    "a merge conflict in a block": (
        "def f():\n<<<<<<< HEAD\n    b = 1\n=======\n    b = 2\n>>>>>>> other\n    c = 3\n",
        {"f", "c"},
        {"b"},
        [2],
    ),
    "a merge conflict in a call": (
        "a = f(\n    1,\n<<<<<<< HEAD\n    b=1,\n||||||| base\n=======\n    b=2,\n>>>>>>> other\n)\nc = 3\n",
        {"c"},
        {"a", "b"},
        [3],
    ),
    "Python 2": (
        "print 'x'\nexec 'a'\nraise E, 'x'\na = 1\nb = `a`\nc = a <> 1\nd = 0777\n",
        {"a"},
        {"b", "c", "d"},
        [1, 2, 3, 5, 6, 7],
    ),
    "several on one line": ("a = 1; b = ; c = 2\nd = 1\n", {"d"}, {"a", "b", "c"}, [1]),
    "a continued line": ("a = 1 + \\\n    2 +\nb = 1 \\", set(), {"a", "b"}, [2, 3]),
    "deep in blocks": (
        "class A:\n  def f(self):\n    for x in y:\n      a = (\n      b = 1\n    c = 2\n  def g(self):\n    d = 1\n",
        {"A", "f", "b", "c", "g", "d"},
        {"a"},
        [4],
    ),
    "an odd layout that is sound": ("f(\na=1,\n)\nb = (\nb\n)\nc = \n", {"b"}, {"c"}, [7]),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_rest_answers(name: str, newline: str) -> None:
    text, left, lost, lines = BROKEN[name]
    parsed = parse(text.replace("\n", newline))

    assert names(parsed.tree) == set(left)
    assert bound(parsed.tree) == lost
    assert sorted({error.line for error in parsed.errors}) == lines


@pytest.mark.parametrize("name", BROKEN)
def test_places_of_the_rest_are_exact(name: str) -> None:
    text = BROKEN[name][0]
    tree = parse(text).tree
    guessed = {id(node) for blank in blanks(tree) for node in ast.walk(blank)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in guessed and node.lineno not in BROKEN[name][3]:
            assert ast.get_source_segment(text, node) == node.id


def test_sound_text_is_parsed_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nnx_lint.syntax.recovery", None)  # importing it would raise
    parsed = parse("def f(x): return x  # é\n")

    assert not parsed.errors
    assert said(parsed.tree) == said(ast.parse("def f(x): return x  # é\n"))


def test_messages_are_those_of_python() -> None:
    (error,) = parse("a = 1\nb = (1,\n").errors
    assert (error.line, error.column, error.message) == (2, 5, "'(' was never closed")


@pytest.mark.parametrize("before", ["", "a = 1\n\n", "def f(): pass\nclass A:\n  b = 1\n"])
def test_lines_in_messages_are_those_of_the_file(before: str) -> None:
    start = before.count("\n")
    (error,) = parse(f"{before}a = (\n  1]\nc = 1\n").errors
    assert error.message == f"closing parenthesis ']' does not match opening parenthesis '(' on line {start + 1}"


def test_a_conflict_says_so() -> None:
    (error,) = parse("<<<<<<< HEAD\na = 1\n=======\n>>>>>>> other\n").errors
    assert (error.line, error.message) == (1, "unresolved merge conflict")


STATEMENTS = st.sampled_from(
    [
        "a{n} = 1\n",
        "def f{n}(x):\n    if x:\n        return (x,\n  1)\n",
        "class C{n}:\n    '''Doc\n\ndef no():\n'''\n    def m(self): pass\n",
        "@d\ndef g{n}(): ...\n",
        "try:\n    x{n} = 1\nexcept E:\n    pass\n",
        "b{n} = [\n    1,\n]\n",
        "# comment\n\n",
    ]
)
WRONG = st.sampled_from(
    ["a = \n", "x.\n", "def f(x\n", "b = 'x\n", "class A(\n", "   y = 1\n", "print x\n", "if :\n    a = 1\n"]
)


@given(st.lists(STATEMENTS, max_size=5), WRONG, st.lists(STATEMENTS, max_size=5))
def test_one_broken_statement_hides_nothing(before: list[str], wrong: str, after: list[str]) -> None:
    first = "".join(text.replace("{n}", str(n)) for n, text in enumerate(before))
    last = "".join(text.replace("{n}", f"_{n}") for n, text in enumerate(after))
    parsed = parse(first + wrong + last)

    assert names(parsed.tree) >= names(ast.parse(first)) | names(ast.parse(last))
    assert len(blanks(parsed.tree)) >= 1


class TestMentioned:
    def names(self, text: str) -> tuple[set[str], set[str]]:
        blank = mentioned(text, ast.Pass(lineno=1, col_offset=0))
        return {target.id for target in blank.targets}, {ast.unparse(use) for call in blank.uses for use in call.args}

    @pytest.mark.parametrize(
        ("text", "targets"),
        [
            ("x = nnx.Linear(a, self.b", {"x"}),
            ("x, y = f(", {"x", "y"}),
            ("x: int = (", {"x"}),
            ("x: nnx.", {"x"}),
            ("x += (", {"x"}),
            ("self.x = (", set()),
            ("x[0] = (", set()),
            ("if x == y: (", set()),
            ("for x, y in z(", {"x", "y"}),
            ("with a as b, c(", {"b"}),
            ("import a.b, c as d, (", {"a", "c", "d"}),
            ("from a.b import (c, d as e,\n  f", {"c", "d", "e", "f"}),
            ("def f(x, y", {"f"}),
            ("class A(B", {"A"}),
            ("global x, y =", {"x", "y"}),
            ("f(x := (", {"x"}),
            ("'x = 1' # y = 2", set()),
        ],
    )
    def test_targets(self, text: str, targets: set[str]) -> None:
        assert self.names(text)[0] == targets

    def test_uses(self) -> None:
        assert self.names("self.a.b(x, nnx.Param(y)")[1] == {"self.a.b", "x", "nnx.Param", "y"}

    @pytest.mark.parametrize(
        ("text", "method"),
        [
            ("    def f(self, x\n        return x\n", "f"),
            ("@d\nasync def f(x\n", "f"),
            ("    x = (\n", None),
            ("    def f(self, x\n        return x\n    y = 1\n", None),
        ],
    )
    def test_a_method_alone(self, text: str, method: str | None) -> None:
        assert mentioned(text, ast.Pass(lineno=1, col_offset=0)).method == method


NEWER = {
    "type parameters": (
        "3.12",
        "def f[T: (int, str), *Ts](x: T) -> T:\n    a = x\nclass C[T](B):\n    b = 1\n",
        {"f", "a", "C", "b"},
    ),
    "type parameters over lines": ("3.12", "class C[\n    T,\n](B):\n    b = 1\n", {"C", "b"}),
    "defaults of type parameters": ("3.13", "def f[T = int](x: T) -> T:\n    a = x\n", {"f", "a"}),
    "type statements": ("3.12", "type A = int\ntype B[T] = list[T]\n", {"A", "B"}),
    "quotes in f-strings": ("3.12", 'a = f"{b["x"]}" \'y\'\n', {"a"}),
    "lines in f-strings": ("3.12", "a = f'{\n    b  # why\n}'\n", {"a"}),
    "backslashes in f-strings": ("3.12", "a = f'{\"\\n\".join(b)}'\n", {"a"}),
    "template strings": ("3.14", "a = t'{b}'\n", {"a"}),
    "exceptions without parentheses": ("3.14", "try: a = 1\nexcept A, B:\n    b = 1\n", {"a", "b"}),
}


@pytest.mark.parametrize("name", NEWER)
def test_newer_syntax_is_seen_and_noted(name: str) -> None:
    version, text, left = NEWER[name]
    parsed = parse("z = 1\n" + text + "y = 1\n")

    assert not parsed.errors
    assert names(parsed.tree) >= (left | {"z", "y"} if version > f"3.{sys.version_info[1]}" else {"z", "y"})
    if tuple(map(int, version.split("."))) > sys.version_info[:2]:
        (note,) = parsed.notes
        assert f"syntax of Python {version}" in note.message
        assert note.line in (2, 3)


def test_what_no_python_knows_is_an_error_although_something_is_newer() -> None:
    parsed = parse("def f[T](x\n    return f'{a['b']}' (\nb = 1\n")

    assert parsed.errors
    assert names(parsed.tree) == {"b"}


@pytest.mark.parametrize(
    "text",
    {
        "brackets": "(" * 10_000,
        "minus": "a = " + "-" * 100_000 + "1",
        "attributes": "a" + ".b" * 20_000 + " =",
        "calls": "a = " + "f(" * 300,
        "blocks": "".join(" " * depth + "if a:\n" for depth in range(300)),
        "indents": "a = (\n" + "".join(" " * depth + "b = 1\n" for depth in range(2_000)),
        "strings": "a = " + "f'{" * 1_000,
        "quotes": "'''" * 10_001,
        "equals": "a " + "= b " * 50_000 + "(",
        "commas": "except " + "a, " * 50_000,
        "errors": "a = \n" * 3_000,
        "tabs": "\t" * 50_000 + "a = \n b",
        "lines": "a = (" + "\n" * 100_000,
        "one long line": "a = [" + "1, " * 200_000,
        "decorators": "@a  \n" * 5_000 + "def",
        "conflicts": "<<<<<<< \na = 1\n=======\n>>>>>>> \n" * 500,
    }.items(),
    ids=lambda item: item[0],
)
def test_hostile_texts_end(text: tuple[str, str]) -> None:
    parsed = parse("first = 1\n" + text[1] + "\n")
    assert parsed.errors or parsed.notes
    assert "first" in names(parsed.tree)


@pytest.mark.parametrize("text", ["a = '{}'\n", "a = [\n{},\n]\n", "if b:\n    a = {}\n"])
def test_long_lines_are_left_out_and_the_rest_answers(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "MAX_SIZE", 1_000)
    monkeypatch.setattr(recovery, "MAX_LINE", 500)
    parsed = parse(f"first = 1\n{text.format('x' * 1_000)}last = 1\n")

    assert names(parsed.tree) | bound(parsed.tree) == {"first", "last", "a"}
    assert not parsed.errors
    assert "the line is not read" in parsed.notes[0].message


def test_too_large_a_text_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "MAX_SIZE", 10)
    monkeypatch.setattr(recovery, "MAX_SIZE", 10)
    parsed = parse("a = 'longer'\n")

    assert parsed.tree.body == []
    assert "the file is not checked" in parsed.notes[0].message
    assert not parsed.errors


@given(st.text(alphabet="ab (){}[]:=.,#'\"\\\n\r\t\f%!?@\0é\udce9<>0if"))
def test_nothing_is_raised(text: str) -> None:
    parsed = parse(text)
    lines = text.count("\n") + text.count("\r") + 1
    assert all(1 <= error.line <= lines for error in parsed.errors)
    for node in ast.walk(parsed.tree):
        assert 1 <= getattr(node, "lineno", 1) <= lines


def test_blanks_stand_where_the_text_is() -> None:
    tree = parse(
        textwrap.dedent("""
        class A:
            def f(self):
                self.x = (
                return self.x
        """)
    ).tree
    function = tree.body[0].body[0]  # type: ignore[attr-defined]
    assert isinstance(function.body[0], Blank)
    assert (function.body[0].lineno, function.body[0].col_offset) == (4, 8)
    assert isinstance(function.body[1], ast.Return)
