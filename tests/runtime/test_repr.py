"""How objects print."""

from __future__ import annotations

import collections
import dataclasses
import sys
import types
from textwrap import dedent
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nnxkit as nnx


def text(expected: str) -> str:
    return dedent(expected).strip("\n")


class Foo(nnx.Module):
    def __init__(self) -> None:
        self.a = nnx.Param(jnp.ones((2, 3)))
        self.b = nnx.BatchStat(jnp.array(1.0))
        self.c = "hi"
        self.d = nnx.List([nnx.Param(jnp.zeros(2))])
        self.lst = (1, 2)
        self._hidden = 1


class Empty(nnx.Module):
    pass


def test_module() -> None:
    assert repr(Foo()) == text("""
        Foo( # Param: 8 (32 B), BatchStat: 1 (4 B), Total: 9 (36 B)
          a=Param( # 6 (24 B)
            value=Array(shape=(2, 3), dtype=dtype('float32'))
          ),
          b=BatchStat( # 1 (4 B)
            value=Array(1., dtype=float32, weak_type=True)
          ),
          c='hi',
          d=List([
            Param( # 2 (8 B)
              value=Array([0., 0.], dtype=float32)
            )
          ]),
          lst=(1, 2)
        )
    """)


def test_variable() -> None:
    assert repr(nnx.Param(jnp.ones(2), foo=1)) == text("""
        Param( # 2 (8 B)
          value=Array([1., 1.], dtype=float32),
          foo=1
        )
    """)
    assert repr(nnx.Param(1)) == "Param(\n  value=1\n)"
    assert (
        repr(nnx.Param(1, out_sharding=None, hijax=True)) == "Param(\n  value=1,\n  out_sharding=None,\n  hijax=True\n)"
    )


def test_empty() -> None:
    assert repr(Empty()) == "Empty()"
    assert repr(nnx.List([])) == "List([])"
    assert repr(nnx.Dict()) == "Dict({})"
    assert repr(nnx.Rngs()) == "Rngs()"


def test_containers() -> None:
    assert repr(nnx.Dict(a=1, b=nnx.List([1, Empty()]))) == text("""
        Dict({
          'a': 1,
          'b': List([
            1,
            Empty()
          ])
        })
    """)


def test_rngs() -> None:
    assert repr(nnx.Rngs(0)) == text("""
        Rngs( # RngState: 2 (12 B)
          default=RngStream( # RngState: 2 (12 B)
            tag='default',
            key=RngKey( # 1 (8 B)
              value=Array((), dtype=key<fry>) overlaying:
              [0 0],
              tag='default'
            ),
            count=RngCount( # 1 (4 B)
              value=Array(0, dtype=uint32),
              tag='default'
            )
          )
        )
    """)


def test_state() -> None:
    assert str(nnx.state(nnx.Dict(a=nnx.List([nnx.Param(jnp.zeros(1))])))) == text("""
        State({
          'a': {
            0: Param( # 1 (4 B)
              value=Array([0.], dtype=float32)
            )
          }
        })
    """)


def test_shapes_in_a_state() -> None:
    state = jax.tree.map(jnp.shape, nnx.state(nnx.Dict(a=nnx.Param(jnp.zeros((2, 3))))))
    assert repr(state) == "State({\n  'a': Param(\n    value=(2, 3)\n  )\n})"


def test_repeated_and_cyclic() -> None:
    class Node(nnx.Module):
        pass

    node = Node()
    node.me = node
    node.e1 = node.e2 = Empty()
    assert repr(node) == "Node(\n  me=Node(...),\n  e1=Empty(),\n  e2=Empty(...)\n)"
    ring = nnx.List([1])
    ring.append(ring)
    assert repr(ring) == "List([\n  1,\n  List(...)\n])"
    ring[0] = nnx.data(nnx.Variable(ring))
    assert "List(...)" in repr(ring)


def test_order_after_unflatten_is_alphabetical() -> None:
    obj = nnx.Dict(b=1, a=jnp.ones(1))
    assert list(vars(jax.tree.map(lambda x: x, obj))) == ["a", "b"]


def test_tracers() -> None:
    shown = []
    jax.jit(lambda m: shown.append(repr(m)))(Foo())
    assert "value=Array(shape=(2, 3), dtype=dtype('float32'))" in shown[0]


def test_own_repr() -> None:
    class Loud(nnx.Module):
        def __repr__(self) -> str:
            return "LOUD"

    assert repr(nnx.Dict(a=Loud())) == "Dict({\n  'a': Loud()\n})"
    holder = Empty()
    holder.x = Loud()
    assert repr(holder) == "Empty(\n  x=Loud()\n)"
    assert str(Loud()) == "Loud()"


