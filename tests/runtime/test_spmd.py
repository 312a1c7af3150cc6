"""Axis names in metadata: what they become as specs, shardings, placed arrays and abstract models."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import nnxkit as nnx
from nnx_rules.errors import VariableError


@pytest.fixture
def mesh() -> Any:
    return jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


KERNEL = nnx.initializers.lecun_normal()


class Model(nnx.Module):
    def __init__(self, rngs: nnx.Rngs, sharding: Any = (None, "model"), **metadata: Any) -> None:
        init = nnx.with_partitioning(KERNEL, sharding, **metadata)
        self.linear = nnx.Linear(8, 16, kernel_init=init, rngs=rngs)
        self.norm = nnx.BatchNorm(16, rngs=rngs)
        self.tied = self.linear


def test_arrays_are_placed_when_they_are_made(mesh: Any) -> None:
    with jax.set_mesh(mesh):
        model = Model(nnx.Rngs(0))
    assert model.linear.kernel.sharding.spec == P(None, "model")
    assert model.linear.kernel.out_sharding == (None, "model")
    assert {shard.data.shape for shard in model.linear.kernel.addressable_shards} == {(8, 4)}


def test_a_name_alone_is_that_of_the_first_axis(mesh: Any) -> None:
    with jax.set_mesh(mesh):
        kernel = Model(nnx.Rngs(0), "model").linear.kernel
        assert kernel.sharding.spec == P("model")
        stacked = nnx.vmap(lambda rngs: Model(rngs, "model"), transform_metadata={nnx.PARTITION_NAME: "data"})(
            nnx.Rngs(0).split(2)
        )
    assert stacked.linear.kernel.out_sharding == ("data", "model")
    assert nnx.get_partition_spec(nnx.state(kernel)).get_raw_value() == P("model")


def test_without_a_mesh() -> None:
    with pytest.raises(
        VariableError, match=r"with out_sharding=.*'model'.* is sharded when it is created, and there is no"
    ):
        Model(nnx.Rngs(0))
    assert Model(nnx.Rngs(0), eager_sharding=False).linear.kernel.out_sharding == (None, "model")


def test_specs_and_shardings(mesh: Any) -> None:
    state = nnx.state(Model(nnx.Rngs(0), eager_sharding=False))
    specs = nnx.get_partition_spec(state)
    assert specs["linear"]["kernel"].get_raw_value() == P(None, "model")
    assert specs["linear"]["bias"].get_raw_value() == P()
    assert isinstance(specs["norm"]["mean"], nnx.BatchStat)
    shardings = nnx.get_named_sharding(state, mesh)
    assert shardings["linear"]["kernel"].get_raw_value() == NamedSharding(mesh, P(None, "model"))
    placed = jax.device_put(nnx.as_pure(state), nnx.as_pure(shardings))
    assert placed["linear"]["kernel"].sharding.spec == P(None, "model")


def test_of_a_module_and_of_trees() -> None:
    model = Model(nnx.Rngs(0), eager_sharding=False)
    specs = nnx.get_partition_spec({"model": model, "step": jnp.array(0)})
    assert isinstance(specs["model"], Model)
    assert specs["model"].tied is specs["model"].linear
    assert specs["model"].linear.kernel.get_raw_value() == P(None, "model")
    assert specs["step"] == P()
    assert isinstance(model.linear.kernel.get_raw_value(), jax.Array)


class TestRules:
    RULES = (("embed", None), ("mlp", "model"), ("mlp", "data"), ("both", ("data", "model")))

    def spec(self, names: Any, **metadata: Any) -> Any:
        weight = nnx.Param(jnp.zeros((8, 8)), out_sharding=names, eager_sharding=False, **metadata)
        return nnx.get_partition_spec(weight).get_raw_value()

    @pytest.mark.parametrize(
        ("names", "expected"),
        [
            (("embed", "mlp"), P(None, "model")),
            (("both", None), P(("data", "model"), None)),
            ((("embed", "mlp"), "data"), P(("model",), "data")),
            (("data", "embed"), P("data", None)),
            (P("mlp"), P("model")),
        ],
    )
    def test_translate(self, names: Any, expected: Any) -> None:
        assert self.spec(names, sharding_rules=self.RULES) == expected
        with nnx.logical_axis_rules(self.RULES):
            assert self.spec(names) == expected

    def test_innermost_rules_count_and_end(self) -> None:
        with nnx.logical_axis_rules([("a", "data")]):
            with nnx.logical_axis_rules([("b", "data")]):
                assert self.spec(("a", "b")) == P("a", "data")
            assert self.spec(("a", "b")) == P("data", "b")
        assert self.spec(("a", "b")) == P("a", "b")

    def test_own_rules_come_first(self) -> None:
        with nnx.logical_axis_rules([("a", "data")]):
            assert self.spec(("a",), sharding_rules=(("a", "model"),)) == P("model")

    def test_place(self, mesh: Any) -> None:
        with jax.set_mesh(mesh), nnx.logical_axis_rules(self.RULES):
            model = Model(nnx.Rngs(0), ("embed", "mlp"))
        assert model.linear.kernel.sharding.spec == P(None, "model")
        assert model.linear.kernel.out_sharding == ("embed", "mlp")

    def test_unknown_axis(self, mesh: Any) -> None:
        with jax.set_mesh(mesh), pytest.raises(ValueError, match="embed"):
            Model(nnx.Rngs(0), ("embed", None))


class TestAbstract:
    def test_get_abstract_model(self, mesh: Any) -> None:
        graphdef, state = nnx.get_abstract_model(lambda: Model(nnx.Rngs(0)), mesh)
        kernel = state["linear"]["kernel"].get_raw_value()
        assert kernel == jax.ShapeDtypeStruct((8, 16), jnp.float32, sharding=NamedSharding(mesh, P(None, "model")))
        assert all(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(state))
        assert nnx.merge(graphdef, state).tied.kernel.shape == (8, 16)

    def test_initialisation_without_one_device_holding_it_all(self, mesh: Any) -> None:
        _, abstract = nnx.get_abstract_model(lambda: Model(nnx.Rngs(0)), mesh)
        shardings = jax.tree.map(lambda leaf: leaf.sharding, nnx.as_pure(abstract))

        @functools.partial(jax.jit, out_shardings=shardings)
        def init() -> Any:
            return nnx.as_pure(nnx.state(Model(nnx.Rngs(0), eager_sharding=False)))

        state = init()
        assert state["linear"]["kernel"].sharding.spec == P(None, "model")

    def test_eval_shape_says_where_variables_would_lie(self, mesh: Any) -> None:
        def make() -> nnx.Dict[Any]:
            return nnx.Dict(
                sharded=nnx.Param(jnp.zeros((8, 8)), out_sharding=(None, "model")),
                plain=nnx.BatchStat(jnp.zeros(8)),
                logical=nnx.Param(jnp.zeros(8), out_sharding=("embed",), eager_sharding=False),
                bare=jnp.zeros(8),
            )

        with jax.set_mesh(mesh):
            abstract = nnx.eval_shape(make)
        assert abstract.sharded.get_raw_value().sharding == NamedSharding(mesh, P(None, "model"))
        assert abstract.plain.get_raw_value().sharding == NamedSharding(mesh, P())
        assert abstract.logical.get_raw_value().sharding is None
        assert abstract.bare.sharding is None
        with_own = nnx.eval_shape(lambda: nnx.Param(jnp.zeros(8), out_sharding=("model",), mesh=mesh))
        assert with_own.get_raw_value().sharding == NamedSharding(mesh, P("model"))
        assert nnx.eval_shape(lambda: nnx.Param(jnp.zeros(8))).get_raw_value().sharding is None

    def test_concrete_arrays_become_shapes(self, mesh: Any) -> None:
        with jax.set_mesh(mesh):
            model = Model(nnx.Rngs(0))
            with pytest.warns(DeprecationWarning, match="use `nnx.as_abstract`"):
                by_metadata = nnx.abstract_with_sharding(model)
        as_it_is = nnx.as_abstract(nnx.state(model))
        expected = NamedSharding(mesh, P(None, "model"))
        for leaf in (by_metadata.linear.kernel.get_raw_value(), as_it_is["linear"]["kernel"].get_raw_value()):
            assert isinstance(leaf, jax.ShapeDtypeStruct)
            assert leaf.sharding == expected
        assert by_metadata.tied is by_metadata.linear

    def test_metadata_goes_before_placement(self, mesh: Any) -> None:
        weight = nnx.Param(jnp.zeros((8, 8)), out_sharding=("model",), eager_sharding=False)
        with jax.set_mesh(mesh), pytest.warns(DeprecationWarning, match="use `nnx.as_abstract`"):
            abstract = nnx.abstract_with_sharding(weight)
        assert abstract.get_raw_value().sharding == NamedSharding(mesh, P("model"))
        assert nnx.as_abstract(weight).get_raw_value().sharding == weight.get_raw_value().sharding


def test_what_is_no_array_has_no_spec(mesh: Any) -> None:
    tree = {"a": 3, "b": nnx.Param("text"), "c": jnp.ones(2)}
    specs, named = nnx.get_partition_spec(tree), nnx.get_named_sharding(tree, mesh)
    assert (specs["a"], specs["b"].get_raw_value(), specs["c"]) == (None, None, P())
    assert (named["a"], named["b"].get_raw_value(), named["c"]) == (None, None, NamedSharding(mesh, P()))


def test_no_names_and_no_rules_need_no_mesh() -> None:
    with nnx.logical_axis_rules(None):
        weight = nnx.Param(jnp.ones(2), out_sharding=())
    assert nnx.get_partition_spec(weight).get_raw_value() == P()
