"""Twice the text is about twice the work, for whatever a text repeats, and an edit is as much work in any text.

What a rule reads over and over, a whole function for each call in it, costs nothing in a program of common size and
minutes in a generated one. What it reads of the whole file for one call makes somebody wait who types in a long one.
Work is counted in lines of Python, which are the same on every machine.
"""

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from nnx_lint.checking import Checker
from nnx_lint.ide.analysis import Analysis
from nnx_lint.ide.settings import Settings
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile

EVERY_RULE = Options.everywhere(selected=lambda rule: True)

PROGRAM = """\
from functools import partial
from flax import nnx
import jax
import jax.numpy as jnp
import optax

class M(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.layer = nnx.Linear(3, 3, rngs=rngs)
        self.count = 0

    def __call__(self, x, k: int):
        if k < 0:
            y = self.layer(x)
{method}        return y

def f(x, m: M, o: nnx.Optimizer, key, rngs: nnx.Rngs):
    opened = 1
{body}    return x

{top}"""

METHODS = {"elif": "        elif k == {}:\n            y = self.layer(x)\n            self.count = {}\n"}
"""What a method repeats, with its number."""

BODIES = {
    "calls": "x = m(x, {})",
    "names": "v{} = m(x, {})",
    "layers": "m{} = M(nnx.Rngs({}))",
    "seeds": "m{} = M(nnx.Rngs({}))(x, 0)",
    "states": "s{} = nnx.state(m)",
    "compiled": "g{} = nnx.jit(lambda a: m(a, 0))",
    "one split and merge": "g, s = nnx.split(m); m = nnx.merge(g, s)",
    "splits and merges": "g{0}, s{0} = nnx.split(m); m{0} = nnx.merge(g{0}, s{0})",
    "updates": "nnx.update(m, nnx.state(m))",
    "clones": "m{} = nnx.clone(m)",
    "one key": "key, sub = jax.random.split(key)",
    "keys": "key, sub{0} = jax.random.split(key); x = jax.random.normal(sub{0}, (2,))",
    "maps": "x = jax.tree.map(lambda a: a + {}, x)",
    "maps without readers": "x{} = jax.tree.map(lambda a: a + {}, x)",
    "gradients": "l{0}, g{0} = nnx.value_and_grad(lambda m: m(x, 0).sum())(m); o.update(m, g{0})",
    "optimizers": "o{} = nnx.Optimizer(m, optax.adam(1e-3), wrt=nnx.Param)",
    "streams": "k{} = rngs.params()",
    "writes": "m.layer.kernel[...] = m.layer.kernel[...] + {}",
    "copies of values": "w{0} = m.layer.kernel[...]; w{0} += 1; x = x + w{0}",
    "partials": "p{} = partial(m, x)",
    "scans": "c, y{} = jax.lax.scan(lambda c, x: (c, x + {}), 0, x)",
    "maps of functions": "x = nnx.vmap(m, in_axes=(0, None))(x, {})",
    "loops": "for i in range(3): x = m(x, i)",
    "attempts": "try: x = m(x, 0)\n    except ValueError: x = {}",
    "returns": "if x is {}: return m(x, 0), {}",
    "comprehensions": "a{} = [m(y, 0) for y in [z + {} for z in x] if y]",
    "f-strings": "a{} = f'{{x}} {{m.layer.kernel}} {}'",
    "entries": "m.layer.table[{}] = nnx.Param({})",
    "jits inside": "@nnx.jit\n    def g{}(m): return m(x, 0)",
}
"""The same of a function."""

TOPS = {
    "functions": "def f{}(m: M, x): return m(x, {})",
    "jitted functions": "@nnx.jit\ndef f{}(m: M, x):\n    m.layer.kernel[...] = x\n    return m(x, 0)",
    "classes": "class X{}: pass\nclass C{}(X{}, M): pass",
    "losses": "def loss{0}(m): return m(1, 0).sum()\ndef step{0}(m, o): o.update(m, nnx.grad(loss{0})(m))",
    "globals": "V{0} = nnx.Param({0})\ndef g{0}(): return V{0} + 1",
    "imports": "from jax.numpy import sin as s{}",
    "variables": "v{0} = nnx.Variable({0}); v{0}[...] = v{0}[...] + 1",
    "instances": "m{} = M(nnx.Rngs(0))",
    "dicts": "d{} = dict(a={}, b=nnx.Param({}))",
}
"""The same of a module."""


