"""Variables: values, hooks, metadata, operators, copies, JAX, names of types."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnxkit as nnx
from nnx_rules.errors import TraceContextError, VariableAttributeError, VariableError
from nnxkit._epoch import EPOCH


def array(*shape: int) -> jax.Array:
    return jnp.ones(shape or (2,))


class TestValues:
    def test_read(self) -> None:
        value = jnp.arange(4.0)
        v = nnx.Param(value)
        assert v[...] is value
        assert v.get_value() is value
        assert v[1] == 1
        assert v.get_value(index=2) == 2
        assert v[1:3].shape == (2,)

    def test_write_of_the_same_aval_replaces(self) -> None:
        v = nnx.Param(array())
        new = jnp.zeros(2)
        v[...] = new
        assert v[...] is new

    def test_write_broadcasts_and_keeps_the_dtype(self) -> None:
        v = nnx.Param(jnp.ones(4, jnp.float16))
        v[...] = 3.0
        assert v.dtype == jnp.float16
        assert v.shape == (4,)
        assert (v[...] == 3).all()

    def test_write_of_a_wrong_shape(self) -> None:
        v = nnx.Param(array(4))
        with pytest.raises(ValueError, match="Incompatible"):
            v[...] = jnp.zeros(3)

    def test_write_at_an_index(self) -> None:
        v = nnx.Param(jnp.zeros(3))
        v[1] = 5.0
        assert v[...].tolist() == [0, 5, 0]
        v.set_value(7.0, index=2)
        assert v[...].tolist() == [0, 5, 7]

    def test_write_a_variable(self) -> None:
        v, w = nnx.Param(jnp.zeros(2)), nnx.Param(array())
        v[...] = w
        assert isinstance(v[...], jax.Array)
        assert v[0] == 1

    def test_set_value_may_change_the_shape(self) -> None:
        v = nnx.Param(array(2))
        v.set_value(array(3))
        assert v.shape == (3,)

    def test_python_scalars_are_not_subscriptable(self) -> None:
        with pytest.raises(TypeError, match="not subscriptable"):
            nnx.Param(1)[...]
        with pytest.raises(TypeError, match="item assignment"):
            nnx.Param(1)[...] = 2

    def test_containers_are_copied_on_read(self) -> None:
        v = nnx.Variable({"a": [1, 2]})
        v.get_value()["a"].append(3)
        assert v.get_value() == {"a": [1, 2]}
        v["b"] = 4
        assert v.get_value() == {"a": [1, 2], "b": 4}
        del v["a"]
        assert v.get_value() == {"b": 4}

    def test_numpy_values_are_not_edited_in_place(self) -> None:
        value = np.zeros(2)
        v = nnx.Variable(value)
        v[0] = 1
        assert value[0] == 0
        assert v[0] == 1

    def test_deprecated_value(self) -> None:
        v = nnx.Param(1)
        with pytest.warns(DeprecationWarning, match=r"'.value' is deprecated"):
            assert v.value == 1
        with pytest.warns(DeprecationWarning, match=r"'.value' is deprecated"):
            v.value = 2
        with pytest.warns(DeprecationWarning, match=r"'.raw_value' is deprecated"):
            assert v.raw_value == 2

    def test_callable_value(self) -> None:
        assert nnx.Variable(lambda x, y=1: x + y)(2, y=3) == 5

    def test_ref(self) -> None:
        v = nnx.Param(array(), ref=True)
        assert nnx.is_array_ref(v.get_raw_value())
        ref = v.get_raw_value()
        v[...] = jnp.zeros(2)
        v[0] = 5.0
        assert v.get_raw_value() is ref
        assert v[...].tolist() == [5, 0]

        @jax.jit
        def f() -> None:
            v[1] = 7.0  # a reference may be changed from an inner trace: JAX tracks it

        f()
        assert v[...].tolist() == [5, 7]
        assert v.copy().get_raw_value() is not ref


class TestHooks:
    def test_all(self) -> None:
        log: list[str] = []

        def hook(name: str, change: Any) -> Any:
            def run(variable: Any, value: Any) -> Any:
                log.append(name)
                return change(value)

            return run

        v = nnx.Param(
            1,
            on_create_value=hook("create", lambda x: x + 10),
            on_set_value=(hook("set", lambda x: x * 2), hook("set2", lambda x: x + 1)),
            on_get_value=hook("get", lambda x: -x),
        )
        assert (v.get_raw_value(), log) == (11, ["create"])
        v.set_value(5)
        assert v.get_raw_value() == 11
        assert v.get_value() == -11
        assert log == ["create", "set", "set2", "get"]
        v.set_raw_value(1)
        assert v.copy().get_raw_value() == 1
        assert log == ["create", "set", "set2", "get"]

    def test_with_metadata(self) -> None:
        init = nnx.with_metadata(nnx.initializers.ones, on_get_value=lambda v, x: 2 * x, unit="m")
        v = nnx.Param(init(jax.random.key(0), (2,)), other=1)
        assert v[...].tolist() == [2, 2]
        assert (v.unit, v.other) == ("m", 1)
        assert v.get_raw_value().tolist() == [1, 1]

    def test_axes(self) -> None:
        calls: list[Any] = []
        v = nnx.Param(
            1,
            out_sharding=("a", "b"),
            eager_sharding=False,
            on_add_axis=lambda v, i, n: calls.append(("add", i, n)),
            on_remove_axis=lambda v, i, n: calls.append(("remove", i, n)),
        )
        v.add_axis(1, "new")
        assert v.out_sharding == ("a", "new", "b")
        v.remove_axis(0, "a")
        assert v.out_sharding == ("new", "b")
        assert calls == [("add", 1, "new"), ("remove", 0, "a")]


class TestMetadata:
    def test_read(self) -> None:
        v = nnx.Param(1, unit="m")
        assert v.unit == "m"
        assert v.get_metadata("unit") == "m"
        assert v.get_metadata("zz", 5) == 5
        assert v.get_metadata() == {"unit": "m", "hijax": False, "ref": False, "eager_sharding": True}
        assert v.get_metadata(exclude_required=True) == {"unit": "m"}
        assert v.has_metadata("unit")
        assert not v.has_metadata("zz")
        with pytest.raises(KeyError, match="zz"):
            v.get_metadata("zz")
        with pytest.raises(AttributeError, match="zz"):
            _ = v.zz

    def test_write(self) -> None:
        v = nnx.Param(1, unit="m")
        v.set_metadata("unit", "s")
        v.set_metadata(a=1, b=2)
        assert v.get_metadata(exclude_required=True) == {"unit": "s", "a": 1, "b": 2}
        v.del_metadata("a")
        assert not v.has_metadata("a")
        v.set_metadata({"c": 3})
        assert v.get_metadata(exclude_required=True) == {"c": 3}

    @pytest.mark.parametrize("args", [(), (1, 2, 3), ("a",)])
    def test_wrong_arguments(self, args: tuple[Any, ...]) -> None:
        with pytest.raises((TypeError, ValueError), match=r"set_metadata takes|dictionary update"):
            nnx.Param(1).set_metadata(*args)

    def test_required(self) -> None:
        with pytest.raises(VariableError, match="`hijax` of a `Param` cannot be deleted"):
            nnx.Param(1).del_metadata("hijax")

    def test_not_like_an_attribute(self) -> None:
        v = nnx.Param(1, unit="m")
        with pytest.raises(VariableAttributeError, match="cannot be set like an attribute"):
            v.unit = "s"
        with pytest.raises(VariableAttributeError, match="cannot be set like an attribute"):
            v.typo = 1
        with pytest.raises(VariableAttributeError, match="cannot be deleted like an attribute"):
            del v.unit

    def test_is_replaced_not_edited(self) -> None:
        v = nnx.Param(1, unit="m")
        before = v._var_metadata
        w = v.copy()
        assert w._var_metadata is before
        v.set_metadata(unit="s")
        assert before["unit"] == "m"
        assert w.unit == "m"

    def test_change_is_structural(self) -> None:
        v = nnx.Param(1)
        epoch = EPOCH.value
        v.set_metadata(a=1)
        assert EPOCH.value == epoch
        object.__setattr__(v, "_nnx_version", 1)
        v.set_value(2)
        assert EPOCH.value == epoch
        v.set_metadata(a=2)
        assert (EPOCH.value, v._nnx_version) == (epoch + 1, 2)

    @pytest.mark.parametrize("name", ["sharding", "sharding_names"])
    def test_old_names(self, name: str) -> None:
        with pytest.warns(DeprecationWarning, match=f"'{name}' is deprecated"):
            v = nnx.Param(1, eager_sharding=False, **{name: ("a",)})
        assert v.out_sharding == ("a",)
        with pytest.warns(DeprecationWarning, match="sharding_names"):
            assert v.sharding_names == ("a",)

    def test_eager_sharding(self) -> None:
        with pytest.raises(VariableError, match="there is no mesh"):
            nnx.Param(array(), out_sharding=("x",))
        mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        v = nnx.Param(array(), out_sharding=("x",), mesh=mesh)
        assert v[...].sharding.spec == jax.sharding.PartitionSpec("x")
        with jax.set_mesh(mesh):
            assert nnx.Param(array(), out_sharding=("x",))[...].sharding.spec == jax.sharding.PartitionSpec("x")
        with nnx.use_eager_sharding(False):
            assert not nnx.using_eager_sharding()
            assert not nnx.Param(array(), out_sharding=("x",)).eager_sharding
        assert nnx.using_eager_sharding()

    def test_var_defaults(self) -> None:
        with nnx.var_defaults(hijax=True):
            assert nnx.Param(1).hijax
            assert not nnx.Param(1, hijax=False).hijax
        assert not nnx.Param(1).hijax


BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
    divmod,
]
IN_PLACE = [
    operator.iadd,
    operator.isub,
    operator.imul,
    operator.itruediv,
    operator.ifloordiv,
    operator.imod,
    operator.ipow,
]
floats = st.floats(min_value=0.5, max_value=8, width=32)


def same(left: Any, right: Any) -> bool:
    return bool(np.array_equal(np.asarray(left), np.asarray(right)))


class TestOperators:
    @pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
    @given(x=floats, y=floats)
    def test_binary(self, op: Any, x: float, y: float) -> None:
        a, b = np.array([x, y], np.float32), np.array([y, y], np.float32)
        expected = op(a, b)
        for left in (a, nnx.Param(a)):
            for right in (b, nnx.Param(b)):
                assert same(op(left, right), expected)

    @pytest.mark.parametrize("op", IN_PLACE, ids=lambda op: op.__name__)
    def test_in_place(self, op: Any) -> None:
        v = w = nnx.Param(jnp.array([4.0, 2.0]))
        v = op(v, 2)
        assert v is w
        assert same(v[...], op(np.array([4.0, 2.0], np.float32), 2))

    @pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift])
    def test_bits(self, op: Any) -> None:
        a, b = jnp.array([6, 5]), jnp.array([3, 1])
        assert same(op(nnx.Variable(a), b), op(a, b))
        assert same(op(a, nnx.Variable(b)), op(a, b))

    @pytest.mark.parametrize("op", [operator.neg, operator.pos, abs, operator.invert])
    def test_unary(self, op: Any) -> None:
        assert same(op(nnx.Variable(jnp.array([6, -5]))), op(jnp.array([6, -5])))

    def test_matmul(self) -> None:
        a, b = jnp.arange(4.0).reshape(2, 2), jnp.ones((2, 2))
        for left, right in (
            (nnx.Param(a), b),
            (a, nnx.Param(b)),
            (nnx.Param(a), nnx.Param(b)),
            (np.asarray(a), nnx.Param(b)),
        ):
            assert same(left @ right, a @ b)

    def test_attribute_in_place(self) -> None:
        class Counter(nnx.Module):
            def __init__(self) -> None:
                self.count = nnx.Variable(jnp.array(0, dtype=jnp.uint32))

        counter = Counter()
        variable = counter.count
        counter.count += 1
        assert counter.count is variable
        assert variable.dtype == jnp.uint32
        assert variable == 1

    def test_conversions(self) -> None:
        v = nnx.Variable(jnp.array(3))
        assert (int(v), float(v), complex(v), bool(v), operator.index(v)) == (3, 3.0, 3 + 0j, True, 3)
        assert not nnx.Variable(0)
        assert f"{nnx.Variable(1.5):.3f}" == "1.500"
        assert f"{v}" == repr(v)
        assert [math.floor(nnx.Variable(1.5)), math.ceil(nnx.Variable(1.5)), math.trunc(nnx.Variable(1.5))] == [1, 2, 1]
        assert round(nnx.Variable(1.26), 1) == 1.3

    def test_sequence(self) -> None:
        v = nnx.Variable(jnp.arange(3))
        assert len(v) == 3
        assert [int(x) for x in v] == [0, 1, 2]
        assert 2 in v
        assert 5 not in v

    def test_attributes_of_the_value(self) -> None:
        v = nnx.Param(array(2, 3))
        assert (v.shape, v.ndim, v.dtype, v.T.shape) == ((2, 3), 2, jnp.float32, (3, 2))
        assert v.at[0].set(0)[0].tolist() == [0, 0, 0]
        assert {"shape", "set_value"} <= set(dir(v))

    def test_numpy_and_jax(self) -> None:
        v = nnx.Param(jnp.arange(3.0))
        assert type(jnp.sin(v)) is type(jnp.ones(1))
        assert same(np.asarray(v), [0, 1, 2])
        assert np.asarray(v, dtype=np.int32).dtype == np.int32
        assert same(np.array(v, copy=True), [0, 1, 2])
        assert same(jnp.sin(nnx.Param(1.0)), jnp.sin(1.0))

    def test_unhashable(self) -> None:
        with pytest.raises(TypeError, match="unhashable type: 'Param'"):
            hash(nnx.Param(1))


class TestCopies:
    def test_copy(self) -> None:
        v = nnx.Param(array(), a=1)
        for w in (v.copy(), v.replace(), v.to_state(), copy.copy(v)):
            assert w is not v
            assert type(w) is nnx.Param
            assert w[...] is v[...]
            assert w.a == 1
        w = v.copy(5, b=2)
        assert (w.get_value(), w.a, w.b) == (5, 1, 2)
        assert not v.has_metadata("b")

    def test_copy_from(self) -> None:
        v, w = nnx.Param(1, a=1), nnx.Param(2, b=2)
        v.copy_from(w)
        assert v.get_value() == 2
        assert v.get_metadata(exclude_required=True) == {"b": 2}
        v.copy_from(v)
        assert v.get_value() == 2
        with pytest.raises(VariableError, match="a `Param` cannot be overwritten from a `BatchStat`"):
            v.copy_from(nnx.BatchStat(1))

    def test_update_from_state(self) -> None:
        v = nnx.Param(1, a=1)
        v.update_from_state(nnx.Param(2))
        assert v.get_value() == 2
        assert not v.has_metadata("a")

    def test_from_metadata_runs_no_hooks(self) -> None:
        v = nnx.Param.from_metadata(1, {"on_create_value": lambda v, x: x + 1, "a": 2})
        assert (v.get_raw_value(), v.a, v.hijax) == (1, 2, False)

    def test_deepcopy_and_pickle(self) -> None:
        v = nnx.Param(array(), a=[1])
        for w in (copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
            assert type(w) is nnx.Param
            assert w.a == [1]
            w[...] = jnp.zeros(2)
            assert v[0] == 1
        nested = nnx.Variable([1])
        assert copy.deepcopy(nested).get_raw_value() is not nested.get_raw_value()

    def test_variable_state(self) -> None:
        with pytest.warns(DeprecationWarning, match="VariableState"):
            v = nnx.VariableState(type=nnx.BatchStat, value=1, a=2)
        assert type(v) is nnx.BatchStat
        assert (v.get_value(), v.a) == (1, 2)
        assert v.type is v.var_type is nnx.BatchStat
        assert isinstance(v, nnx.VariableState)
        assert isinstance(v, nnx.VariableState[Any])
        assert isinstance(v, int | nnx.VariableState)
        assert not isinstance(1, nnx.VariableState)
        assert issubclass(nnx.Param, nnx.VariableState)
        assert not issubclass(int, nnx.VariableState)
        layer = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
        assert nnx.state(layer, nnx.VariableState) == nnx.state(layer, nnx.Variable)


class TestTraceLevels:
    CHANGES: ClassVar[dict[str, Any]] = {
        "set_value": lambda v: v.set_value(1),
        "item": lambda v: operator.setitem(v, ..., 1),
        "in place": lambda v: operator.iadd(v, 1),
        "metadata": lambda v: v.set_metadata(a=1),
        "del metadata": lambda v: v.del_metadata("a"),
        "raw": lambda v: v.set_raw_value(1),
        "copy_from": lambda v: v.copy_from(nnx.Param(2)),
        "update_from_state": lambda v: v.update_from_state(nnx.Param(2)),
        "axis": lambda v: v.add_axis(0, "x"),
        "delitem": lambda v: operator.delitem(v, "k"),
    }

    @pytest.mark.parametrize("change", CHANGES)
    def test_captured(self, change: str) -> None:
        value: Any = {"k": 1} if change == "delitem" else array()
        v = nnx.Param(value, a=0, out_sharding=(), eager_sharding=False)
        before = v.get_metadata()

        @jax.jit
        def f(x: Any) -> Any:
            self.CHANGES[change](v)
            return x

        with pytest.raises(TraceContextError, match="Cannot mutate `Param` from a different trace level"):
            f(1.0)
        assert v.get_raw_value() is value
        assert v.get_metadata() == before

    def test_reading_is_fine(self) -> None:
        v = nnx.Param(array())
        assert jax.jit(lambda: v + 1)().tolist() == [2, 2]

    def test_argument(self) -> None:
        @jax.jit
        def f(v: nnx.Param[Any]) -> Any:
            v[...] = v + 1
            return v

        v = nnx.Param(array())
        assert f(v)[...].tolist() == [2, 2]
        assert v[...].tolist() == [1, 1]


class TestJaxTree:
    def test_path_and_structure(self) -> None:
        v = nnx.Param(array(), a=1)
        ((path, leaf),), treedef = jax.tree_util.tree_flatten_with_path(v)
        assert jax.tree_util.keystr(path) == ".value"
        assert leaf is v[...]
        again = jax.tree.unflatten(treedef, [leaf])
        assert type(again) is nnx.Param
        assert again is not v
        assert again.a == 1
        assert treedef == jax.tree.structure(nnx.Param(1, a=1))
        assert hash(treedef) == hash(jax.tree.structure(nnx.Param(1, a=1)))
        assert treedef != jax.tree.structure(nnx.Param(1, a=2))
        assert treedef != jax.tree.structure(nnx.BatchStat(1, a=1))

    def test_subclasses_are_registered(self) -> None:
        class Mine(nnx.Variable[Any]):
            pass

        class Yours(Mine):
            pass

        assert type(jax.tree.map(lambda x: x + 1, Yours(1))) is Yours

    def test_gradients(self) -> None:
        grads = jax.grad(lambda v: jnp.sum(v * v))(nnx.Param(jnp.array([1.0, 2.0])))
        assert type(grads) is nnx.Param
        assert grads[...].tolist() == [2, 4]


class TestNames:
    def test_known(self) -> None:
        assert nnx.variable_type_from_name("params") is nnx.Param
        assert nnx.variable_name_from_type(nnx.BatchStat) == "batch_stats"
        assert nnx.variable_name_from_type(nnx.LoRAParam, allow_register=True) == "LoRAParam"

    def test_unknown(self) -> None:
        with pytest.raises(VariableError, match="no Variable type is registered as 'zzz'"):
            nnx.variable_type_from_name("zzz")
        with pytest.raises(VariableError, match="`RngKey` is not registered"):
            nnx.variable_name_from_type(nnx.RngKey)

    def test_register(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import nnxkit._variable_names as names

        monkeypatch.setattr(names, "VariableTypeCache", dict(names.VariableTypeCache))
        with pytest.raises(VariableError, match="'params' is registered for `Param`"):
            nnx.register_variable_name("params", nnx.Cache)

        @nnx.register_variable_name("mine")
        class Mine(nnx.Variable[Any]):
            pass

        assert nnx.variable_type_from_name("mine") is Mine
        made = nnx.variable_type_from_name("made", base=nnx.Param, allow_register=True)
        assert issubclass(made, nnx.Param)
        assert nnx.variable_name_from_type(made) == "made"
        assert nnx.variable_name_from_type(nnx.RngState, allow_register=True) == "RngState"
