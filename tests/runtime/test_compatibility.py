"""What code for flax.nnx relies on beside the rules: forms of a call, key words of errors, modules of old paths."""

from __future__ import annotations

import functools
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import PartitionSpec as P

import nnxkit as nnx
from nnx_rules.errors import GraphError, LayerShapeError, StateMismatchError
from nnx_rules.rules import REGISTRY


class TestSettings:
    def test_decorator_holds_during_the_call(self) -> None:
        @nnx.set_graph_mode(False)
        def inside() -> bool:
            return nnx.set_graph_mode.current_value()

        assert nnx.set_graph_mode.current_value()
        assert not inside()
        assert nnx.set_graph_mode.current_value()

    def test_decorator_undoes_itself_after_an_error(self) -> None:
        @nnx.use_eager_sharding(False)
        def fails() -> None:
            raise KeyError("x")

        with pytest.raises(KeyError, match="x"):
            fails()
        assert nnx.using_eager_sharding()

    def test_var_defaults_as_mapping(self) -> None:
        with nnx.var_defaults(hijax=True):
            assert dict(nnx.var_defaults()) == {"hijax": True, "ref": False}
            assert len(nnx.var_defaults()) == 2
        assert not nnx.var_defaults().hijax


class TestTrees:
    """``to_tree`` and ``from_tree``, and what is built on them."""

    def test_round_trip_keeps_sharing(self) -> None:
        node = nnx.Dict(a=nnx.Param(1.0))
        back = nnx.from_tree(nnx.to_tree((node, 2, {"b": node})))
        assert back[0] is back[2]["b"]
        assert back[0] is not node
        assert (back[0].a.get_value(), back[1]) == (1.0, 2)

    def test_one_object_has_one_prefix(self) -> None:
        node = nnx.Dict(a=nnx.Param(1.0))
        nnx.to_tree((node, [node]), prefix=(0, [0]))
        with pytest.raises(GraphError, match=r"`\[0\]\.a` and `\[1\]\[0\]\.a` are the same object"):
            nnx.to_tree((node, [node]), prefix=(0, [1]))

    def test_merge_inputs_under_vmap(self) -> None:
        @nnx.transforms.general.split_inputs
        @lambda f: jax.vmap(f, in_axes=(0, None), out_axes=((0, None), 0))
        @nnx.transforms.general.merge_inputs
        def step(count: nnx.Variable[jax.Array], scale: nnx.Param[float]) -> jax.Array:
            count[...] += 1
            return count[...] * scale[...]

        count, scale = nnx.Variable(jnp.arange(3.0)), nnx.Param(jnp.array(2.0))
        np.testing.assert_array_equal(step(count, scale), [2.0, 4.0, 6.0])
        np.testing.assert_array_equal(count[...], [1.0, 2.0, 3.0])


class TestErrors:
    def test_end_with_the_key_words_of_flax(self) -> None:
        node = nnx.Dict(a=nnx.Param(1.0))
        with pytest.raises(ValueError, match="in flax: Non-exhaustive filters, got a non-empty remainder"):
            nnx.split(node, nnx.BatchStat)
        with pytest.raises(ValueError, match=r"Duplicate Param found at paths"):
            nnx.split([node.a, node.a], graph=False)

    def test_templates_have_only_known_slots(self) -> None:
        texts = [rule.in_flax for rule in REGISTRY if rule.in_flax]
        assert texts
        assert all(rule.exception is not None for rule in REGISTRY if rule.in_flax)


