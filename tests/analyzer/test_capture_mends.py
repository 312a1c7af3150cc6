"""Captures that become parameters: where the fix is made, where only on request, and where it would be a guess."""

import textwrap

import pytest

from nnx_lint.checking import Checker
from nnx_lint.fixes import SAFE, SAFE_AND_UNSAFE, fix_all
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile

HEAD = """
import functools
import jax
import jax.numpy as jnp
from flax import nnx

x = jnp.ones((2, 4))
"""
NAMES = frozenset({"captured-mutation", "captured-stateful-call", "transformed-instance", "same-seed-objects"})
CHOSEN = Options.everywhere(selected=lambda rule: rule.name in NAMES)


def mended(program: str, allowed: frozenset[object] = SAFE_AND_UNSAFE) -> str:
    """What fixing makes of a program that has a finding."""
    source = SourceFile.from_text(HEAD + textwrap.dedent(program), "program.py")
    checker = Checker(CHOSEN, roots=[])
    assert checker.check({"program.py": source})
    return fix_all({"program.py": source}, checker.check, allowed).sources["program.py"].text.removeprefix(HEAD)


NORM = "norm = nnx.BatchNorm(4, rngs=nnx.Rngs(0))\n"
HOLDING = "class Net(nnx.Module):\n    def __init__(self): self.norm = norm\nnet = Net()\n"

MENDED = {
    "a lambda that is called at once": ("nnx.jit(lambda x: norm(x))(x)", "nnx.jit(lambda norm, x: norm(x))(norm, x)"),
    "a lambda without parameters": ("f = nnx.jit(lambda: norm(x))\nf()", "f = nnx.jit(lambda norm: norm(x))\nf(norm)"),
    "an option that goes by name": (
        "@nnx.jit(static_argnames=('n',))\ndef f(x, n): return norm(x)\nf(x, n=1)",
        "@nnx.jit(static_argnames=('n',))\ndef f(norm, x, n): return norm(x)\nf(norm, x, n=1)",
    ),
    "a function that is compiled later": (
        "def f(x): return norm(x)\nstep = jax.jit(f)\nstep(x)",
        "def f(norm, x): return norm(x)\nstep = nnx.jit(f)\nstep(norm, x)",
    ),
    "lines of parameters": (
        "@nnx.jit\ndef f(\n    x,  # rows\n):\n    return norm(x)\nf(\n    x,\n)",
        "@nnx.jit\ndef f(\n    norm, x,  # rows\n):\n    return norm(x)\nf(\n    norm, x,\n)",
    ),
    "an attribute of what it captures": (
        HOLDING + "@nnx.jit\ndef f(x): return net.norm(x)\nf(x)",
        HOLDING + "@nnx.jit\ndef f(net, x): return net.norm(x)\nf(net, x)",
    ),
    "an instance": ("f = nnx.jit(norm)\nf(x)\nf(x)", "f = nnx.jit(nnx.BatchNorm.__call__)\nf(norm, x)\nf(norm, x)"),
}


@pytest.mark.parametrize(("program", "fixed"), MENDED.values(), ids=MENDED)
def test_what_is_captured_becomes_a_parameter(program, fixed):
    assert mended(NORM + program, SAFE) == NORM + fixed


def test_a_function_that_another_file_may_call_is_changed_on_request_only():
    program = NORM + "@nnx.jit\ndef f(x): return norm(x)\ndef main(x): return f(x)\nmain(x)"

    assert mended(program, SAFE) == program
    assert "def f(norm, x)" in mended(program)
    assert "return f(norm, x)" in mended(program)


GUESSES = {
    "the name means something else at a call": ("@nnx.jit\ndef f(x): return norm(x)\nf(x)\ndef g(norm): return f(x)"),
    "the function is handed on": "@nnx.jit\ndef f(x): return norm(x)\nf(x)\ncallbacks = [f]",
    "an option counts parameters": "@nnx.jit(static_argnums=(1,))\ndef f(x, n): return norm(x)\nf(x, 1)",
    "another decorator": "@functools.cache\n@nnx.jit\ndef f(x): return norm(x)\nf(x)",
    "another transform": "@jax.vmap\ndef f(x): return norm(x)\nf(x[None])",
    "it is called by what an iterable gives": "@nnx.jit\ndef f(x): return norm(x)\nf(x)\nf(x for x in [x])",
    "two definitions": "@nnx.jit\ndef f(x): return norm(x)\nf(x)\ndef f(x): return x",
    "what holds it is no object of NNX": (
        "class Trainer:\n    def __init__(self): self.norm = nnx.BatchNorm(4, rngs=nnx.Rngs(0))\n"
        "    def run(self, x):\n        @nnx.jit\n        def f(x): return self.norm(x)\n        return f(x)\n"
        "Trainer().run(x)"
    ),
    "an instance whose class has no name here": (
        "def make():\n    class Net(nnx.BatchNorm): pass\n    return Net(4, rngs=nnx.Rngs(0))\nnnx.jit(make())(x)"
    ),
}


@pytest.mark.parametrize("program", GUESSES.values(), ids=GUESSES)
def test_where_the_fix_would_be_a_guess_there_is_none(program):
    assert mended(NORM + program) == NORM + program


SEEDS = {
    "a name that is taken": (
        "rngs = nnx.Rngs(1)\na = nnx.Linear(2, 2, rngs=nnx.Rngs(0))\nb = nnx.Linear(2, 2, rngs=nnx.Rngs(0))",
        False,
    ),
    "a parameter of the name elsewhere": (
        "def f(rngs): return rngs()\na = nnx.Linear(2, 2, rngs=nnx.Rngs(0))\nb = nnx.Linear(2, 2, rngs=nnx.Rngs(0))",
        True,
    ),
    "a function that reads the name": (
        "def f(): return rngs()\na = nnx.Linear(2, 2, rngs=nnx.Rngs(0))\nb = nnx.Linear(2, 2, rngs=nnx.Rngs(0))",
        False,
    ),
}


@pytest.mark.parametrize(("program", "fixed"), SEEDS.values(), ids=SEEDS)
def test_streams_get_a_name_that_is_free(program, fixed):
    assert ("rngs = nnx.Rngs(0)\na = nnx.Linear(2, 2, rngs=rngs)" in mended(program)) is fixed
