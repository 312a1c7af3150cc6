"""The three modes: how one is chosen, and what each means, for a transform of every shape.

``graph=True, graph_updates=True`` is the default; ``graph_updates=False`` brings back Variables only; ``graph=False``
insists on trees besides.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import nnxkit as nnx
from nets import ALL_MODES, Modes, Net, value
from nnx_rules.errors import GraphError, TransformArgumentError


def _grad(f: Callable[..., Any], **modes: Any) -> Callable[..., Any]:
    """A gradient with respect to an argument of its own; ``f`` gets the others."""

    def loss(x: Any, *objects: Any) -> Any:
        return x * x, f(*objects)

    transformed = nnx.grad(loss, has_aux=True, **modes)
    return lambda *objects: transformed(1.0, *objects)[1]


def _value_and_grad(f: Callable[..., Any], **modes: Any) -> Callable[..., Any]:
    def loss(x: Any, *objects: Any) -> Any:
        return x * x, f(*objects)

    transformed = nnx.value_and_grad(loss, has_aux=True, **modes)
    return lambda *objects: transformed(1.0, *objects)[0][1]


def _vmap(f: Callable[..., Any], **modes: Any) -> Callable[..., Any]:
    return nnx.vmap(f, in_axes=None, out_axes=None, axis_size=2, **modes)


TRANSFORMS = {"jit": nnx.jit, "grad": _grad, "value_and_grad": _value_and_grad, "vmap": _vmap}
"""Each calls a function of objects under a transform."""

Transform = Callable[..., Callable[..., Any]]


@pytest.fixture(params=TRANSFORMS.values(), ids=TRANSFORMS.keys())
def transform(request: pytest.FixtureRequest) -> Transform:
    found: Transform = request.param
    return found


DEFAULT, NO_UPDATES, TREE = ALL_MODES
IN_GRAPH, WITHOUT_UPDATES = [DEFAULT, NO_UPDATES], [NO_UPDATES, TREE]
SETTINGS = {"graph": nnx.set_graph_mode, "graph_updates": nnx.set_graph_updates}


# ---- how a mode is chosen


def mode_of(f: Callable[..., Any]) -> str:
    """The mode of a transform of `edit`, by what it does."""
    net = Net()
    try:
        f(net, net)
    except GraphError:
        return "tree"
    return "default" if net.mode == "edited" else "no-updates"


def edit(one: Net, same: Net) -> None:
    one.mode = "edited"


@contextlib.contextmanager
def settings(modes: Modes) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for name, setting in modes.items():
            stack.enter_context(SETTINGS[name](setting))
        yield


@pytest.mark.parametrize("modes", ALL_MODES)
class TestChoice:
    def expected(self, modes: Modes) -> str:
        return "tree" if modes.get("graph") is False else "no-updates" if modes else "default"

    def test_keyword(self, transform: Transform, modes: Modes) -> None:
        assert mode_of(transform(edit, **modes)) == self.expected(modes)

    def test_context_manager(self, transform: Transform, modes: Modes) -> None:
        with settings(modes):
            found = mode_of(transform(edit))
        assert found == self.expected(modes)
        assert mode_of(transform(edit)) == "default"

    def test_statement(self, transform: Transform, modes: Modes) -> None:
        with settings({"graph": True, "graph_updates": True}):  # restores what the statements change
            for name, setting in modes.items():
                SETTINGS[name](setting)
            assert mode_of(transform(edit)) == self.expected(modes)

    def test_it_is_chosen_when_the_function_is_transformed(self, transform: Transform, modes: Modes) -> None:
        with settings(modes):
            inside = transform(edit)
        outside = transform(edit)

        assert mode_of(inside) == self.expected(modes)
        with settings(modes):
            assert mode_of(outside) == "default"

    def test_keywords_win_over_settings(self, transform: Transform, modes: Modes) -> None:
        keywords = {"graph": True, "graph_updates": True, **modes}

        for setting in ({}, {"graph": False}, {"graph_updates": False}):
            with settings(setting):
                found = mode_of(transform(edit, **keywords))
            assert found == self.expected(modes)


def test_tree_mode_has_no_graph_updates() -> None:
    assert mode_of(nnx.jit(edit, graph=False, graph_updates=True)) == "tree"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [({}, "default"), ({"NNX_GRAPH_UPDATES": "false"}, "no-updates"), ({"NNX_GRAPH_MODE": "0"}, "tree")],
    ids=["default", "no-updates", "tree"],
)
def test_environment(variables: dict[str, str], expected: str) -> None:
    program = f"""