class TestTransforms:
    @pytest.mark.parametrize("static", [{"static_argnums": 2}, {"static_argnames": "relu"}])
    def test_shardings_leave_static_arguments_out(self, static: dict[str, Any]) -> None:
        mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        sharding = jax.sharding.NamedSharding(mesh, P("x"))
        kernel = nnx.Param(jnp.ones(4))

        @nnx.jit(in_shardings=(sharding, None), **static)
        def f(kernel: nnx.Param[jax.Array], scale: float, relu: bool) -> jax.Array:
            return kernel[...].sum() * scale if relu else jnp.array(0.0)

        assert float(f(kernel, 2.0, True)) == 8
        assert kernel.sharding == sharding  # what gets a sharding has it afterwards

    def test_compiled_partial_takes_the_remaining_arguments(self) -> None:
        model = nnx.Dict(count=nnx.Variable(jnp.array(0)), w=nnx.Param(jnp.array(2.0)))

        def f(model: nnx.Dict, x: jax.Array) -> jax.Array:
            model.count[...] += 1
            return model.w[...] * x

        compiled = nnx.jit_partial(f, model, graph_updates=False).lower(jnp.array(1.0)).compile()
        assert [float(compiled(jnp.array(x))) for x in (1.0, 3.0)] == [2.0, 6.0]
        assert int(model.count[...]) == 2

    def test_broadcast_streams_of_a_scan_repeat(self) -> None:
        rngs = nnx.Rngs(params=0, dropout=1)
        expected = nnx.Rngs(dropout=1).dropout()

        @nnx.scan(in_axes=(nnx.StateAxes({"dropout": None, ...: nnx.Carry}), nnx.Carry), length=3)
        def f(rngs: nnx.Rngs, carry: tuple[()]) -> Any:
            return carry, (rngs.dropout(), rngs.params())

        _, (repeated, drawn) = f(rngs, ())
        assert all(bool(key == expected) for key in repeated)
        assert len({str(jax.random.key_data(key)) for key in drawn}) == 3
        assert (int(rngs.dropout.count[...]), int(rngs.params.count[...])) == (1, 3)
        f(rngs, ())
        assert int(rngs.dropout.count[...]) == 2

    @pytest.mark.parametrize("modes", [{"graph": True, "graph_updates": False}, {"graph": False}])
    def test_split_rngs_returns_a_copy_without_graph_updates(self, modes: dict[str, bool]) -> None:
        rngs = nnx.Rngs(params=0, dropout=1)
        split: Any = nnx.split_rngs(rngs, splits=3, only="params", **modes)
        assert (split.params.key.shape, split.dropout.key.shape) == ((3,), ())
        assert rngs.params.key.shape == ()

    def test_metadata_of_axes_beside_sharding(self) -> None:
        @nnx.vmap(axis_size=2, in_axes=(), transform_metadata={nnx.PARTITION_NAME: "layers", "nick": "n"})
        def make() -> nnx.Param[jax.Array]:
            return nnx.Param(jnp.ones(3), nick=("a",), other=("b",), eager_sharding=False, out_sharding=("c",))

        made = make()
        assert (made.nick, made.other, made.out_sharding) == (("n", "a"), ("b",), ("layers", "c"))


