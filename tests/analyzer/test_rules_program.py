"""What rules read off the text around a place: quick ways to an answer give the one that the whole tree gives."""

from __future__ import annotations

import ast
import types

import pytest

from nnx_lint.rules.program import ancestors, assigned_in, calls_in, in_test, own_nodes, own_statements
from nnx_lint.source import SourceFile
from nnx_lint.syntax.walk import children, walk

TEXT = '''\
@decorated(
    by=this)
class A:
    @x.setter
    def f(self, a=1, *, b: int = lambda z: z):
        return [y for y in f"""{
            a} and {g(b)!r}"""]
    x = 1; y = lambda: 3
if a: b = 1; c = f(2)
else: d = 3
match x:
    case [1, *r] if r: y
    case _: z
try: a
except (B, C) as e: b
else: c
finally: d
def g(a, b):
    for each in a:
        with each as b:
            if each: return f(b)
    else:
        def inner(): return 1
    try:
        b += (c := f(1))
    except ValueError:
        return b
    return f(f(a))
'''

SOURCE = SourceFile.from_text(TEXT)
NODES = walk(SOURCE.tree)
PARENTS = {node: parent for parent in NODES for node in children(parent)}


def around(node):
    while node in PARENTS:
        node = PARENTS[node]
        yield node


@pytest.mark.parametrize("node", [node for node in NODES if hasattr(node, "lineno") or children(node)])
def test_ancestors_are_those_of_the_tree(node):
    module = types.SimpleNamespace(source=SOURCE)
    assert list(ancestors(module, node)) == list(around(node))


@pytest.mark.parametrize(
    "scope", [node for node in NODES if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Call))]
)
def test_what_is_said_in_a_scope(scope):
    nodes = walk(scope)
    assert calls_in(scope) == [node for node in nodes if isinstance(node, ast.Call)]
    names = [node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
    assert sorted(assigned_in(scope).elements()) == sorted(names)


@pytest.mark.parametrize("function", [node for node in NODES if isinstance(node, ast.FunctionDef)])
def test_own_statements_are_the_own_nodes_that_are_statements(function):
    statements = [node for node in own_statements(function) if isinstance(node, ast.stmt)]
    assert statements == [node for node in own_nodes(function) if isinstance(node, ast.stmt)]


@pytest.mark.parametrize(
    ("path", "name", "expected"),
    [
        ("src/net.py", "build", False),
        ("src/net.py", None, False),
        ("src/net.py", "test_build", True),
        ("tests/test_net.py", "build", True),
        ("tests/test_net.py", None, True),
        ("net_test.py", "setUp", True),
        ("tests/conftest.py", "key", True),
        ("tests/helpers.py", "key", False),
        ("latest.py", "build", False),
        ("test_data/net.py", "build", False),
    ],
)
def test_what_belongs_to_tests(path, name, expected):
    func = types.SimpleNamespace(name=name) if name is not None else None
    module = types.SimpleNamespace(source=types.SimpleNamespace(path=path))
    assert in_test(types.SimpleNamespace(func=func, module=module)) is expected
