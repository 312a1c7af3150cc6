"""What is written in a roundabout way is read as what it means, and nothing else is; its text is not edited."""

import ast

import pytest

from nnx_lint.checking import Checker
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile
from nnx_lint.syntax.parsing import parse
from nnx_lint.syntax.plain import rewrites

PLAIN = {
    'y = getattr(x, "name")': "y = x.name",
    'y = getattr(getattr(x, "a"), "b")': 'y = getattr(x.a, "b")',
    'setattr(x.part, "name", f(1))': "x.part.name = f(1)",
    "y = f(*(a, b), c)": "y = f(a, b, c)",
    'y = f(*[a], **{"b": 1}, **dict(c=2))': "y = f(a, b=1, c=2)",
    'y = f(*(g(**{"a": getattr(x, "name")}),))': "y = f(g(a=x.name))",
    """y = f'é é {getattr(x, "name")}'""": "y = f'é é {x.name}'",
}

AS_IT_IS = (
    'y = getattr(x, "name", None)',
    "y = getattr(x, name)",
    'y = getattr(x, "__name")',
    'y = getattr(x, "no name")',
    'y = setattr(x, "name", 1)',
    "y = f(*a, **b)",
    'y = f(**{"a": 1}, a=2)',
    'y = f(**{"a b": 1})',
    'y = f(**{**a, "b": 1})',
    "y = a * (b + c) ** (d, e)[0]",
    'getattr = other\ny = getattr(x, "name")',
    'def f(getattr):\n    return getattr(x, "name")',
    "def f(dict):\n    return g(**dict(a=1))",
)


def _read(text: str) -> str:
    return ast.unparse(parse(text).tree)


@pytest.mark.parametrize("text", PLAIN)
def test_read_as_what_it_means(text: str) -> None:
    assert _read(text) == ast.unparse(ast.parse(PLAIN[text]))
    assert rewrites(text)


@pytest.mark.parametrize("text", AS_IT_IS)
def test_read_as_it_is(text: str) -> None:
    assert _read(text) == ast.unparse(ast.parse(text))
    assert rewrites(text) == ()


def test_covers_the_text_that_it_stands_for() -> None:
    source = SourceFile.from_text('é = getattr(x, "name")\nsetattr(é, "name", 1)\n')
    first, second = source.tree.body
    assert isinstance(first, ast.Assign)
    assert source.segment(first.value) == 'getattr(x, "name")'
    assert source.segment(second) == 'setattr(é, "name", 1)'


def test_a_part_reads_as_in_the_whole() -> None:
    """A server parses what was edited alone: what stands elsewhere in the text decides nothing."""
    part = 'y = getattr(f(0), "name")\n'
    assert _read(part) == _read(part + 'z = getattr(x, "name")\n').partition("\n")[0]


MERGED = """from flax import nnx

model = nnx.Linear(2, 1, rngs=nnx.Rngs(0))
graphdef, state = nnx.split(model)
other = nnx.merge({given})
other.kernel[...] = 0.0
print(model.kernel)
"""


@pytest.mark.parametrize(("given", "fixed"), [("graphdef, state", True), ("*(graphdef, state)", False)])
def test_a_fix_leaves_it_alone(given: str, fixed: bool) -> None:
    """An argument is added to those that stand there."""
    source = SourceFile.from_text(MERGED.format(given=given), "a.py")
    (finding,) = Checker(Options.everywhere(selected=lambda rule: rule.default), roots=[]).check({"a.py": source})
    assert finding.rule.name == "aliased-merge"
    assert (finding.fix is not None) == fixed
