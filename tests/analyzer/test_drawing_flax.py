"""``nnx-lint graph`` against flax: what it draws is what an instance holds."""

from collections.abc import Iterator

import pytest

from nnx_lint.drawing import draw
from nnx_lint.drawing.structure import Kind, Node

jnp = pytest.importorskip("jax.numpy")
nnx = pytest.importorskip("flax.nnx")

Held = dict[tuple[object, ...], tuple[str, object, object]]
"""Type, shape and dtype of Variables by their paths."""


def held_by(instance) -> Held:
    """What flax says."""
    return {
        tuple(path): (type(value).__name__, tuple(value.shape), str(value.dtype))
        for path, value in nnx.iter_graph(instance)
        if isinstance(value, nnx.Variable)
    }


def variables(node: Node, path: tuple[object, ...] = ()) -> Iterator[tuple[tuple[object, ...], Node]]:
    """The Variables of a drawing; those of equal elements, which are drawn once, at all of their places."""
    if node.kind is Kind.VARIABLE:
        yield path, node
    for child in node.children:
        last = child.path[-1]
        for place in range(last, last + child.count) if isinstance(last, int) else (last,):
            yield from variables(child, (*path, place))


def drawn_of(root: Node) -> Held:
    """What the drawing says."""
    return {path: (node.type, node.form.shape, node.form.dtype) for path, node in variables(root)}


def assert_totals(root: Node, instance) -> None:
    parameters = [value for _, value in nnx.iter_graph(instance) if isinstance(value, nnx.Param)]
    assert root.total.parameters == sum(value.size for value in parameters)
    assert root.total.bytes == sum(value.size * value.dtype.itemsize for value in parameters)


LAYERS = (
    "nnx.Linear(2, 3, rngs=rngs)",
    "nnx.Linear(2, 3, use_bias=False, param_dtype=jnp.bfloat16, rngs=rngs)",
    "nnx.LinearGeneral(2, (3, 4), rngs=rngs)",
    "nnx.LinearGeneral((2, 5), (3, 4), axis=(-2, -1), batch_axis={0: 7}, rngs=rngs)",
    "nnx.Einsum('ij,jk->ik', (2, 3), (3,), rngs=rngs)",
    "nnx.Conv(4, 6, 3, feature_group_count=2, rngs=rngs)",
    "nnx.ConvTranspose(2, 3, (3, 5), rngs=rngs)",
    "nnx.Embed(5, 3, rngs=rngs)",
    "nnx.BatchNorm(3, param_dtype=jnp.bfloat16, rngs=rngs)",
    "nnx.LayerNorm(3, use_bias=False, rngs=rngs)",
    "nnx.RMSNorm(3, rngs=rngs)",
    "nnx.GroupNorm(4, num_groups=2, rngs=rngs)",
    "nnx.InstanceNorm(4, rngs=rngs)",
    "nnx.Dropout(0.1, rngs=rngs)",
    "nnx.MultiHeadAttention(2, 4, 8, 6, normalize_qk=True, rngs=rngs)",
    "nnx.MultiHeadAttention(4, 8, num_kv_heads=2, in_kv_features=5, rngs=rngs)",
    "nnx.LSTMCell(2, 3, rngs=rngs)",
    "nnx.OptimizedLSTMCell(2, 3, rngs=rngs)",
    "nnx.GRUCell(2, 3, rngs=rngs)",
    "nnx.SimpleCell(2, 3, rngs=rngs)",
    "nnx.LoRA(2, 1, 3, rngs=rngs)",
    "nnx.LoRALinear(2, 3, lora_rank=1, rngs=rngs)",
    "nnx.PReLU()",
    "nnx.metrics.Average()",
    "nnx.metrics.Welford()",
)
"""Built-in layers, and constructor arguments that matter to what they hold."""


