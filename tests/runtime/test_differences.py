"""`docs/differences.md` says where nnxkit differs from flax on purpose; each test shows one entry on both libraries.

A test names its entry by the words that begin it, so neither the document nor a library can change alone.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import nnxkit
from repository import ROOT

flax_nnx = pytest.importorskip("flax.nnx")

DOCUMENT = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
SECTIONS = (
    *("Attributes and classes", "Containers", "Variables", "Modules", "Graph functions", "Transforms"),
    *("Layers and training", "Filters"),
    *("State", "Contexts", "Random numbers", "Modules of the package", "Printing", "Errors"),
)
RELIED_ON = (
    *("`pop` removes every reference", "`merge` goes by path", "`update` writes only to places that exist"),
    *("`update` keeps shapes", "Mixed keys", "Static values compare by type", "`iter_graph`", "Order and reach"),
)
"""Entries that the differential tests of graphs rely on."""

ENTRIES: dict[str, Callable[[Any], Any]] = {}


def entry(words: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Registers what a program observes on a library; the two libraries differ."""

    def register(observe: Callable[[Any], Any]) -> Callable[[Any], Any]:
        ENTRIES[words] = observe
        return observe

    return register


def outcome(observe: Callable[[Any], Any], nnx: Any) -> Any:
    """What the program gives, or the kind of its error."""
    try:
        return observe(nnx)
    except Exception as error:
        return next(kind for kind in type(error).__mro__ if kind.__module__ in ("builtins", "flax.errors"))


def linear(nnx: Any) -> Any:
    return nnx.Linear(2, 1, rngs=nnx.Rngs(0))


@entry("`merge` checks types of Variables")
def _(nnx: Any) -> Any:
    graphdef, state = nnx.split(linear(nnx))
    state["bias"] = nnx.BatchStat(state["bias"][...])
    return type(nnx.merge(graphdef, state).bias).__name__


@entry("`update` keeps shapes")
def _(nnx: Any) -> Any:
    model = linear(nnx)
    nnx.update(model, nnx.State({"bias": nnx.Param(jnp.zeros(7))}))
    return model.bias.shape


@entry("`update` writes only to places that exist")
def _(nnx: Any) -> Any:
    model = linear(nnx)
    nnx.update(model, nnx.State({"new": nnx.Param(jnp.zeros(7))}))
    return hasattr(model, "new")


@entry("`pop` removes every reference")
def _(nnx: Any) -> Any:
    model = nnx.Dict(a=nnx.Param(1))
    model.b = model.a
    nnx.pop(model, nnx.Param)
    return hasattr(model, "b")


@entry("`state` of a Variable")
def _(nnx: Any) -> Any:
    return nnx.state(3)


@entry("A plain container that contains itself")
def _(nnx: Any) -> Any:
    loop: list[Any] = []  # no arrays: JAX says in words of its own that the stack of flax is at its end
    loop.append(loop)
    nnx.split(loop)


@entry("Static values compare by type, too")
def _(nnx: Any) -> Any:
    return nnx.graphdef(nnx.Dict(a=1)) == nnx.graphdef(nnx.Dict(a=True))


@entry("Mixed keys")
def _(nnx: Any) -> Any:
    return len(jax.tree.leaves(nnx.State({"a": 1, 2: 3})))


@entry("Required metadata")
def _(nnx: Any) -> Any:
    variable = nnx.Param(1)
    variable.del_metadata("eager_sharding")
    return variable.has_metadata("eager_sharding")


@entry("Unknown names in `train` and `eval`")
def _(nnx: Any) -> Any:
    nnx.Dict(a=1).eval(debgu=True)
    return "silent"


@entry("Captures are inputs")
def _(nnx: Any) -> Any:
    weight = nnx.Param(jnp.array(1.0))
    weighted = nnx.jit(lambda x: weight * x)
    weighted(2.0)
    weight[...] = jnp.array(3.0)
    return float(weighted(2.0))


