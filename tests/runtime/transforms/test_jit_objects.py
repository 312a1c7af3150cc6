"""``nnx.jit`` and objects: what of them comes back from a compiled function."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import nnxkit as nnx
from nets import ALL_MODES, Modes, Net, value
from nnx_rules.errors import GraphError

# ---- values


class TestValues:
    @pytest.mark.parametrize("modes", ALL_MODES)
    def test_variables_that_were_written_come_back(self, modes: Modes) -> None:
        @nnx.jit(**modes)
        def f(net: Net, x: Any) -> Any:
            net.mean[...] += x
            return net(x)

        net = Net()
        weight, mean = net.weight, net.mean

        assert float(f(net, 3.0)) == 16.0
        assert float(f(net, 4.0)) == 18.0
        assert value(net.mean) == 7.0
        assert net.weight is weight
        assert net.mean is mean

    @pytest.mark.parametrize("modes", ALL_MODES)
    def test_variables_that_were_only_read_keep_their_arrays(self, modes: Modes) -> None:
        net = Net()
        array = net.weight.get_raw_value()

        nnx.jit(lambda net: net(1.0), **modes)(net)

        assert net.weight.get_raw_value() is array

    @pytest.mark.parametrize("modes", ALL_MODES)
    def test_other_shape_and_dtype_come_back(self, modes: Modes) -> None:
        net = Net()

        nnx.jit(lambda net: net.weight.set_value(jnp.ones(3, jnp.int32)), **modes)(net)

        assert net.weight.shape == (3,)
        assert net.weight.dtype == jnp.int32

    @pytest.mark.parametrize("modes", ALL_MODES)
    @pytest.mark.parametrize(
        ("held", "new"),
        [
            ({"a": 1.0, "b": [2.0]}, {"a": 2.0, "b": [4.0]}),
            (3, 6),
            (None, None),
            ((1, None), (2, None)),
            ({}, {}),
        ],
    )
    def test_a_variable_may_hold_a_pytree(self, modes: Modes, held: Any, new: Any) -> None:
        v = nnx.Variable(held)

        @nnx.jit(**modes)
        def double(v: Any) -> None:
            v.set_value(jax.tree.map(lambda leaf: leaf * 2, v.get_value()))

        double(v)

        assert jax.tree.map(float, v.get_raw_value()) == jax.tree.map(float, new)
        assert jax.tree.structure(v.get_raw_value()) == jax.tree.structure(held)

    @pytest.mark.parametrize("modes", ALL_MODES)
    def test_a_container_in_a_variable_may_be_edited_in_place(self, modes: Modes) -> None:
        v = nnx.Variable({"a": jnp.array(1.0)})

        @nnx.jit(**modes)
        def edit(v: Any) -> None:
            v["a"] *= 5
            v["b"] = jnp.array(7.0)

        edit(v)

        assert jax.tree.map(float, v.get_raw_value()) == {"a": 5.0, "b": 7.0}

    @pytest.mark.parametrize("modes", ALL_MODES[:2])
    def test_a_variable_over_a_reference_is_written_through_it(self, modes: Modes) -> None:
        v = nnx.Variable(jnp.array(1.0), ref=True)
        ref = v.get_raw_value()

        @nnx.jit(**modes)
        def up(v: Any) -> Any:
            v[...] += 1
            return v[...] * 1

        assert float(up(v)) == 2.0
        assert float(up(v)) == 3.0
        assert v.get_raw_value() is ref
        assert float(ref[...]) == 3.0

    def test_references_and_arrays_are_told_apart_under_a_trace(self) -> None:
        """A tracer of one is of the same class as a tracer of the other."""
        reference, array = nnx.Variable(jnp.array(1.0), ref=True), nnx.Variable(jnp.array(2.0))

        @nnx.jit
        def copies(a: Any, b: Any, c: Any) -> Any:
            results = []
            for v in (a, b, c):
                copy = nnx.clone(v)
                copy[...] += 1
                results.append(v[...] + 0)
            return results

        # Each is the first in its turn.
        for variables in ((reference, array, reference), (array, reference, array)):
            assert [float(x) for x in copies(*variables)] == [float(v[...]) for v in variables]

    def test_a_reference_among_the_arguments(self) -> None:
        ref = jax.new_ref(jnp.array(1.0))

        @nnx.jit
        def up(ref: Any, net: Net) -> None:
            ref[...] += net.weight[...]

        up(ref, Net())

        assert float(ref[...]) == 3.0

    @pytest.mark.parametrize("modes", ALL_MODES)
    def test_variables_in_references_that_are_made_inside(self, modes: Modes) -> None:
        made = nnx.jit(lambda x: nnx.Dict(a=nnx.Param(x, ref=True)), **modes)(jnp.ones(2))

        assert isinstance(made.a.get_raw_value(), jax.Ref)
        made.a[...] += 1
        assert made.a[...].tolist() == [2.0, 2.0]

    def test_a_bare_array_that_was_written_comes_back_with_graph_updates_only(self) -> None:
        def up(net: Net) -> None:
            net.offset += 1

        net = Net()

        nnx.jit(up)(net)
        assert float(net.offset) == 2.0
        nnx.jit(up, graph_updates=False)(net)
        nnx.jit(up, graph=False)(net)
        assert float(net.offset) == 2.0

    @pytest.mark.parametrize("modes", ALL_MODES)
    def test_metadata_that_was_set_comes_back(self, modes: Modes) -> None:
        net = Net()

        @nnx.jit(**modes)
        def name(net: Net) -> None:
            net.weight.set_metadata(layer="first")

        name(net)

        assert net.weight.get_metadata("layer") == "first"
        assert value(net.weight) == 2.0


# ---- structure


class TestGraphEdits:
    """With graph updates, whatever the function does to the structure is done to the caller's objects."""

    def test_static_attribute(self) -> None:
        net = Net()

        @nnx.jit
        def f(net: Net) -> None:
            net.mode = "eval"

        f(net)

        assert net.mode == "eval"

    def test_new_attributes(self) -> None:
        net = Net()

        @nnx.jit
        def f(net: Net) -> Any:
            net.seen = nnx.Variable(net.weight * 3)
            net.child = Net(5.0)
            net.name = "new"
            return net.seen[...]

        assert float(f(net)) == 6.0
        assert isinstance(net.seen, nnx.Variable)
        assert value(net.seen) == 6.0
        assert isinstance(net.child, Net)
        assert value(net.child.weight) == 5.0
        assert net.name == "new"
        net.seen[...] = jnp.array(1.0)  # belongs to the caller's trace

    def test_deleted_attribute(self) -> None:
        net = Net()

        @nnx.jit
        def f(net: Net) -> None:
            del net.mean

        f(net)

        assert not hasattr(net, "mean")
        assert value(net.weight) == 2.0

    def test_replaced_variable(self) -> None:
        net = Net()
        before = net.weight

        @nnx.jit
        def f(net: Net) -> None:
            net.weight = nnx.Param(net.weight * 2)

        f(net)

        assert net.weight is not before
        assert value(net.weight) == 4.0
        assert value(before) == 2.0

    def test_replaced_submodule(self) -> None:
        net = Net()
        before = net.inner

        @nnx.jit
        def f(net: Net) -> None:
            net.inner = nnx.Dict(bias=nnx.Param(net.inner.bias + 1), extra=nnx.Param(jnp.zeros(2)))

        f(net)

        assert net.inner is not before
        assert value(net.inner.bias) == 11.0
        assert net.inner.extra.shape == (2,)

    def test_swapped_submodules_are_the_very_objects(self) -> None:
        a, b = Net(1.0), Net(2.0)
        inner_a, inner_b = a.inner, b.inner

        @nnx.jit
        def swap(a: Net, b: Net) -> None:
            a.inner, b.inner = b.inner, a.inner

        swap(a, b)

        assert a.inner is inner_b
        assert b.inner is inner_a
        swap(a, b)
        assert a.inner is inner_a

    def test_swapped_variables(self) -> None:
        net = Net()
        weight, mean = net.weight, net.mean

        @nnx.jit
        def swap(net: Net) -> None:
            net.weight, net.mean = net.mean, net.weight

        swap(net)

        assert net.weight is mean
        assert net.mean is weight
        assert (value(weight), value(mean)) == (2.0, 0.0)

    def test_moved_attribute(self) -> None:
        net = Net()
        bias = net.inner.bias

        @nnx.jit
        def move(net: Net) -> None:
            net.bias = net.inner.bias
            del net.inner

        move(net)

        assert net.bias is bias
        assert not hasattr(net, "inner")

    def test_new_sharing(self) -> None:
        net = Net()

        @nnx.jit
        def tie(net: Net) -> None:
            net.tied = net.weight

        tie(net)

        assert net.tied is net.weight

    def test_appended_element(self) -> None:
        net = nnx.Dict(layers=nnx.List([nnx.Param(jnp.array(1.0))]))

        @nnx.jit
        def grow(net: Any) -> None:
            net.layers.append(nnx.Param(net.layers[0] + 1))

        grow(net)
        grow(net)

        assert [value(layer) for layer in net.layers] == [1.0, 2.0, 2.0]

    def test_element_appended_to_a_plain_list(self) -> None:
        class Holder(nnx.Module):
            def __init__(self) -> None:
                self.history = nnx.data([jnp.array(1.0)])

        holder = Holder()

        @nnx.jit
        def note(holder: Holder) -> None:
            holder.history.append(holder.history[-1] * 2)

        note(holder)
        note(holder)

        assert [float(item) for item in holder.history] == [1.0, 2.0, 4.0]

    def test_values_written_together_with_edits(self) -> None:
        net = Net()

        @nnx.jit
        def f(net: Net) -> None:
            net.mean[...] = net.weight * 2
            net.offset = net.offset + 4
            net.mode = "other"
            net.weight.set_metadata(layer=1)

        f(net)

        assert (value(net.mean), float(net.offset), net.mode) == (4.0, 5.0, "other")
        assert net.weight.get_metadata("layer") == 1

    @pytest.mark.parametrize("modes", ALL_MODES[1:])
    def test_edits_do_not_come_back_without_graph_updates(self, modes: Modes) -> None:
        net = Net()
        before = net.weight

        @nnx.jit(**modes)
        def f(net: Net) -> None:
            net.mean[...] += 1
            net.mode = "eval"
            net.extra = nnx.Param(jnp.zeros(2))
            net.weight = nnx.Param(net.weight * 2)

        f(net)

        assert net.mode == "train"
        assert not hasattr(net, "extra")
        assert net.weight is before
        assert value(net.weight) == 2.0
        assert value(net.mean) == 1.0