@pytest.mark.parametrize("layer", LAYERS)
def test_built_in_layers_hold_what_flax_makes(layer, tmp_path):
    made = nnx.eval_shape(lambda: eval(layer, {"nnx": nnx, "jnp": jnp, "rngs": nnx.Rngs(0)}))
    path = tmp_path / "program.py"
    path.write_text(
        "from flax import nnx\nimport jax.numpy as jnp\n"
        f"class A(nnx.Module):\n    def __init__(self, rngs: nnx.Rngs):\n        self.layer = {layer}\n"
    )
    root = draw(str(path), "A")

    assert drawn_of(root) == {("layer", *place): facts for place, facts in held_by(made).items()}
    assert root.children[0].note == ""
    assert_totals(root, made)


NETWORK = """\
import jax, jax.numpy as jnp
from flax import nnx
import dataclasses, math, functools
@dataclasses.dataclass
class Config:
    width: int = 16
    depth: int = 3
    heads: int = 4
    ratio: float = 4.0
    stages: tuple = (8, 16, 32)
class Mlp(nnx.Module):
    def __init__(self, dim, ratio, *, rngs, act=nnx.gelu, drop=0.0):
        hidden = int(dim * ratio)
        self.fc1 = nnx.Linear(dim, hidden, rngs=rngs)
        self.fc2 = nnx.Linear(hidden, dim, rngs=rngs)
        self.act = act
        self.drop = nnx.Dropout(drop, rngs=rngs) if drop > 0 else None
class Attention(nnx.Module):
    def __init__(self, dim, heads, *, rngs):
        assert dim % heads == 0
        self.heads = heads
        self.head_dim = dim // heads
        self.qkv = nnx.LinearGeneral(dim, (3, heads, self.head_dim), use_bias=False, rngs=rngs)
        self.out = nnx.LinearGeneral((heads, self.head_dim), dim, axis=(-2, -1), rngs=rngs)
class Block(nnx.Module):
    def __init__(self, config, index, *, rngs):
        self.norm1 = nnx.LayerNorm(config.width, rngs=rngs)
        self.attn = Attention(config.width, config.heads, rngs=rngs)
        if index % 2 == 0:
            self.norm2 = nnx.RMSNorm(config.width, rngs=rngs)
            self.mlp = Mlp(config.width, config.ratio, rngs=rngs, drop=0.1)
        self.gamma = nnx.Param(jnp.full((config.width,), 1e-5))
class Stage(nnx.Module):
    def __init__(self, i, o, n, rngs):
        self.down = nnx.Conv(i, o, kernel_size=(2, 2), strides=(2, 2), rngs=rngs)
        self.layers = nnx.List([nnx.Conv(o, o, kernel_size=(3, 3), feature_group_count=o, rngs=rngs) for _ in range(n)])
        self.bn = nnx.BatchNorm(o, rngs=rngs)
class Net(nnx.Module):
    def __init__(self, config: Config, *, rngs: nnx.Rngs):
        self.config = config
        self.blocks = nnx.List([Block(config, i, rngs=rngs) for i in range(config.depth)])
        stages = []
        prev = 3
        for i, width in enumerate(config.stages):
            stages.append(Stage(prev, width, i + 1, rngs))
            prev = width
        self.stages = nnx.List(stages)
        self.head = nnx.Sequential(nnx.LayerNorm(prev, rngs=rngs), nnx.Linear(prev, 10, rngs=rngs))
        self.tied = self.blocks[0].norm1
        self.pos = nnx.Param(jax.random.normal(rngs.params(), (1, 14 * 14, config.width)) * 0.02)
        for name, size in {"a": 2, "b": 3}.items():
            setattr(self, f"head_{name}", nnx.Linear(config.width, size, rngs=rngs))
        self.extra = nnx.Dict(x=nnx.Linear(2, 2, rngs=rngs), y=nnx.Param(jnp.zeros(())))
        make = functools.partial(nnx.Conv, kernel_size=(1, 1), rngs=rngs)
        self.point = make(4, 6)
"""


def test_a_network_holds_what_flax_makes(tmp_path):
    namespace = {"__name__": "network"}
    exec(NETWORK, namespace)
    made = nnx.eval_shape(lambda: namespace["Net"](namespace["Config"](), rngs=nnx.Rngs(0)))
    path = tmp_path / "network.py"
    path.write_text(NETWORK, encoding="utf-8")
    root = draw(str(path), "Net", "(Config())")

    assert drawn_of(root) == held_by(made)
    assert_totals(root, made)