@entry("Metadata")
def _(nnx: Any) -> Any:
    weight = nnx.Param(jnp.array(1.0))
    nnx.jit(lambda w: w.set_metadata(unit="m"))(weight)
    return weight.has_metadata("unit")


@entry("Keyword arguments")
def _(nnx: Any) -> Any:
    def scaled(m: Any, *, by: Any) -> Any:
        return m.kernel.sum() * by

    return type(nnx.grad(scaled)(linear(nnx), by=2.0)).__name__


@entry("Bound methods")
def _(nnx: Any) -> Any:
    return nnx.jit(linear(nnx).__call__)(jnp.ones((1, 2))).shape


@entry("Prefixes in a list")
def _(nnx: Any) -> Any:
    return nnx.vmap(jnp.add, in_axes=[0, None])(jnp.ones(3), 1.0).shape


@entry("Static arguments")
def _(nnx: Any) -> Any:
    return float(nnx.jit(lambda m: m.kernel.sum(), static_argnums=0, graph=False)(linear(nnx)))


@entry("Writes in the condition of `while_loop`")
def _(nnx: Any) -> Any:
    def condition(carry: Any) -> Any:
        carry[0].bias[...] += 1
        return carry[1] < 2

    return float(nnx.while_loop(condition, lambda carry: (carry[0], carry[1] + 1), (linear(nnx), 0))[1])


@entry("A value in a class body")
def _(nnx: Any) -> Any:
    class Net(nnx.Module):  # type: ignore[misc]
        size = nnx.static(3)

    return "silent"


@entry("Order and reach")
def _(nnx: Any) -> Any:
    return nnx.state(linear(nnx), nnx.Variable, nnx.Param)[1] == {}


@entry("`Rngs.split` and `Rngs.broadcast` with a mapping")
def _(nnx: Any) -> Any:
    rngs = nnx.Rngs(0, params=1)
    return rngs.split({"params": 2}).default is rngs.default


@entry("Names that begin with `_`")
def _(nnx: Any) -> Any:
    return hasattr(nnx.Rngs(0), "_private")


@entry("`nnx.List`")
def _(nnx: Any) -> Any:
    return nnx.List([1]) == nnx.List([1])


@entry("Deleting under a trace")
def _(nnx: Any) -> Any:
    model = nnx.Dict(a=1)

    def delete(x: Any) -> Any:
        del model.a
        return x

    jax.jit(delete)(1.0)
    return "silent"


@entry("Attributes set in `__new__`")
def _(nnx: Any) -> Any:
    class Net(nnx.Module):  # type: ignore[misc]
        def __new__(cls) -> Any:
            net = super().__new__(cls)
            net.size = 1
            return net

    return Net().size


@entry("`v += x`")
def _(nnx: Any) -> Any:
    variable = original = nnx.Param(1)
    variable += 1
    return original.get_value()


@entry("Comparisons, `divmod`, `bool`, `format`")
def _(nnx: Any) -> Any:
    return f"{nnx.Param(1.5):.3f}"


@entry("Axes metadata")
def _(nnx: Any) -> Any:
    variable = nnx.Param(1, out_sharding=("x",), eager_sharding=False)
    variable.add_axis(0, "y")
    return variable.out_sharding


@entry("`nnx.capture`")
def _(nnx: Any) -> Any:
    class Net(nnx.Module):  # type: ignore[misc]
        def __call__(self, x: Any) -> None:
            self.sow(nnx.Intermediate, "x", x)
            raise LookupError("stop")

    net = Net()
    with pytest.raises(LookupError, match="stop"):
        nnx.capture(net, nnx.Intermediate)(1.0)
    return "__captures__" in vars(net)


@entry("`nnx.Dict`")
def _(nnx: Any) -> Any:
    return isinstance(repr(nnx.Dict(items=1)), str)


@entry("`update` takes a FlatState")
def _(nnx: Any) -> Any:
    model = linear(nnx)
    return nnx.update(model, nnx.to_flat_state(nnx.state(model)))