class TestSharing:
    def test_shared_references_survive(self) -> None:
        class Block(nnx.Module):
            def __init__(self, linear: nnx.Linear, rngs: nnx.Rngs) -> None:
                self.linear = linear
                self.norm = nnx.BatchNorm(2, rngs=rngs)

            def __call__(self, x: Any) -> Any:
                return nnx.relu(self.norm(self.linear(x)))

        class Model(nnx.Module):
            def __init__(self, rngs: nnx.Rngs) -> None:
                linear = nnx.Linear(2, 2, rngs=rngs)
                self.block1 = Block(linear, rngs)
                self.block2 = Block(linear, rngs)

            def __call__(self, x: Any) -> Any:
                return self.block2(self.block1(x))

        @nnx.jit
        def step(model: Model, x: Any) -> Any:
            assert model.block1.linear is model.block2.linear
            return model(x)

        model = Model(nnx.Rngs(0))

        step(model, jnp.ones((3, 2)))

        assert model.block1.linear is model.block2.linear
        assert not (model.block1.norm.mean[...] == 0).all()

    @pytest.mark.parametrize("modes", ALL_MODES[:2])
    def test_one_object_as_two_arguments(self, modes: Modes) -> None:
        @nnx.jit(**modes)
        def f(a: Net, b: Net, weight: Any) -> Any:
            assert a is b
            assert a.weight is weight
            a.weight[...] += 1
            return b.weight * 1

        net = Net()

        assert float(f(net, net, net.weight)) == 3.0
        assert value(net.weight) == 3.0

    def test_sharing_that_begins_later_is_another_structure(self) -> None:
        @nnx.jit
        def f(a: Net, b: Net) -> Any:
            a.weight[...] += 1
            b.weight[...] += 1
            return a is b

        one, two = Net(1.0), Net(5.0)

        assert not f(one, two)
        assert f(one, one)
        assert not f(one, two)
        assert (value(one.weight), value(two.weight)) == (5.0, 7.0)

    def test_a_cycle(self) -> None:
        net = Net()
        net.inner.up = net

        @nnx.jit
        def f(net: Net) -> None:
            assert net.inner.up is net
            net.inner.up.weight[...] = jnp.array(9.0)

        f(net)

        assert value(net.weight) == 9.0
        assert net.inner.up is net

    def test_tree_mode_refuses_sharing_with_both_paths(self) -> None:
        net = Net()
        net.tied = net.weight

        with pytest.raises(GraphError, match=r"`args\[0\]\.tied` and `args\[0\]\.weight`|tied.*weight"):
            nnx.jit(lambda net: net(1.0), graph=False)(net)

    def test_tree_mode_refuses_one_object_as_two_arguments(self) -> None:
        net = Net()

        with pytest.raises(GraphError, match=r"(?s)args\[0\].*args\[1\]"):
            nnx.jit(lambda a, b: a(1.0) + b(1.0), graph=False)(net, net)

    def test_an_object_is_captured_and_passed(self) -> None:
        net = Net()

        @nnx.jit
        def f(passed: Net) -> Any:
            assert passed is net
            passed.weight[...] += 1
            return net.weight * 1

        assert float(f(net)) == 3.0
        assert value(net.weight) == 3.0


