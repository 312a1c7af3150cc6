"""What stands around a place of a text, and what it costs to ask."""

import ast
import sys

import pytest

from nnx_lint.checking import Checker
from nnx_lint.rules.program import ancestors
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile
from nnx_lint.syntax.places import standing_in
from nnx_lint.syntax.walk import children, walk
from repository import ROOT

EVERY_RULE = Options.everywhere(selected=lambda rule: True)

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


PROGRAM = """\
from flax import nnx
import jax

class M(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.layer = nnx.Linear(3, 3, rngs=rngs)
        self.count = 0

    def __call__(self, x, k: int):
        if k < 0:
            y = self.layer(x)
%s        return y

def f(x, m: M, key):
    opened = 1
%s    return x
"""

REPEATED = {
    "elif": ("        elif k == {}:\n            y = self.layer(x)\n            self.count = {}\n", ""),
    "calls": ("", "    x = m(x, {})\n"),
    "names": ("", "    v{} = m(x, {})\n"),
    "layers": ("", "    m{} = M(nnx.Rngs({}))\n"),
    "seeds": ("", "    m{} = M(nnx.Rngs({}))(x, 0)\n"),
    "states": ("", "    s{} = nnx.state(m)\n"),
    "compiled": ("", "    g{} = nnx.jit(lambda a: m(a, 0))\n"),
}


def _work(name: str, count: int) -> int:
    """How many functions the check of a program calls, with so many repetitions of a statement."""
    method, body = ("".join(part.replace("{}", str(i)) for i in range(count)) for part in REPEATED[name])
    source = SourceFile("p.py", PROGRAM % (method, body), "utf-8")
    calls = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    checker = Checker(EVERY_RULE, [])
    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        checker.check({"p.py": source})
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("name", REPEATED)
def test_twice_the_text_is_about_twice_the_work(name: str) -> None:
    _work(name, 2)  # what is read once for all
    base, once, twice = (_work(name, count) for count in (10, 60, 110))
    assert twice - once < 1.6 * (once - base)