class TestLayers:
    def test_one_shard_of_a_kernel(self) -> None:
        layer = nnx.Linear(4, 2, rngs=nnx.Rngs(0))
        layer.kernel.set_value(layer.kernel[:2])
        assert layer(jnp.ones((1, 2))).shape == (1, 2)
        with pytest.raises(LayerShapeError, match=r"takes `inputs` of shape \(\.\.\., 2\)"):
            layer(jnp.ones((1, 4)))

    @pytest.mark.parametrize("equation", ["d...ab,bc...->ad...c", "defab,bcef->adefc"])
    def test_bias_of_einsum_with_an_ellipsis(self, equation: str) -> None:
        bias = (6, 7, 5)
        layer = nnx.Einsum(equation, (4, 5, 6, 7), bias, rngs=nnx.Rngs(0))
        x = jnp.ones((8, 6, 7, 3, 4))
        without = layer(x)
        layer.bias = nnx.Param(jnp.arange(210.0).reshape(bias))
        np.testing.assert_allclose(layer(x) - without, jnp.broadcast_to(layer.bias[...], without.shape), atol=1e-3)

    def test_cache_with_wide_integers(self) -> None:
        with jax.enable_x64(True):
            layer = nnx.MultiHeadAttention(2, 4, decode=True, rngs=nnx.Rngs(0))
            layer.init_cache((1, 3, 4))
            assert [layer(jnp.ones((1, 1, 4), jnp.float32)).shape for _ in range(2)] == [(1, 1, 4)] * 2

    def test_nothing_through_an_empty_sequential(self) -> None:
        empty = nnx.Sequential()
        assert (empty(), empty(1), empty(1, 2), empty(x=1)) == (None, 1, (1, 2), {"x": 1})

    def test_sequential_hands_arguments_to_those_who_take_them(self) -> None:
        seen: list[Any] = []

        def double(x: Any, *, scale: Any = 2) -> Any:
            return {"x": x * scale, "y": 1}

        def add(x: Any, y: Any, **more: Any) -> Any:
            seen.append(more)
            return x + y

        layers = nnx.Sequential(nnx.Linear(2, 2, rngs=nnx.Rngs(0)), nnx.Dropout(0.5), nnx.relu)
        assert layers(jnp.ones((1, 2)), deterministic=True, unknown=1).shape == (1, 2)
        assert list(layers) == list(layers.layers)
        assert nnx.Sequential(double, add)(3, scale=5, tag="t") == 16
        assert seen == [{"scale": 5, "tag": "t"}]
        # What the first layer got by name is not handed on to the argument that the second got from it.
        assert nnx.Sequential(lambda x: x + 1, lambda x: x * 10)(x=1) == 20
        with pytest.raises(TypeError, match=r"multiple values for arguments \['scale'\] in Sequential\[1\]"):
            nnx.Sequential(lambda x: {"x": x, "scale": 1}, double)(3, scale=2)

    def test_recurrent_dropout_is_one_mask(self) -> None:
        class Cell(nnx.SimpleCell):
            def __init__(self, rngs: nnx.Rngs) -> None:
                super().__init__(2, 2, rngs=rngs)
                self.drop = nnx.Dropout(0.5, rngs=rngs)

            def __call__(self, carry: Any, x: Any) -> Any:
                return carry, self.drop(x)

        rnn = nnx.RNN(Cell(nnx.Rngs(0, dropout=1)), broadcast_rngs="dropout")
        out = np.asarray(rnn(jnp.ones((1, 8, 2)))) != 0
        assert (out == out[:, :1]).all()