# ---- results


class TestResults:
    def test_objects_of_the_inputs_are_the_very_objects(self) -> None:
        net = Net()

        @nnx.jit
        def f(net: Net) -> Any:
            net.weight[...] += 1
            return {"net": net, "weight": net.weight, "inner": [net.inner]}

        result = f(net)

        assert result["net"] is net
        assert result["weight"] is net.weight
        assert result["inner"][0] is net.inner
        assert value(net.weight) == 3.0

    def test_captured_objects_in_the_result(self) -> None:
        net = Net()

        assert nnx.jit(lambda: net)() is net
        assert nnx.jit(lambda: (net.weight, 1))()[0] is net.weight

    @pytest.mark.parametrize("modes", ALL_MODES)
    def test_new_objects(self, modes: Modes) -> None:
        @nnx.jit(**modes)
        def make(x: Any) -> Any:
            return Net(x), nnx.Param(x * 2), nnx.Rngs(3)

        net, param, rngs = make(4.0)

        assert isinstance(net, Net)
        assert value(net.weight) == 4.0
        assert net.mode == "train"
        assert isinstance(param, nnx.Param)
        assert value(param) == 8.0
        assert rngs.normal((2,)).tolist() == nnx.Rngs(3).normal((2,)).tolist()
        net.weight[...] = jnp.array(1.0)

    def test_a_new_object_that_shares_with_the_inputs(self) -> None:
        net = Net()

        @nnx.jit
        def wrap(net: Net) -> Any:
            return nnx.Dict(net=net, own=nnx.Param(net.weight * 2), tied=net.weight)

        result = wrap(net)

        assert result.net is net
        assert result.tied is net.weight
        assert value(result.own) == 4.0

    def test_a_new_variable_twice_stays_one(self) -> None:
        @nnx.jit
        def make(x: Any) -> Any:
            v = nnx.Param(x)
            return v, {"again": v}

        v, rest = make(1.0)

        assert rest["again"] is v

    @pytest.mark.parametrize("modes", ALL_MODES)
    def test_states_and_graphdefs(self, modes: Modes) -> None:
        net = Net()

        graphdef, state = nnx.jit(lambda net: nnx.split(nnx.clone(net)), **modes)(net)
        doubled = nnx.jit(lambda state: jax.tree.map(lambda leaf: leaf * 2, state), **modes)(state)
        merged = nnx.jit(lambda *split: nnx.merge(*split, copy=True), **modes)(graphdef, doubled)

        assert isinstance(doubled, nnx.State)
        assert graphdef == nnx.graphdef(net)
        assert value(merged.weight) == 4.0
        assert value(net.weight) == 2.0

    @pytest.mark.parametrize("modes", ALL_MODES[1:])
    def test_without_graph_updates_objects_of_the_inputs_are_refused(self, modes: Modes) -> None:
        net = Net()

        with pytest.raises(GraphError, match=r"(?s)returns `args\[0\]\.inner\.bias`, a `Param` .* `result\.bias`"):
            nnx.jit(lambda net: net.inner, **modes)(net)
        with pytest.raises(GraphError, match=r"returns `net\.weight`, a `Param`"):
            nnx.jit(lambda: net.weight, **modes)()

    def test_static_result_pytrees(self) -> None:
        assert nnx.jit(lambda: None)() is None
        assert nnx.jit(lambda: ())() == ()
        assert nnx.jit(lambda x: {"a": [x, None]})(1.0) == {"a": [1.0, None]}

    def test_same_as_the_function_itself(self) -> None:
        def step(net: Net, x: Any) -> Any:
            net.mean[...] = 0.5 * net.mean + x
            net.mode = "used"
            net.offset = net.offset * x
            return net(x), net.mean * 1

        plain, compiled = Net(), Net()

        for x in (1.0, 2.0, 3.0):
            assert nnx.jit(step)(compiled, x) == step(plain, x)
        assert nnx.graphdef(plain) == nnx.graphdef(compiled)
        assert jax.tree.leaves(nnx.state(plain)) == jax.tree.leaves(nnx.state(compiled))