@entry("`with_rngs`")
def _(nnx: Any) -> Any:
    return nnx.with_rngs(nnx.Rngs(0), split=2).default.key.shape


@entry("Split and merge contexts that were left")
def _(nnx: Any) -> Any:
    with nnx.split_context() as context:
        pass
    context.split(linear(nnx))


@entry("`to_refs`")
def _(nnx: Any) -> Any:
    return hasattr(nnx, "to_refs")


X = jnp.arange(24.0).reshape(2, 3, 4)


def _numbers(x: Any) -> Any:
    return np.asarray(x).round(3).tolist()


@entry("Arguments are checked when a layer is made")
def _(nnx: Any) -> Any:
    nnx.Conv(3, 8, (3,), feature_group_count=2, rngs=nnx.Rngs(0))


@entry("`Einsum(None, ...)`")
def _(nnx: Any) -> Any:
    return nnx.Einsum(None, (4, 5), rngs=nnx.Rngs(0))(X, "bij,jk->bik").shape


@entry("`LinearGeneral` takes its axes in any order")
def _(nnx: Any) -> Any:
    return nnx.LinearGeneral((4, 3), 5, axis=(-1, 1), rngs=nnx.Rngs(0))(X).shape


@entry("`GroupNorm(reduction_axes=...)`")
def _(nnx: Any) -> Any:
    return _numbers(nnx.GroupNorm(4, 2, reduction_axes=2, rngs=nnx.Rngs(0))(jnp.sin(X)))


@entry("Recurrent kernels in half precision")
def _(nnx: Any) -> Any:
    return nnx.GRUCell(3, 4, param_dtype=jnp.bfloat16, rngs=nnx.Rngs(0)).dense_h.kernel.dtype


@entry("`PReLU` of integers")
def _(nnx: Any) -> Any:
    return _numbers(nnx.PReLU(0.5)(jnp.array([-2, 3])))


@entry("`WeightNorm(scale_init=...)`")
def _(nnx: Any) -> Any:
    rngs = nnx.Rngs(0)
    return len(nnx.WeightNorm(nnx.Linear(2, 3, rngs=rngs), scale_init=nnx.initializers.normal(), rngs=rngs).scales)


@entry("`optimizer.update(grads, model)`")
def _(nnx: Any) -> Any:
    model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    grads = jax.tree.map(jnp.ones_like, nnx.state(model, nnx.Param))
    nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param).update(grads, model)
    return "no error"


@entry("`Accuracy` takes labels of any integer type.")
def _(nnx: Any) -> Any:
    accuracy = nnx.metrics.Accuracy()
    accuracy.update(logits=jnp.eye(3), labels=jnp.array([0, 1, 2], jnp.int8))
    return float(accuracy.compute())


@entry("`MultiMetric` refuses names of its methods")
def _(nnx: Any) -> Any:
    nnx.MultiMetric(update=nnx.metrics.Average())
    return "no error"


@entry("`as_abstract` and `abstract_with_sharding` are abstract")
def _(nnx: Any) -> Any:
    return type(nnx.as_abstract(nnx.state(nnx.Linear(2, 3, rngs=nnx.Rngs(0))))["bias"].get_raw_value()).__name__


@entry("`tabulate` has colors in terminals only")
def _(nnx: Any) -> Any:
    return "\x1b[" in nnx.tabulate(nnx.Dropout(0.0), jnp.ones(2))


@pytest.mark.parametrize("words", [*ENTRIES, *RELIED_ON])
def test_is_documented(words: str) -> None:
    assert f"- **{words}" in DOCUMENT or f"- {words}" in DOCUMENT


@pytest.mark.parametrize("words", ENTRIES)
def test_differs(words: str) -> None:
    assert outcome(ENTRIES[words], nnxkit) != outcome(ENTRIES[words], flax_nnx)


def test_sections() -> None:
    headings = tuple(line[3:] for line in DOCUMENT.split("\n") if line.startswith("## "))
    assert headings == SECTIONS