class TestRotary:
    @staticmethod
    def rotated(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """By complex numbers: an independent way."""
        half = x.shape[-1] // 2
        angles = positions[..., None] * 10000.0 ** (-np.arange(half) / half)
        turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
        return np.concatenate([turned.real, turned.imag], -1)

    @pytest.mark.parametrize("sizes", [{}, {"embedding_size": 6, "max_seq_len": 9}])
    def test_values(self, sizes: dict[str, int]) -> None:
        x = np.random.default_rng(0).normal(size=(2, 5, 6))
        rope = nnx.RoPE(**sizes)
        np.testing.assert_allclose(rope(jnp.asarray(x)), self.rotated(x, np.arange(5)), atol=1e-5)
        places = np.array([[3, 1, 4, 1, 5], [0, 2, 2, 7, 8]])
        np.testing.assert_allclose(rope(jnp.asarray(x), jnp.asarray(places)), self.rotated(x, places), atol=1e-5)

    def test_no_array_is_promoted_to_another_rank(self) -> None:
        attend = functools.partial(nnx.dot_product_attention_with_rope, rope=nnx.RoPE())
        layer = nnx.MultiHeadAttention(2, 8, attention_fn=attend, decode=False, rngs=nnx.Rngs(0))
        with jax.numpy_rank_promotion("raise"):
            assert layer(jnp.ones((1, 3, 8))).shape == (1, 3, 8)

    def test_attention_depends_on_distances_only(self) -> None:
        q, k = (jax.random.normal(jax.random.key(seed), (2, 5, 3, 4)) for seed in (0, 1))
        outputs = [
            nnx.dot_product_attention_with_rope(q, k, k, rope=nnx.RoPE(), input_positions=jnp.arange(5) + shift)
            for shift in (0, 11)
        ]
        np.testing.assert_allclose(*outputs, atol=1e-5)
        assert not np.allclose(outputs[0], nnx.dot_product_attention(q, k, k), atol=1e-2)

    def test_layers_pass_places_on(self) -> None:
        attend = functools.partial(nnx.dot_product_attention_with_rope, rope=nnx.RoPE())
        layer = nnx.MultiHeadAttention(2, 8, attention_fn=attend, decode=False, rngs=nnx.Rngs(0))
        x = jax.random.normal(jax.random.key(0), (1, 5, 8))
        places = jnp.arange(5)
        np.testing.assert_allclose(layer(x, input_positions=places + 11), layer(x), atol=1e-5)
        assert not np.allclose(layer(x, input_positions=places[::-1] ** 2), layer(x), atol=1e-5)

    def test_arguments(self) -> None:
        with pytest.raises(ValueError, match="one of `embedding_size` and `max_seq_len`"):
            nnx.RoPE(embedding_size=4)
        with pytest.raises(ValueError, match="3 features have no pairs"):
            nnx.RoPE()(jnp.ones((2, 3)))
        with pytest.raises(ValueError, match="for length 2 and 4 features"):
            nnx.RoPE(embedding_size=4, max_seq_len=2)(jnp.ones((3, 4)))


class TestTraining:
    def test_masks_by_metric(self) -> None:
        class Strict(nnx.metrics.Average):
            def update(self, *, values: jax.Array) -> None:  # takes no mask
                super().update(values=values)

        metrics = nnx.MultiMetric(all=Strict(), some=nnx.metrics.Average())
        metrics.update(values=jnp.array([1.0, 3.0]), mask={"some": jnp.array([False, True])})
        assert {name: float(value) for name, value in metrics.compute().items()} == {"all": 2, "some": 3}

    def test_optax_arguments_are_values(self) -> None:
        model = nnx.Dict(w=nnx.Param(jnp.array([1.0, -2.0])))
        optimizer = nnx.Optimizer(model, optax.lbfgs(), wrt=nnx.Param)
        graphdef = nnx.graphdef(model)

        def loss(state: Any) -> jax.Array:
            return jnp.sum(nnx.merge(graphdef, state).w[...] ** 2)

        for _ in range(3):
            value, grads = nnx.value_and_grad(lambda model: jnp.sum(model.w[...] ** 2))(model)
            optimizer.update(model, grads, grad=grads, value=value, value_fn=loss)
        np.testing.assert_allclose(model.w[...], 0.0, atol=1e-5)

    def test_sharding_of_optimizer_state(self) -> None:
        model = nnx.Linear(4, 2, rngs=nnx.Rngs(0), kernel_metadata={"optimizer_sharding": ("x", None)})
        mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        with jax.set_mesh(mesh):
            optimizer = nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)
        kept = optimizer.opt_state[0].mu["kernel"]
        assert kept.sharding.spec == P("x", None)
        assert kept.out_sharding == ("x", None)
        assert not kept.has_metadata("optimizer_sharding")


class TestStructure:
    def test_apply_of_a_graphdef(self) -> None:
        graphdef, state = nnx.split(nnx.Linear(2, 3, rngs=nnx.Rngs(0)))
        y, (after, _) = graphdef.apply(state)(jnp.ones((1, 2)))
        assert y.shape == (1, 3)
        assert after == graphdef

    def test_the_mode_of_what_a_call_leaves(self) -> None:
        class Sharing(nnx.Module):
            def __init__(self) -> None:
                self.a = nnx.Param(1.0)

            def share(self) -> None:
                self.b = self.a

        graphdef, state = nnx.split(Sharing())
        assert nnx.merge(*graphdef.apply(state).share()[1]).b is not None
        with pytest.raises(ValueError, match="`a` and `b` are the same object"):
            graphdef.apply(state, graph=False).share()

    def test_children_are_graph_objects(self) -> None:
        node = nnx.Dict(a=nnx.Param(1.0), b=nnx.List([1]), c=jnp.ones(2))
        node.plain = nnx.data([nnx.Param(2.0)])
        assert [key for key, _ in nnx.iter_children(node)] == ["a", "b"]