def _text(name: str, count: int) -> str:
    def repeated(form: str, indent: str) -> str:
        return "".join(f"{indent}{form.format(*[number] * 4)}\n" for number in range(count)) if form else ""

    method = METHODS.get(name, "")
    return PROGRAM.format(
        method="".join(method.format(number, number) for number in range(count)),
        body=repeated(BODIES.get(name, ""), "    "),
        top=repeated(TOPS.get(name, ""), ""),
    )


def _work(text: str) -> int:
    """How many lines of Python the check of a program runs."""
    source = SourceFile("p.py", text, "utf-8")
    checker = Checker(EVERY_RULE, [])
    return _lines(lambda: checker.check({"p.py": source}))


def _lines(run: Callable[[], object]) -> int:
    """How many lines of Python something runs."""
    lines = 0

    def count(_frame: FrameType, event: str, _argument: object) -> Any:  # itself
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    gc.collect()  # what other tests have left runs lines when it goes
    gc.disable()
    sys.settrace(count)
    try:
        run()
    finally:
        sys.settrace(before)
        gc.unfreeze()
        gc.enable()
    return lines


@pytest.mark.parametrize("name", [*METHODS, *BODIES, *TOPS])
def test_twice_the_text_is_about_twice_the_work(name: str) -> None:
    assert SourceFile("p.py", _text(name, 3), "utf-8").error is None
    _work(_text(name, 2))  # what is read once for all
    base, once, twice = (_work(_text(name, count)) for count in (10, 80, 150))
    assert twice - once < 1.5 * (once - base)


PART = """
class Attention{0}(nnx.Module):
    def __init__(self, width: int, heads: int, *, rngs: nnx.Rngs):
        self.heads = heads
        self.query = nnx.Linear(width, width, rngs=rngs)
        self.key = nnx.Linear(width, width, rngs=rngs)
        self.out = nnx.Linear(width, width, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)

    def __call__(self, x, mask=None):
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        query, key = (layer(x).reshape(shape) for layer in (self.query, self.key))
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / jnp.sqrt(width)
        if mask is not None:
            scores = jnp.where(mask, scores, -1e9)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), query)
        return self.out(self.drop(mixed.reshape(batch, length, width)))


class Model{0}(nnx.Module):
    def __init__(self, depth: int, *, rngs: nnx.Rngs):
        self.embed = nnx.Embed(100, 8, rngs=rngs)
        self.blocks = nnx.List([Attention{0}(8, 4, rngs=rngs) for _ in range(depth)])
        self.calls = nnx.BatchStat(jnp.zeros(()))

    def __call__(self, tokens):
        self.calls[...] += 1
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return x


def loss{0}(model: Model{0}, tokens, key):
    noise = jax.random.normal(key, tokens.shape)
    return (model(tokens) + noise[..., None]).mean()


@nnx.jit
def train_step{0}(model: Model{0}, optimizer: nnx.Optimizer, tokens, key):
    value, grads = nnx.value_and_grad(loss{0})(model, tokens, key)
    optimizer.update(model, grads)
    return value


def train{0}(steps: int, key: jax.Array):
    model = Model{0}(2, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    for step in range(steps):
        key, sub = jax.random.split(key)
        value = train_step{0}(model, optimizer, jnp.ones((8, 16), jnp.int32), sub)
        print(step, value)
    graphdef, params, rest = nnx.split(model, nnx.Param, ...)
    return nnx.merge(graphdef, params, rest)

"""
"""What a file has several of."""

PLACES = {
    "a constructor": "        self.heads = heads\n",
    "a forward pass": "        batch, length, width = x.shape\n",
    "a loss": "    noise = ",
    "a step": "    optimizer.update(",
    "a loop": "        key, sub = ",
}
"""Before what something is typed, in the first of them."""


@pytest.mark.parametrize("place", PLACES)
def test_an_edit_is_as_much_work_in_a_long_text_as_in_a_short_one(place: str, tmp_path: Path) -> None:
    mark = PLACES[place]
    indent = " " * (len(mark) - len(mark.lstrip()))
    path = str(tmp_path / "p.py")

    def edit(parts: int) -> int:
        """The work of an edit in a text of so many parts; the one before it made ready what lasts."""
        analysis = Analysis(str(tmp_path), Settings())
        text = PROGRAM[: PROGRAM.index("class ")] + "".join(PART.format(number) for number in range(parts))
        before, mark_, after = text.partition(mark)

        def answer(typed: str) -> None:
            analysis.edit(SourceFile.from_text(f"{before}{typed}{mark_}{after}", path))
            assert analysis.findings(path) == []

        answer("")
        answer(f"{indent}scale = 1\n")
        return _lines(lambda: answer(f"{indent}scale = 12\n"))

    assert edit(20) < 1.25 * edit(4)