import sys
sys.path[:0] = {sys.path!r}

import jax.numpy as jnp, nnxkit as nnx

class Net(nnx.Module):
    def __init__(self):
        self.weight = nnx.Param(jnp.array(1.0))
        self.mode = "new"

def edit(net, same):
    net.mode = "edited"
    return net.weight * 1

for transform in (nnx.jit, nnx.value_and_grad):
    f = transform(lambda x, *nets: x * edit(*nets))
    net, other = Net(), Net()
    f(1.0, net, other)
    try:
        f(1.0, other, other)
    except ValueError:
        print("tree")
    else:
        print("default" if net.mode == "edited" else "no-updates")
"""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("NNX_")}
    found = subprocess.run(
        [sys.executable, "-c", program], env=environment | variables, capture_output=True, text=True, check=True
    )

    assert found.stdout.split() == [expected, expected]


# ---- what a mode means


class TestEveryMode:
    @pytest.mark.parametrize("modes", ALL_MODES)
    def test_values_and_metadata_of_variables_come_back(self, transform: Transform, modes: Modes) -> None:
        net = Net()
        mean = net.mean

        def f(net: Net) -> None:
            net.mean[...] = net.weight * 3
            net.weight.set_metadata(layer="first")

        transform(f, **modes)(net)

        assert net.mean is mean
        assert value(mean) == 6.0
        assert net.weight.get_metadata("layer") == "first"

    @pytest.mark.parametrize("modes", ALL_MODES)
    def test_captured_objects_are_inputs(self, transform: Transform, modes: Modes) -> None:
        net = Net()

        def f() -> Any:
            net.mean[...] += net.weight
            return net.mean * 1

        transformed = transform(f, **modes)

        assert float(transformed()) == 2.0
        net.weight[...] = jnp.array(5.0)
        assert float(transformed()) == 7.0
        assert value(net.mean) == 7.0

    @pytest.mark.parametrize("modes", ALL_MODES)
    def test_new_objects_in_the_result(self, transform: Transform, modes: Modes) -> None:
        net, param = transform(lambda: (Net(3.0), nnx.Param(jnp.array(1.0))), **modes)()

        assert isinstance(net, Net)
        assert isinstance(param, nnx.Param)
        assert (value(net.weight), value(param), net.mode) == (3.0, 1.0, "train")

    @pytest.mark.parametrize("modes", ALL_MODES)
    def test_keyword_only_parameters(self, modes: Modes) -> None:
        net = Net()

        def f(x: Any, *, scale: Any, net: Net = net) -> Any:
            net.mean[...] += 1
            return x * scale

        for wrapped, x in ((nnx.jit, 2.0), (nnx.grad, 2.0), (nnx.vmap, jnp.ones(3))):
            options = {"in_axes": 0} if wrapped is nnx.vmap else {}
            scale = jnp.ones(3) if wrapped is nnx.vmap else 3.0
            wrapped(f, **options, **modes)(x, scale=scale)

        assert value(net.mean) == 3.0


class TestGraphUpdates:
    """What comes back in the default mode only."""

    def edited(self, net: Net) -> list[str]:
        """What came back of `edit`."""
        return [
            name
            for name, is_there in {
                "bare array": float(net.offset) == 4.0,
                "static": net.mode == "eval",
                "new variable": hasattr(net, "seen"),
                "new submodule": hasattr(net, "child"),
                "deleted": not hasattr(net.inner, "bias"),
                "replaced": value(net.weight) == 6.0,
            }.items()
            if is_there
        ]

    def edit(self, net: Net) -> None:
        net.offset = net.offset * 4
        net.mode = "eval"
        net.seen = nnx.Variable(jnp.array(1.0))
        net.child = Net()
        del net.inner.bias
        net.weight = nnx.Param(net.weight * 3)

    def test_all_edits_come_back(self, transform: Transform) -> None:
        net = Net()

        transform(lambda net: self.edit(net))(net)

        assert self.edited(net) == ["bare array", "static", "new variable", "new submodule", "deleted", "replaced"]

    @pytest.mark.parametrize("modes", WITHOUT_UPDATES)
    def test_no_edit_comes_back(self, transform: Transform, modes: Modes) -> None:
        net = Net()

        transform(lambda net: self.edit(net), **modes)(net)

        assert self.edited(net) == []

    def test_objects_of_the_inputs_in_the_result(self, transform: Transform) -> None:
        net = Net()

        same, weight, new = transform(lambda net: (net, net.weight, nnx.Dict(inner=net.inner)))(net)

        assert same is net
        assert weight is net.weight
        assert new.inner is net.inner

    @pytest.mark.parametrize("modes", WITHOUT_UPDATES)
    def test_objects_of_the_inputs_are_refused_in_the_result(self, transform: Transform, modes: Modes) -> None:
        net = Net()

        with pytest.raises(GraphError, match=r"(?s)returns `.*weight`, a `Param` of its inputs, as `result.*NNX401"):
            transform(lambda net: net.weight, **modes)(net)


class TestGraph:
    """What tree mode does not have."""

    @pytest.mark.parametrize("modes", IN_GRAPH)
    def test_sharing(self, transform: Transform, modes: Modes) -> None:
        net = Net()
        net.tied = net.weight

        def f(net: Net, again: Net) -> None:
            assert net is again
            assert net.tied is net.weight
            net.weight[...] += 1
            net.tied[...] += 1

        transform(f, **modes)(net, net)

        assert value(net.weight) == 4.0
        assert net.tied is net.weight

    def test_sharing_in_an_argument_in_tree_mode(self, transform: Transform) -> None:
        net = Net()
        net.tied = net.weight

        with pytest.raises(GraphError, match=r"(?s)`args\[\d\]\.\w+` and `args\[\d\]\.\w+` are the same.*NNX339"):
            transform(lambda net: None, graph=False)(net)

    @pytest.mark.parametrize("modes", IN_GRAPH)
    def test_cycles(self, transform: Transform, modes: Modes) -> None:
        net = Net()
        net.inner.up = net

        def f(net: Net) -> None:
            net.inner.up.weight[...] += 1

        transform(f, **modes)(net)

        assert value(net.weight) == 3.0

    def test_cycles_in_tree_mode(self, transform: Transform) -> None:
        net = Net()
        net.inner.up = net

        with pytest.raises(GraphError, match=r"(?s)`args\[\d\]` and `args\[\d\]\.inner\.up` are the same.*NNX339"):
            transform(lambda net: None, graph=False)(net)

    @pytest.mark.parametrize("modes", IN_GRAPH)
    def test_objects_that_are_no_jax_pytrees(self, transform: Transform, modes: Modes) -> None:
        plain = Plain()

        transform(lambda plain: plain.weight.set_value(plain.weight + 1), **modes)(plain)

        assert value(plain.weight) == 2.0

    def test_objects_that_are_no_jax_pytrees_in_tree_mode(self, transform: Transform) -> None:
        with pytest.raises(GraphError, match=r"(?s)got a `Plain` in tree mode.*NNX348"):
            transform(lambda plain: None, graph=False)(Plain())

    @pytest.mark.parametrize("modes", IN_GRAPH)
    def test_one_new_variable_twice(self, transform: Transform, modes: Modes) -> None:
        def f() -> Any:
            v = nnx.Param(jnp.array(1.0))
            return v, {"again": v}

        v, rest = transform(f, **modes)()

        assert rest["again"] is v

    def test_one_new_variable_twice_in_tree_mode(self, transform: Transform) -> None:
        def f() -> Any:
            v = nnx.Param(jnp.array(1.0))
            return v, {"again": v}

        with pytest.raises(GraphError, match=r"(?s)are the same.*NNX339"):
            transform(f, graph=False)()


class Plain(nnx.Object):
    def __init__(self) -> None:
        self.weight = nnx.Param(jnp.array(1.0))


class TestPrefixes:
    def test_filters_as_prefixes(self) -> None:
        net = Net()
        axes = nnx.StateAxes({...: None})
        diff = nnx.DiffState(0, nnx.BatchStat)

        nnx.vmap(lambda net, x: net(x), in_axes=(axes, 0))(net, jnp.ones(3))
        gradient = nnx.grad(lambda net: net.mean**2 + net.weight, argnums=diff)(net)

        assert set(gradient) == {"mean"}

    @pytest.mark.parametrize("modes", WITHOUT_UPDATES)
    def test_filters_are_refused_without_graph_updates(self, modes: Modes) -> None:
        net = Net()
        axes = nnx.StateAxes({...: None})

        with pytest.raises(TransformArgumentError, match=r"(?s)`in_axes` of `nnx\.vmap` holds a `StateAxes`.*NNX405"):
            nnx.vmap(lambda net, x: net(x), in_axes=(axes, 0), **modes)(net, jnp.ones(3))
        with pytest.raises(TransformArgumentError, match=r"(?s)`argnums` of `nnx\.grad` holds .*DiffState.*NNX405"):
            nnx.grad(lambda net: net(1.0), argnums=nnx.DiffState(0, nnx.Param), **modes)(net)


class TestGradients:
    def test_a_state_of_the_params_with_graph_updates(self) -> None:
        gradient = nnx.grad(lambda net: net(3.0))(Net())

        assert isinstance(gradient, nnx.State)
        assert jax.tree.map(float, nnx.to_pure_dict(gradient)) == {"weight": 3.0, "inner": {"bias": 1.0}}

    @pytest.mark.parametrize("modes", WITHOUT_UPDATES)
    def test_an_object_of_the_same_type_without(self, modes: Modes) -> None:
        net = Net()

        gradient = nnx.grad(lambda net: net(3.0) + net.offset * 2, **modes)(net)

        assert isinstance(gradient, Net)
        assert gradient is not net
        assert (value(gradient.weight), value(gradient.mean), value(gradient.inner.bias)) == (3.0, 0.0, 1.0)
        assert float(gradient.offset) == 2.0
        assert isinstance(gradient.mean, nnx.BatchStat)
        assert gradient.mode == "train"


class TestConfiguration:
    @pytest.fixture(autouse=True)
    def restored(self) -> Iterator[None]:
        before = nnx.config.nnx_graph_mode, nnx.config.nnx_graph_updates
        yield
        nnx.config.nnx_graph_mode, nnx.config.nnx_graph_updates = before

    def test_it_holds_where_nothing_is_set(self) -> None:
        nnx.config.update("nnx_graph_mode", False)

        twice = nnx.Param(jnp.zeros(2))
        assert not nnx.set_graph_mode.current_value()
        with pytest.raises(GraphError, match="NNX339"):
            nnx.jit(lambda a, b: None)(twice, twice)

    def test_it_holds_in_every_thread(self) -> None:
        nnx.config.nnx_graph_updates = False
        seen: list[bool] = []
        thread = threading.Thread(target=lambda: seen.append(nnx.set_graph_updates.current_value()))
        thread.start()
        thread.join()

        assert seen == [False]

    def test_what_is_set_goes_before_it(self) -> None:
        nnx.config.update("nnx_graph_mode", False)

        with nnx.set_graph_mode(True):
            assert nnx.set_graph_mode.current_value()
        assert not nnx.set_graph_mode.current_value()

    def test_unknown_options(self) -> None:
        with pytest.raises(AttributeError, match="there is no option 'nnx_graph'; the options are nnx_graph_mode and"):
            nnx.config.update("nnx_graph", False)