class TestAbstract:
    def test_sharding_after_eval_shape(self) -> None:
        mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        with jax.set_mesh(mesh):
            metadata = {"out_sharding": ("x", None)}
            abstract = nnx.eval_shape(lambda: nnx.Linear(2, 2, rngs=nnx.Rngs(0), kernel_metadata=metadata))
            abstract = nnx.as_abstract(abstract)
        assert abstract.kernel.sharding.spec == P("x", None)

    def test_a_sharding_for_names(self) -> None:
        mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        sharding = jax.sharding.NamedSharding(mesh, P("x"))
        assert nnx.Variable(jnp.ones(2), out_sharding=sharding).sharding == sharding

    def test_rules_of_the_variable_go_before_those_of_the_context(self) -> None:
        variable = nnx.Param(
            jnp.ones((2, 2)), out_sharding=("a", "b"), sharding_rules=(("a", "x"),), eager_sharding=False
        )
        with nnx.logical_axis_rules([("a", "z"), ("b", "y")]):
            assert nnx.get_partition_spec(variable).get_raw_value() == P("x", "y")


class TestBridge:
    def test_needs_flax(self) -> None:
        program = "import sys; sys.modules['flax'] = None; import nnxkit; nnxkit.bridge"
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert result.stderr.strip().splitlines()[-1].startswith("ImportError: nnx.bridge needs flax")

    def test_linen_in_nnx(self) -> None:
        linen = pytest.importorskip("flax.linen")
        x = jnp.ones((2, 3))
        dense = linen.Dense(4)
        model = nnx.bridge.ToNNX(dense, rngs=nnx.Rngs(0)).lazy_init(x)
        variables = {"params": {"kernel": model.kernel[...], "bias": model.bias[...]}}
        np.testing.assert_array_equal(model(x), dense.apply(variables, x))
        assert isinstance(model.kernel, nnx.Param)
        grads = nnx.grad(lambda model: model(x).sum())(model)
        np.testing.assert_allclose(grads.kernel[...], jnp.full((3, 4), 2.0))

    def test_a_key_makes_the_streams_of_a_linen_module(self) -> None:
        linen = pytest.importorskip("flax.linen")
        from flax import nnx as flax_nnx

        x, key = jnp.ones((2, 3)), jax.random.key(0)
        ours = nnx.bridge.ToNNX(linen.Dense(4), rngs=key).lazy_init(x)
        theirs = flax_nnx.bridge.ToNNX(linen.Dense(4), rngs=key).lazy_init(x)
        np.testing.assert_array_equal(ours.kernel[...], theirs.kernel[...])

    def test_state_of_linen_comes_back(self) -> None:
        linen = pytest.importorskip("flax.linen")
        x = jnp.arange(6.0).reshape(3, 2)
        model = nnx.bridge.ToNNX(linen.BatchNorm(use_running_average=False), rngs=nnx.Rngs(0)).lazy_init(x)
        assert isinstance(model.mean, nnx.BatchStat)
        mean = model.mean
        model(x, mutable=["batch_stats"])
        assert model.mean is mean
        np.testing.assert_allclose(mean[...], 0.01 * x.mean(0), rtol=1e-5)

    def test_boxes_of_linen_come_back(self) -> None:
        from flax import linen

        box = linen.LogicallyPartitioned(jnp.ones(2), ("in",))
        variable = nnx.bridge.variables.to_nnx_var("params", box)
        assert (type(variable), variable.out_sharding) == (nnx.Param, ("in",))
        assert nnx.bridge.variables.to_linen_var(variable) == box

    def test_nnx_in_linen(self) -> None:
        pytest.importorskip("flax.linen")

        class Net(nnx.Module):
            def __init__(self, rngs: nnx.Rngs) -> None:
                self.layers = nnx.List([nnx.Linear(2, 2, rngs=rngs)])
                self.norm = nnx.BatchNorm(2, rngs=rngs)
                self.drop = nnx.Dropout(0.5, rngs=rngs)

            def __call__(self, x: jax.Array) -> jax.Array:
                return self.drop(self.norm(self.layers[0](x)))

        x = jnp.arange(6.0).reshape(3, 2)
        model: Any = nnx.bridge.to_linen(Net)
        variables = model.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, x)
        assert sorted(variables) == ["batch_stats", "params"]
        assert variables["params"]["layers"][0]["kernel"].shape == (2, 2)

        def call(seed: int) -> Any:
            return model.apply(variables, x, rngs={"dropout": jax.random.key(seed)}, mutable=["batch_stats"])

        (y, updates), (again, _), (other, _) = call(1), call(1), call(2)
        np.testing.assert_array_equal(y, again)
        assert not np.array_equal(y, other)
        assert np.any(updates["batch_stats"]["norm"]["mean"] != variables["batch_stats"]["norm"]["mean"])

    def test_keys_of_lists_are_numbers_or_what_a_file_made_of_them(self) -> None:
        serialization = pytest.importorskip("flax.serialization")
        from flax import nnx as flax_nnx

        def made(library: Any) -> Any:
            class Net(library.Module):  # type: ignore[misc, unused-ignore]
                def __init__(self, rngs: Any) -> None:
                    self.norms = library.List([library.BatchNorm(2, rngs=rngs)])

                def __call__(self, x: jax.Array) -> Any:
                    return self.norms[0](x)

            return library.bridge.to_linen(Net)

        x, key = jnp.arange(6.0).reshape(3, 2), jax.random.key(0)
        ours, theirs = made(nnx), made(flax_nnx)
        variables = ours.init(key, x)
        assert jax.tree.structure(variables) == jax.tree.structure(theirs.init(key, x))
        read = serialization.to_state_dict(variables)
        assert list(read["params"]["norms"]) == ["0"]
        for given in (variables, read):
            y, updates = ours.apply(given, x, mutable=["batch_stats"])
            np.testing.assert_array_equal(y, theirs.apply(variables, x, mutable=["batch_stats"])[0])
            assert jax.tree.structure(updates["batch_stats"]) == jax.tree.structure(given["batch_stats"])

    def test_variables_that_are_missing_are_named(self) -> None:
        linen = pytest.importorskip("flax.linen")

        class Net(linen.Module):  # type: ignore[misc, unused-ignore]
            @linen.compact
            def __call__(self, x: jax.Array) -> Any:
                return nnx.bridge.to_linen(nnx.BatchNorm, 2, name="norm")(x)

        x = jnp.ones((3, 2))
        for model, inside in ((nnx.bridge.to_linen(nnx.BatchNorm, 2), lambda v: v), (Net(), lambda v: {"norm": v})):
            variables = model.init(jax.random.key(0), x)
            with pytest.raises(
                StateMismatchError, match=r"`BatchNorm` do not hold `batch_stats.mean`, `batch_stats.var`"
            ):
                model.apply({"params": variables["params"]}, x)
            scale = {"scale": jnp.ones(2)}
            with pytest.raises(StateMismatchError, match=r"do not hold `params.bias`\n"):
                model.apply({**variables, "params": inside(scale)}, x)
            with pytest.raises(
                StateMismatchError, match=r"`params.bias`, `batch_stats.mean`, `params.scale` and 1 more"
            ):
                model.apply({}, x)


def test_a_combination_of_filters_has_a_docstring() -> None:
    frozen = nnx.Any(nnx.BatchStat, nnx.PathContains("frozen"))
    frozen.__doc__ = "What is not trained."
    assert frozen.__doc__ == "What is not trained."
    assert frozen == nnx.Any(nnx.BatchStat, nnx.PathContains("frozen"))
    assert hash(frozen) == hash(nnx.Any(nnx.BatchStat, nnx.PathContains("frozen")))


def test_the_trace_that_an_object_belongs_to() -> None:
    here = nnx.tracers.TraceState()
    assert here.is_valid()
    seen: list[bool] = []
    jax.jit(lambda x: seen.append(here.is_valid()))(1.0)
    assert seen == [False]


def test_a_class_in_the_place_of_a_module_is_called_a_class() -> None:
    with pytest.raises(ValueError, match="takes a module, and got the class `Linear`"):
        nnx.tabulate(nnx.Linear, jnp.ones(2))
    with pytest.raises(TypeError, match="and got the class `Linear`"):
        nnx.state(nnx.Linear)
