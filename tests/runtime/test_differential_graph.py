"""Random object graphs, built on nnxkit and on flax.nnx: the graph functions agree, or the difference is one that is
asserted here and stands in `docs/differences.md` (`test_differences.py` checks that).

A graph is drawn as a description (`Blueprint`) and built twice. What the libraries return is brought to plain data
(`facts`) and compared: paths, types, values, sharing, and order. Shared nodes and Variables, cycles through modules,
bare arrays and static values all occur.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import nnxkit

flax_nnx = pytest.importorskip("flax.nnx")

VARIABLES = ("Param", "BatchStat", "Cache", "Intermediate", "Perturbation")
NAMES = ("a", "b", "c", "Z", "_hidden", "a10", "a9")


@dataclass(frozen=True)
class Blueprint:
    """A graph: modules by number, each a kind and its children; number 0 is the root."""

    modules: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]


statics = st.one_of(st.integers(-3, 3), st.sampled_from(["x", "yy", True, 2.5, (1, "x"), ()]), st.none()).map(
    lambda v: ("static", v)
)
variables = st.tuples(st.sampled_from(VARIABLES), st.integers(0, 3)).map(lambda v: ("variable", v))
arrays = st.integers(0, 2).map(lambda v: ("array", v))


def children(count: int) -> st.SearchStrategy[Any]:
    modules = st.integers(0, count - 1).map(lambda v: ("module", v))
    simple = st.one_of(variables, arrays, modules)
    boxed = st.recursive(
        st.one_of(simple, statics),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda v: ("plain_list", tuple(v))),
            st.lists(inner, max_size=3).map(lambda v: ("plain_tuple", tuple(v))),
            st.dictionaries(st.sampled_from("pqr"), inner, max_size=3).map(lambda v: ("plain_dict", tuple(v.items()))),
        ),
        max_leaves=4,
    ).map(lambda v: ("data", v))
    return st.one_of(statics, simple, simple, boxed)


@st.composite
def blueprints(draw: st.DrawFn, kinds: tuple[str, ...] = ("module", "list", "dict")) -> Blueprint:
    count = draw(st.integers(1, 4))
    modules = []
    for index in range(count):
        kind = "module" if index == 0 else draw(st.sampled_from(kinds))
        names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))
        modules.append((kind, tuple((name, draw(children(count))) for name in names)))
    return Blueprint(tuple(modules))


def build(nnx: Any, blueprint: Blueprint) -> Any:
    """The graph on one of the libraries. Equal descriptions of Variables and arrays are the same object."""

    class Node(nnx.Module):
        pass

    made: dict[Any, Any] = {}
    nodes = [{"module": Node, "list": nnx.List, "dict": nnx.Dict}[kind]() for kind, _ in blueprint.modules]

    def value_of(description: tuple[str, Any]) -> Any:
        kind, content = description
        match kind:
            case "static":
                return content
            case "variable":
                name, number = content
                return made.setdefault(description, getattr(nnx, name)(jnp.arange(2.0) + number))
            case "array":
                return made.setdefault(description, jnp.arange(3.0) * content)
            case "module":
                return nodes[content]
            case "plain_list":
                return [value_of(item) for item in content]
            case "plain_tuple":
                return tuple(value_of(item) for item in content)
            case "plain_dict":
                return {key: value_of(item) for key, item in content}
            case _:
                return nnx.data(value_of(content))

    for node, (kind, items) in zip(nodes, blueprint.modules, strict=True):
        for name, description in items:
            if kind == "list":
                node.append(value_of(description))
            else:
                setattr(node, name, value_of(description))
    return nodes[0]


def facts(value: Any) -> Any:
    """A value as plain data that compares across the libraries."""
    if hasattr(value, "_var_metadata"):
        return type(value).__name__, facts(value.get_raw_value())
    if isinstance(value, jax.Array | np.ndarray):
        return "array", np.asarray(value).tolist()
    if isinstance(value, int | float | str | bool | type(None)):
        return type(value).__name__, value
    return type(value).__name__


def flat(nnx: Any, state: Any) -> list[Any]:
    return [(path, facts(leaf)) for path, leaf in nnx.to_flat_state(state)]


def visited(nnx: Any, node: Any) -> list[Any]:
    """`iter_graph` without what is documented to differ.

    The bookkeeping: flax sorts it among the attributes, nnxkit reports it first. Values that Python shares by itself,
    ``None`` and empty containers: flax reports each such object once, nnxkit at every path.
    """
    return [
        (path, facts(value))
        for path, value in nnx.iter_graph(node)
        if not (path and str(path[-1]).startswith("_pytree__")) and value is not None and not _is_empty(value)
    ]


def _is_empty(value: Any) -> bool:
    return isinstance(value, list | tuple | dict) and not value


def both(blueprint: Blueprint) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    return (nnxkit, build(nnxkit, blueprint)), (flax_nnx, build(flax_nnx, blueprint))


def agree(blueprint: Blueprint, observe: Any) -> None:
    own, peer = (observe(nnx, node) for nnx, node in both(blueprint))
    assert own == peer


random_graphs = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
SELF_CYCLE = Blueprint((("module", (("a", ("module", 0)), ("b", ("variable", ("Param", 0))))),))
TIED = Blueprint(
    (
        ("module", (("b", ("module", 1)), ("a", ("module", 1)), ("c", ("variable", ("Param", 0))))),
        ("list", (("a", ("variable", ("Param", 0))), ("b", ("array", 1)), ("c", ("static", 3)))),
    )
)


@pytest.mark.fuzz
class TestAgreement:
    @random_graphs
    @example(SELF_CYCLE)
    @example(TIED)
    @given(blueprints())
    def test_split_gives_the_same_paths_types_and_values(self, blueprint: Blueprint) -> None:
        agree(blueprint, lambda nnx, node: flat(nnx, nnx.split(node)[1]))

    @random_graphs
    @example(SELF_CYCLE)
    @given(blueprints())
    def test_graphdefs_list_the_same_definitions(self, blueprint: Blueprint) -> None:
        def definitions(nnx: Any, node: Any) -> Any:
            graphdef = nnx.graphdef(node)
            names = [
                (type(item).__name__, item.type.__name__ if hasattr(item, "type") else item.index)
                for item in graphdef.nodes
            ]
            return [name for name in names if name != ("NodeDef", "GenericPytree")], graphdef.num_leaves

        agree(blueprint, definitions)

    @random_graphs
    @example(TIED)
    @given(blueprints())
    def test_filters_share_out_the_same_leaves(self, blueprint: Blueprint) -> None:
        def parts(nnx: Any, node: Any) -> Any:
            filters = (nnx.Param, nnx.PathContains("a"), nnx.Intermediate, nnx.Any(nnx.BatchStat, jax.Array), ...)
            return [flat(nnx, part) for part in nnx.split(node, *filters)[1:]]

        agree(blueprint, parts)
        agree(blueprint, lambda nnx, node: flat(nnx, nnx.state(node, nnx.Not(nnx.Param))))

    @random_graphs
    @example(SELF_CYCLE)
    @example(TIED)
    @given(blueprints())
    def test_merge_rebuilds_the_same_graph(self, blueprint: Blueprint) -> None:
        def rebuilt(nnx: Any, node: Any) -> Any:
            merged = nnx.merge(*nnx.split(node))
            return (
                visited(nnx, merged),
                nnx.find_duplicates(merged),
                sorted(vars(merged).keys() - {"_pytree__nodes", "_pytree__state"}),
            )

        agree(blueprint, rebuilt)

    @random_graphs
    @example(TIED)
    @given(blueprints())
    def test_update_writes_the_same_values(self, blueprint: Blueprint) -> None:
        def updated(nnx: Any, node: Any) -> Any:
            state = nnx.state(node, nnx.OfType(nnx.Variable))
            nnx.update(node, jax.tree.map(lambda leaf: leaf + 1, state))
            return visited(nnx, node)

        agree(blueprint, updated)

    @random_graphs
    @example(SELF_CYCLE)
    @given(blueprints())
    def test_clone_copies_the_same_way(self, blueprint: Blueprint) -> None:
        def cloned(nnx: Any, node: Any) -> Any:
            copy = nnx.clone(node)
            originals = {id(value) for _, value in nnx.iter_graph(node) if isinstance(value, nnx.Variable | nnx.Pytree)}
            shared = [path for path, value in nnx.iter_graph(copy) if id(value) in originals]
            return visited(nnx, copy), shared, nnx.find_duplicates(copy)

        agree(blueprint, cloned)

    @random_graphs
    @example(SELF_CYCLE)
    @example(TIED)
    @given(blueprints())
    def test_find_duplicates_gives_the_same_groups(self, blueprint: Blueprint) -> None:
        agree(blueprint, lambda nnx, node: nnx.find_duplicates(node))
        agree(blueprint, lambda nnx, node: nnx.find_duplicates(node, only=nnx.Variable))

    @random_graphs
    @example(SELF_CYCLE)
    @example(TIED)
    @given(blueprints())
    def test_iter_graph_visits_the_same_values_in_the_same_order(self, blueprint: Blueprint) -> None:
        agree(blueprint, visited)

    @random_graphs
    @given(blueprints())
    def test_map_and_as_pure_agree(self, blueprint: Blueprint) -> None:
        def mapped(nnx: Any, node: Any) -> Any:
            doubled = nnx.map(
                lambda path, leaf: leaf.get_raw_value() * 2 if isinstance(leaf, nnx.Variable) else leaf, node
            )
            return visited(nnx, doubled), flat(nnx, nnx.as_pure(nnx.state(node)))

        agree(blueprint, mapped)


class TestDocumentedDifferences:
    """Where flax is wrong. Both sides are asserted, so that a change of either is noticed."""

    def test_popping_a_shared_variable_removes_every_reference(self) -> None:
        blueprint = Blueprint((("module", (("a", ("variable", ("Param", 0))), ("b", ("variable", ("Param", 0))))),))
        (_, own), (_, peer) = both(blueprint)
        own_state, peer_state = nnxkit.pop(own, nnxkit.Param), flax_nnx.pop(peer, flax_nnx.Param)
        assert flat(nnxkit, own_state) == flat(flax_nnx, peer_state)
        assert not hasattr(own, "a")
        assert not hasattr(own, "b")
        assert hasattr(peer, "b")

    def test_merge_refuses_other_paths(self) -> None:
        blueprint = Blueprint((("module", (("a", ("variable", ("Param", 0))),)),))
        (_, own), (_, peer) = both(blueprint)
        graphdef, state = flax_nnx.split(peer)
        assert hasattr(flax_nnx.merge(graphdef, {"other": state["a"]}), "a")
        graphdef, state = nnxkit.split(own)
        with pytest.raises(ValueError, match=r"do not hold `a`"):
            nnxkit.merge(graphdef, {"other": state["a"]})

    def test_update_refuses_unknown_paths_and_other_shapes(self) -> None:
        blueprint = Blueprint((("module", (("a", ("variable", ("Param", 0))),)),))
        (_, own), (_, peer) = both(blueprint)
        flax_nnx.update(peer, {"new": jnp.zeros(1), "a": jnp.zeros(7)})
        assert peer.a.shape == (7,)
        assert hasattr(peer, "new")
        with pytest.raises(ValueError, match="holds `new`, which `Node` does not have"):
            nnxkit.update(own, {"new": jnp.zeros(1)})
        with pytest.raises(ValueError, match=r"`a` has shape \(2,\), and the State brings shape \(7,\)"):
            nnxkit.update(own, {"a": jnp.zeros(7)})

    def test_mixed_keys_are_ordered(self) -> None:
        mixed = {"b": jnp.zeros(1), 1: jnp.ones(1)}
        with pytest.raises(TypeError, match="not supported between"):
            flax_nnx.split(mixed)
        assert [path for path, _ in flat(nnxkit, nnxkit.split(mixed)[1])] == [(1,), ("b",)]

    def test_a_filter_that_can_never_match_is_an_error(self) -> None:
        class Special(flax_nnx.Param):
            pass

        class OwnSpecial(nnxkit.Param):
            pass

        (_, own), (_, peer) = both(TIED)
        assert flat(flax_nnx, flax_nnx.split(peer, flax_nnx.Param, Special, ...)[2]) == []
        with pytest.raises(ValueError, match="NNX301"):
            nnxkit.split(own, nnxkit.Param, OwnSpecial, ...)

    def test_static_values_compare_by_type(self) -> None:
        def graphdefs(nnx: Any) -> tuple[Any, Any]:
            return nnx.graphdef(nnx.Dict(a=1)), nnx.graphdef(nnx.Dict(a=True))

        one, true = graphdefs(flax_nnx)
        assert one == true
        one, true = graphdefs(nnxkit)
        assert one != true
