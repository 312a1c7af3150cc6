"""What stands around a place of a text."""

import ast

import pytest

from nnx_lint.rules.program import ancestors
from nnx_lint.source import SourceFile
from nnx_lint.syntax.places import standing_in
from nnx_lint.syntax.walk import children, walk
from repository import ROOT

AWKWARD = '''
@first(lambda: 0)
@second
class A(B, metaclass=C):
    x: int = 1; y = 2

    def f(self, a=1, *, b: str = "x") -> None:
        try: a; b
        except (E, F) as e:
            with a as c, b: pass
        else:
            while a: break
            else: b
        finally:
            if a: b
            elif c: d
            else: e
        return f"{a:{b}} {'x' if c else f'{d}'}"

match p:
    case [1, *rest] if rest: q
    case {"k": v} | (v): (lambda z: z)(v)
    case _:
        for i in [j for j in k if j]: i
text = (f"""
{one}
  {two}""" f"{three}")
'''


class _Module:
    """As much of a module as the question needs."""

    def __init__(self, text: str) -> None:
        self.source = SourceFile("m.py", text, "utf-8")


def _check(text: str) -> None:
    module = _Module(text)
    tree = module.source.tree
    around = {node: parent for parent in walk(tree) for node in children(parent)}
    for node in walk(tree):
        if not hasattr(node, "lineno") and not children(node):
            continue  # the parameters of a function that has none are nowhere
        expected, inner = [], node
        while inner in around:
            inner = around[inner]
            expected.append(inner)
        assert list(ancestors(module, node)) == expected, ast.dump(node)  # type: ignore[arg-type]


def test_what_is_around_each_node() -> None:
    _check(AWKWARD)


@pytest.mark.parametrize("path", ["analyzer/nnx_lint/rules/program.py", "tests/support/hostile.py"])
def test_what_is_around_each_node_of_a_file(path: str) -> None:
    _check((ROOT / path).read_text(encoding="utf-8"))


def test_nothing_is_around_the_beginning() -> None:
    assert list(standing_in(ast.parse("\n\nx = 1"), 1, 0)) == []