def test_dataclass_prints_what_is_no_field() -> None:
    @dataclasses.dataclass
    class Scale(nnx.Module):
        n: int

        def __post_init__(self) -> None:
            self.w = nnx.Param(1)

    shown = "Scale(\n  n=3,\n  w=Param(\n    value=1\n  )\n)"
    assert repr(Scale(3)) == f"{Scale.__qualname__}(n=3)"
    assert str(Scale(3)) == shown
    assert str(nnx.Dict(a=1, b=nnx.List([2]))) == repr(nnx.Dict(a=1, b=nnx.List([2])))


def test_display(capsys: pytest.CaptureFixture[str]) -> None:
    nnx.display(nnx.Param(1), "x")
    assert capsys.readouterr().out == "Param(\n  value=1\n)\nx\n"


@pytest.mark.filterwarnings("ignore:The chararray class:DeprecationWarning")  # treescope walks all of numpy
def test_treescope() -> None:
    treescope = pytest.importorskip("treescope")
    rendered = treescope.render_to_text(Foo())
    assert "Foo(" in rendered
    assert "_hidden" not in rendered
    assert "value=" in treescope.render_to_text(nnx.Param(1), roundtrip_mode=False)
    node = nnx.Dict(a=nnx.List([nnx.Param(1), 2]))
    state = nnx.state(node)
    texts = {
        "List([Param(value=1), 2])": node.a,
        "State({'a': {0: Param(value=1)}})": state,
        "FlatState([(('a', 0), Param(value=1))])": nnx.to_flat_state(state),
        "GraphState({'a': State({0: Param(value=1)})})": nnx.unpack(node),
    }
    for text, value in texts.items():
        assert "".join(treescope.render_to_text(value).split()).replace(",)", ")") == text.replace(" ", "")


def test_display_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    interactive = types.ModuleType("IPython.core.getipython")
    interactive.get_ipython = object  # type: ignore[attr-defined]
    renderer = types.ModuleType("treescope")
    renderer.display = shown.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython.core.getipython", interactive)
    monkeypatch.setitem(sys.modules, "treescope", renderer)
    parameter = nnx.Param(1)
    nnx.display(parameter, "x")
    assert shown[0] is parameter
    assert shown[1:] == ["x"]


class Pair(collections.namedtuple("Pair", "x y")):
    __slots__ = ()


def everything(module: Any) -> Any:
    class Leaf(module.Module):
        pass

    class Everything(module.Module):
        def __init__(self) -> None:
            self.z = module.BatchStat(jnp.ones(300))
            self.a = module.Param(jnp.ones((1000, 1000)))
            self._hidden, self._shown = 3, module.Param(1.0)
            self.np1, self.np2, self.np3 = np.ones(3), np.ones(1), np.float32(3)
            self.dtype, self.kind, self.none = jnp.float32, np.dtype("int8"), None
            self.leaf = Leaf()
            self.xs = module.data([jnp.ones(3), module.Param(jnp.ones(3)), Leaf()])
            self.ds = module.data({"k": jnp.ones(3), "m": (module.Param(jnp.ones(2)),)})
            self.pair = module.data(Pair(jnp.ones(2), (1,)))
            self.param, self.builtin, self.text, self.empty = module.Param, len, "a\nb", ()
            self.struct = jax.ShapeDtypeStruct((2,), jnp.float32)
            self.key, self.keys = jax.random.key(0), jax.random.split(jax.random.key(0), 3)
            self.d = module.Dict(x=jnp.ones(4), y=Leaf())
            self.list = module.List([jnp.ones(4), Leaf(), module.Dropout(0.5, rngs=module.Rngs(0))])
            self.tree = module.Param({"a": jnp.ones(3), "b": [1, 2]})
            self.meta = module.Param(jnp.ones(2), tag="x", hook=len)
            self.one = module.Param(jnp.ones(1))
            self.shared, self.again = self.one, self.leaf
            self.u, self.s, self._c = module.data([1, 2]), module.data("data"), module.data(4)
            self.nested, self.ints = (1, {"a": [1, 2]}), {1}
            self.rngs = module.Rngs(0, params=module.RngStream(1, tag="p"))
            self.state = module.data(module.State({"a": {"b": module.Param(jnp.ones(2)), "c": 1}}))
            self.big = module.Param(jnp.ones(70_000))

    return Everything()


def test_same_as_flax() -> None:
    flax_nnx = pytest.importorskip("flax.nnx")
    assert repr(everything(nnx)) == repr(everything(flax_nnx))


@pytest.mark.parametrize(
    "size", [0, 1, 999, 1000, 1001, 10_000, 123_456, 1_000_000, 1_048_576, 10**9, 10**9 + 1, 1 << 40]
)
def test_sizes_same_as_flax(size: int) -> None:
    flax_nnx = pytest.importorskip("flax.nnx")
    value = jax.ShapeDtypeStruct((size,), jnp.int8)
    assert repr(nnx.Param(value)) == repr(flax_nnx.Param(value))
