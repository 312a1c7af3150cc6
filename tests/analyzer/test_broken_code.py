"""What the analyzer says about the sound part of a broken file: all that it would say anyway, and nothing that the
broken part could make false.
"""

import pytest

from nnx_lint.checking import Checker
from nnx_lint.fixes import fix_all
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile

EVERY_RULE = Options.everywhere(selected=lambda rule: True)

HEAD = "import jax\nimport jax.numpy as jnp\nfrom flax import nnx\n\n"


def check(program: str) -> list[tuple[str, int]]:
    source = SourceFile.from_text(HEAD + program, "a.py")
    findings = Checker(EVERY_RULE, []).check({"a.py": source})
    return [(found.rule.name, source.location(found.span.start)[0] - HEAD.count("\n")) for found in findings]


LAYERS = """
class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        {}
        self.layers = [nnx.Linear(2, 3, rngs=rngs)]
"""


@pytest.mark.parametrize(
    "wrong",
    [
        "self.x =",
        "self.x = nnx.Linear(2, 3",
        "self.",
        "x = 'open",
        "if x",
        "for i in :\n            self.y = 1",
        "rngs.",
        "return (",
        "import ",
        "else:",
        "nnx.",
    ],
)
def test_the_rest_of_a_method_is_checked(wrong: str) -> None:
    assert ("data-in-static-attribute", 5 + wrong.count("\n")) in check(LAYERS.format(wrong))


@pytest.mark.parametrize(
    "wrong",
    ["def half(self, x", "def half(self):", "@property\n    def half(self:\n        return 1", "async def f("],
)
def test_a_half_typed_method_does_not_hide_its_class(wrong: str) -> None:
    assert [name for name, _ in check(LAYERS.format("pass") + f"\n    {wrong}\n")] == ["data-in-static-attribute"]


def test_a_missing_colon_hides_nothing() -> None:
    assert check(LAYERS.format("pass").replace("):", ")")) == [("data-in-static-attribute", 5)]


SPLIT = """
class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.weight = nnx.Param(jnp.ones(3))
        {wrong}
    {method}

def split(rngs: nnx.Rngs):
    net = Net(rngs)
    {use}
    return nnx.state(net, 'weight')
"""


@pytest.mark.parametrize(
    ("wrong", "method", "use"),
    [
        ("self.mean = nnx.Param(nnx.", "", "pass"),
        ("self.", "", "pass"),
        ("setattr(self, 'mean', ", "", "pass"),
        ("if rngs:\n            self.mean = ", "", "pass"),
        ("pass", "def __init__(self, rngs", "pass"),
        ("pass", "mean = nnx.", "pass"),
        ("pass", "", "net.mean = nnx."),
        ("pass", "", "change(net"),
        ("pass", "", "net = ("),
    ],
)
def test_what_the_broken_part_may_add_is_reckoned_with(wrong: str, method: str, use: str) -> None:
    assert check(SPLIT.format(wrong="pass", method="", use="pass"))
    assert check(SPLIT.format(wrong=wrong, method=method, use=use)) == []


@pytest.mark.parametrize(
    "program",
    [
        "class B(nnx.Module, :\n    pass\n\nclass Net(B):\n    def __init__(self):\n        self.x = [jnp.ones(3)]\n",
        "class Net(nnx.Module:\n    def __init__(self):\n        self.x = [jnp.ones(3)]\n",
        "@nnx.\nclass Net(nnx.Module):\n    def __init__(self):\n        self.x = [jnp.ones(3)]\n",
        "nnx = (\nclass Net(nnx.Module):\n    def __init__(self):\n        self.x = [jnp.ones(3)]\n",
        "class Net(nnx.Module):\n    __setattr__ = \n    def __init__(self):\n        self.x = [jnp.ones(3)]\n",
        "class Net(nnx.Module):\n    def __setattr__(self,\n    def __init__(self):\n        self.x = [jnp.ones(3)]\n",
        "class Net(nnx.Module):\n    x: nnx.\n    def __init__(self):\n        self.x = [jnp.ones(3)]\n",
    ],
)
def test_what_a_broken_part_decides_is_unknown(program: str) -> None:
    assert check(program) == []


def test_a_function_without_a_body_may_return_anything() -> None:
    program = "class Net(nnx.Module):\n    def __init__(self):\n        self.x = make()\n\ndef make():\n"
    assert check(program) == []


def test_broken_files_are_not_fixed() -> None:
    source = SourceFile.from_text(HEAD + LAYERS.format("x = ("), "a.py")
    checker = Checker(EVERY_RULE, [])
    outcome = fix_all({"a.py": source}, checker.check)
    assert outcome.sources["a.py"].text == source.text
    assert [found.fix for found in outcome.remaining] == [None]


def test_errors_are_problems_of_the_run_and_notes_are_not() -> None:
    checker = Checker(EVERY_RULE, [])
    text = "x = (\n" * 7 + "try: pass\nexcept A, B: pass\n"
    checker.check({"a.py": SourceFile.from_text(text, "a.py")})
    assert checker.problems[0] == "a.py:1:5: syntax error: '(' was never closed"
    assert checker.problems[-1] == "a.py: 2 more syntax errors"
    assert len(checker.problems) == 6
