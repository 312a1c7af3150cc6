"""``nnx.tabulate``: which calls are rows, what they show, and that nothing is left behind."""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import nnxkit as nnx
from nnxkit.errors import GraphError


class Block(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.linear = nnx.Linear(4, 4, rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.drop(self.norm(self.linear(x)))


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.blocks = nnx.List([Block(rngs), Block(rngs)])
        self.head = nnx.Linear(4, 3, rngs=rngs)
        self.spare = nnx.Linear(4, 3, rngs=rngs)

    def encode(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x

    def __call__(self, x: Any, *, scale: float = 1.0) -> Any:
        return {"logits": self.head(self.encode(x)) * scale, "x": (x, None)}


X = jax.ShapeDtypeStruct((2, 4), jnp.float32)


def calls(model: Any, *args: Any, **kwargs: Any) -> list[Any]:
    rows: list[Any] = []

    def keep(row: Any) -> bool:
        rows.append(row)
        return True

    nnx.tabulate(model, *args, row_filter=keep, **kwargs)
    return rows


def paths(model: Any, *args: Any, **kwargs: Any) -> list[str]:
    rows = [row for row in calls(model, *args, **kwargs) if nnx.summary.filter_rng_streams(row)]
    return ["/".join(map(str, row.path)) for row in rows]


def test_a_table() -> None:
    text = nnx.tabulate(Net(nnx.Rngs(0)), X, scale=2.0, depth=1)
    assert (
        text
        == """\
                                               Net Summary
┏━━━━━━━━┳━━━━━━━━┳━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━┓
┃ path   ┃ type   ┃ inputs         ┃ outputs              ┃ BatchStat ┃ Param                ┃ RngState ┃
┡━━━━━━━━╇━━━━━━━━╇━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━┩
│        │ Net    │ - float32[2,4] │ logits: float32[2,3] │ 16 (64 B) │ 86 (344 B)           │ 4 (24 B) │
│        │        │ scale: 2.0     │ x:                   │           │                      │          │
│        │        │                │   - float32[2,4]     │           │                      │          │
│        │        │                │   - None             │           │                      │          │
├────────┼────────┼────────────────┼──────────────────────┼───────────┼──────────────────────┼──────────┤
│ encode │ Net    │ float32[2,4]   │ float32[2,4]         │ 16 (64 B) │ 86 (344 B)           │ 4 (24 B) │
├────────┼────────┼────────────────┼──────────────────────┼───────────┼──────────────────────┼──────────┤
│ head   │ Linear │ float32[2,4]   │ float32[2,3]         │           │ bias: float32[3]     │          │
│        │        │                │                      │           │ kernel: float32[4,3] │          │
│        │        │                │                      │           │                      │          │
│        │        │                │                      │           │ 15 (60 B)            │          │
├────────┼────────┼────────────────┼──────────────────────┼───────────┼──────────────────────┼──────────┤
│        │        │                │ Total                │ 16 (64 B) │ 86 (344 B)           │ 4 (24 B) │
└────────┴────────┴────────────────┴──────────────────────┴───────────┴──────────────────────┴──────────┘

                                      Total Parameters: 106 (432 B)
"""
    )


def test_every_call_is_a_row_and_nothing_changes() -> None:
    model = Net(nnx.Rngs(0))
    before = [dict(vars(cls)) for cls in (Net, Block, nnx.Linear, nnx.Dropout, nnx.BatchNorm, nnx.RngStream)]
    text = repr(model)
    inner = [f"blocks/{i}{end}" for i in (0, 1) for end in ("", "/linear", "/norm", "/drop")]
    assert paths(model, X) == ["", "encode", *inner, "head"]
    assert paths(nnx.eval_shape(lambda: Net(nnx.Rngs(0))), jnp.ones((2, 4)), method="encode") == ["encode", *inner]
    assert repr(model) == text
    after = [dict(vars(cls)) for cls in (Net, Block, nnx.Linear, nnx.Dropout, nnx.BatchNorm, nnx.RngStream)]
    assert after == before
    rows = calls(model, X)
    assert [row.path for row in rows if row.type is nnx.RngStream] == [("blocks", i, "drop", "rngs") for i in (0, 1)]
    assert rows[2].outputs == jax.ShapeDtypeStruct((2, 4), jnp.float32)


def test_an_error_of_the_model_arrives_and_leaves_nothing_behind() -> None:
    model, before = Net(nnx.Rngs(0)), dict(vars(nnx.Linear))
    with pytest.raises(ValueError, match="shape") as caught:
        nnx.tabulate(model, jnp.ones((2, 5)))
    assert caught.value.__context__ is None
    assert dict(vars(nnx.Linear)) == before
    assert "_nnx_summary" not in vars(model)


class Wrapped(nnx.Module):
    """Calls under transforms, of its base class, twice, and of a model that is not part of it."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first = nnx.Linear(4, 4, rngs=rngs)
        self.second = self.first
        self.stack = nnx.vmap(lambda rngs: nnx.Linear(4, 4, rngs=rngs))(rngs.split(3))
        self.special = Special(4, 4, rngs=rngs)

    def __call__(self, x: Any, label: str) -> Any:
        x = nnx.jit(lambda layer, x: layer(x))(self.second, self.first(x))
        x = nnx.scan(lambda layer, x: layer(x), in_axes=(0, nnx.Carry), out_axes=nnx.Carry)(self.stack, x)
        nnx.Linear(4, 4, rngs=nnx.Rngs(0))(x)
        self.sow(nnx.Intermediate, label, x)
        return nnx.remat(lambda layer, x: layer(x))(self.special, x), label


class Special(nnx.Linear):
    def __call__(self, inputs: Any, out_sharding: Any = None) -> Any:
        return super().__call__(inputs, out_sharding) + 1


@pytest.mark.parametrize("flops", [False, True])
def test_calls_inside_of_transforms(flops: bool) -> None:
    model = Wrapped(nnx.Rngs(0))
    for _ in range(2):  # the second time JAX has traces of the functions
        assert paths(model, X, "x", compute_flops=flops) == ["", "first", "stack", "special"]
    rows = calls(model, X, "x", compute_flops=flops)
    assert rows[0].inputs_repr == "- float32[2,4]\n- 'x'"
    assert rows[0].outputs == (jax.ShapeDtypeStruct((2, 4), jnp.float32), "x")


class Stacking(nnx.Module):
    """Needs that its layers have the same structure."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.layers = nnx.List([nnx.Linear(4, 4, rngs=rngs) for _ in range(2)])

    def __call__(self, x: Any) -> Any:
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *self.layers)
        return nnx.scan(lambda layer, x: layer(x), in_axes=(0, nnx.Carry), out_axes=nnx.Carry)(stacked, x)


def test_a_model_that_stacks_its_layers() -> None:
    assert paths(Stacking(nnx.Rngs(0)), X) == ["", "layers/0"]


def test_operations_are_counted_and_methods_run_once() -> None:
    runs = []

    class Deep(nnx.Module):
        def __init__(self) -> None:
            self.linear = nnx.Linear(8, 16, rngs=nnx.Rngs(0))
            self.last = nnx.Linear(16, 4, use_bias=False, rngs=nnx.Rngs(1))

        def hidden(self, x: Any, *, flag: bool) -> Any:
            runs.append(flag)
            return self.linear(x) if flag else x

        def __call__(self, x: Any, index: Any) -> Any:
            return self.last(self.hidden(x, flag=True))[index]

    rows = calls(Deep(), jnp.ones((2, 8)), jnp.array([0, 1]), compute_flops=True, compute_vjp_flops=True)
    assert runs == [True]
    flops = {"/".join(map(str, row.path)): (row.flops, row.vjp_flops) for row in rows}
    forward = 2 * 2 * 8 * 16
    assert flops["linear"][0] == flops["hidden"][0] == forward + 2 * 16
    assert flops["last"] == (2 * 2 * 16 * 4, 3 * 2 * 2 * 16 * 4)
    assert flops["linear"][1] > 3 * forward
    assert flops[""][0] >= flops["hidden"][0] + flops["last"][0]

    text = nnx.tabulate(Deep(), jnp.ones((200, 8)), jnp.array([0, 1]), compute_flops=True)
    assert f" {200 * (2 * 8 * 16 + 16):,} " in text
    assert "vjp_flops" not in text


@pytest.mark.parametrize("compute", [{}, {"compute_flops": True, "compute_vjp_flops": True}])
def test_rows_are_those_of_flax(compute: dict[str, bool]) -> None:
    flax = pytest.importorskip("flax.nnx")
    found = []
    for library in (nnx, flax):
        rngs = library.Rngs(0)
        model = library.Sequential(library.Conv(3, 4, (3, 3), rngs=rngs), library.Linear(4, 2, rngs=rngs))
        rows: list[Any] = []
        library.tabulate(
            model, jnp.ones((1, 5, 5, 3)), row_filter=lambda row, seen=rows.append: not seen(row), **compute
        )
        found.append([(row.call_order, row.path, row.type.__name__, row.flops, row.vjp_flops) for row in rows])
    assert found[0] == found[1]


def test_colors_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    model = nnx.Linear(4, 3, rngs=nnx.Rngs(0))
    plain = nnx.tabulate(model, X)
    assert "\x1b[" not in plain
    options = {"console_kwargs": {"width": 200}, "column_kwargs": {"style": "green"}, "table_kwargs": {"title": "Mine"}}
    assert "Mine" in nnx.tabulate(model, X, **options)
    assert "\x1b[" not in nnx.tabulate(model, X, **options)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert "\x1b[" in nnx.tabulate(model, X, console_kwargs={"width": 200})
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert nnx.tabulate(model, X) == plain
    with pytest.raises(ImportError, match="console_kwargs need rich: pip install rich"):
        nnx.tabulate(model, X, console_kwargs={"width": 200})


def test_metadata_and_structures_are_shown() -> None:
    class Odd(nnx.Module):
        def __init__(self) -> None:
            self.tree = nnx.Param({"a": [jnp.ones(2)], "b": 1.5})
            self.named = nnx.Param(jnp.ones(2), unit="m")

        def __call__(self, options: dict[str, Any]) -> type:
            return list

    lines = [line.split("│")[5].rstrip() for line in nnx.tabulate(Odd(), {}).splitlines() if line.startswith("│")]
    assert lines[:9] == [
        " named:",
        "   value: float32[2]",
        "   unit: 'm'",
        " tree:",
        "   a:",
        "     - float32[2]",
        "   b: 1.5",
        "",
        " 4 (16 B)",
    ]
    (row,) = calls(Odd(), {})
    assert (row.inputs_repr, row.outputs) == ("{}", list)


@pytest.mark.parametrize("thing", [3, [1], jnp.ones(2)])
def test_only_modules_are_tabulated(thing: Any) -> None:
    with pytest.raises(GraphError, match=r"`nnx.tabulate` takes a module, and got "):
        nnx.tabulate(thing)
