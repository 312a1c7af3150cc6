"""Objects of `types.SimpleNamespace`: what is put into one is what comes out; and States that each round takes anew."""

import textwrap

import pytest

from nnx_lint import engine
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile

HEAD = """
import types
import jax.numpy as jnp
from flax import nnx

rngs = nnx.Rngs(0)
x = jnp.ones((1, 5))
"""


def found(text: str) -> list[str]:
    source = SourceFile.from_text(HEAD + textwrap.dedent(text), "program.py")
    assert source.error is None
    options = Options.everywhere(selected=lambda rule: rule.default)
    return [item.rule.name for item in engine.check([source], roots=[], options=options)]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("cfg = types.SimpleNamespace(dim=4)\nnnx.Linear(cfg.dim, 3, rngs=rngs)(x)", ["layer-input-shape"]),
        ("cfg = types.SimpleNamespace()\ncfg.dim = 4\nnnx.Linear(cfg.dim, 3, rngs=rngs)(x)", ["layer-input-shape"]),
        ("cfg = types.SimpleNamespace(dim=4)\nvars(cfg).update(dim=5)\nnnx.Linear(cfg.dim, 3, rngs=rngs)(x)", []),
        ("cfg = types.SimpleNamespace(dim=4)\nsetattr(cfg, 'dim', 5)\nnnx.Linear(cfg.dim, 3, rngs=rngs)(x)", []),
        ("cfg = types.SimpleNamespace(**options)\nnnx.Linear(cfg.dim, 3, rngs=rngs)(x)", []),
        ("cfg = types.SimpleNamespace()\ncfg.arrays = [x]\ncfg.arrays.append(x)\ncfg.nothing", ["missing-attribute"]),
    ],
)
def test_a_namespace_holds_what_it_is_given(text, rules):
    assert found(text) == rules


RESTORED = """
    for _ in range(3):
        model = nnx.Linear(2, 1, rngs=rngs)
        nnx.update(model, nnx.state(model))
        {taken}
        {changed}
        nnx.update(model, state)
"""


@pytest.mark.parametrize(
    ("taken", "changed", "rules"),
    [
        ("state = nnx.state(model)", "pass", []),
        ("state = nnx.state(model)", "model.kernel[...] *= 2", ["aliased-snapshot"]),
        ("model.kernel[...] *= 2", "state = nnx.state(model)", []),
    ],
)
def test_a_state_that_a_round_takes_is_as_old_as_that_round(taken, changed, rules):
    assert found(textwrap.dedent(RESTORED).format(taken=taken, changed=changed)) == rules
