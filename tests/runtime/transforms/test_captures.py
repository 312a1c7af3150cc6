"""Captures: which objects a function reaches, and a copy of it that sees other ones."""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnxkit as nnx
from captured import Box, Scale, module, only, rebound, variable
from nnx_rules.errors import GraphError, TraceContextError
from nnxkit._transforms._captures import Captures, captures_of

A, B = variable(1), variable(2)


class TestRoutes:
    """Each route leads to the object, and a copy of the function sees another one there."""

    def check(self, f: Callable[..., Any], outer: Any = 1, inner: Any = 10) -> Captures:
        captures = captures_of(f)
        assert only(captures).get_value() == 1
        assert f() == outer
        assert captures.rebind([variable(10)])() == inner
        assert f() == outer
        assert captures.is_current()
        return captures

    def test_cell(self) -> None:
        v = variable(1)
        assert self.check(lambda: v.get_value()).names == ("v",)

    def test_global(self) -> None:
        assert self.check(lambda: A.get_value()).names == ("A",)

    def test_default(self) -> None:
        def f(v: Any = variable(1)) -> Any:  # noqa: B008
            return v.get_value()

        self.check(f)

    def test_keyword_only_default(self) -> None:
        def f(*, v: Any = variable(1)) -> Any:  # noqa: B008
            return v.get_value()

        assert self.check(f).names == ("f.__kwdefaults__['v']",)

    @pytest.mark.parametrize("keyword", [False, True])
    def test_partial(self, keyword: bool) -> None:
        def f(v: Any) -> Any:
            return v.get_value()

        v = variable(1)
        self.check(functools.partial(f, v=v) if keyword else functools.partial(f, v))

    def test_partial_of_jax(self) -> None:
        self.check(jax.tree_util.Partial(lambda v: v.get_value(), variable(1)))

    def test_attributes_of_a_partial(self) -> None:
        partial = functools.partial(lambda v: v, A)
        partial.mark = "x"  # type: ignore[attr-defined]
        assert rebound(lambda: partial, B)().mark == "x"

    def test_bound_method(self) -> None:
        model = Scale(3.0)
        captures = captures_of(model.twice)
        assert only(captures) is model
        assert captures.names == ("self",)
        assert captures.rebind([Scale(2.0)])(1) == 4
        assert model.twice(1) == 9

    def test_bound_method_of_a_captured_object(self) -> None:
        model = Scale(3.0)
        method = model.twice
        assert rebound(lambda: method(1), Scale(2.0))() == 4

    def test_the_object_itself(self) -> None:
        model, other = Scale(3.0), Scale(2.0)
        assert only(captures_of(model)) is model
        assert rebound(model, other) is other

    def test_helper_function(self) -> None:
        def helper() -> Any:
            return A.get_value()

        self.check(lambda: helper())

    def test_chain_of_helpers(self) -> None:
        v = variable(1)
        first = lambda: v.get_value()  # noqa: E731
        second = lambda f=first: f()  # noqa: E731
        third = functools.partial(second)
        self.check(lambda: third())

    def test_wrapped_function(self) -> None:
        def decorator(f: Callable[[], Any]) -> Callable[[], Any]:
            @functools.wraps(f)
            def wrapper() -> Any:
                return f() + 1

            return wrapper

        self.check(decorator(lambda: A.get_value()), 2, 11)

    def test_function_made_by_a_library(self) -> None:
        batched = jax.vmap(lambda x: x + A.get_value())
        gradient = jax.grad(jax.remat(lambda x: x * A.get_value()))
        self.check(lambda: batched(jnp.zeros(2)).tolist(), [1, 1], [10, 10])
        self.check(lambda: float(gradient(1.0)))

    def test_context_manager(self) -> None:
        @contextlib.contextmanager
        def open_variable() -> Iterator[Any]:
            yield A

        def f() -> Any:
            with open_variable() as v:
                return v.get_value()

        self.check(f)

    def test_static_method(self) -> None:
        f: Any = staticmethod(lambda: A.get_value())
        self.check(f)

    def test_method_of_a_class(self) -> None:
        class Plain:
            @classmethod
            def f(cls) -> Any:
                return A.get_value()

        self.check(Plain.f)

    def test_generator_function(self) -> None:
        def generate() -> Iterator[Any]:
            yield A.get_value()

        self.check(lambda: next(generate()))

    def test_comprehensions_and_lambdas(self) -> None:
        self.check(lambda: sum([(lambda: A.get_value())() for _ in (1,)]))

    def test_nested_function_and_class_body(self) -> None:
        def f() -> Any:
            class Local:
                value = A.get_value()
                name = (__name__, len(__name__))

                def read(self) -> Any:
                    return (self.value, B.get_value())

            return Local().read()

        captures = captures_of(f)
        assert set(captures.names) == {"A", "B"}
        inner = {"A": variable(10), "B": variable(20)}
        assert captures.rebind([inner[name] for name in captures.names])() == (10, 20)
        assert f() == (1, 2)

    def test_super_in_a_method(self) -> None:
        class Base(nnx.Module):
            def f(self) -> Any:
                return 1

        class Derived(Base):
            def f(self) -> Any:
                return super().f() + A.get_value()

        captures = captures_of(Derived.f)
        assert only(captures) is A
        assert captures.rebind([variable(10)])(Derived()) == 11

    def test_attribute_names_are_not_globals(self) -> None:
        assert captures_of(lambda x: x.A).objects == ()

    def test_relative_import_in_a_copied_function(self) -> None:
        made = module(
            "def f():\n from . import api\n return api.__name__, v.get_value()",
            name="nnx_rules_user",
            v=variable(1),
            __package__="nnx_rules",
        )
        assert rebound(made.f, variable(10))() == ("nnx_rules.api", 10)


class Pair(NamedTuple):
    first: Any
    second: Any


@jax.tree_util.register_pytree_node_class
class Fresh(Box):
    """A container that shows itself as another new one each time."""

    def tree_flatten(self) -> Any:
        return ([self.value],), None

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Any:
        return cls(children[0][0])


CONTAINERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "list": (lambda v: [0, v], lambda c: c[1]),
    "tuple": (lambda v: (v, 0), lambda c: c[0]),
    "dict": (lambda v: {"b": 0, "a": v}, lambda c: c["a"]),
    "dict with keys that JAX cannot sort": (lambda v: {"b": 0, 1: v, ("cell", "x"): 2}, lambda c: c[1]),
    "namedtuple": (lambda v: Pair(0, v), lambda c: c.second),
    "OrderedDict": (lambda v: OrderedDict(b=v, a=0), lambda c: c["b"]),
    "defaultdict": (lambda v: defaultdict(int, b=v), lambda c: c["b"]),
    "registered class": (lambda v: Box(v), lambda c: c.value),
    "registered class that makes its children": (lambda v: Fresh(v), lambda c: c.value),
    "nested": (lambda v: [{"a": (0, Box([v]))}], lambda c: c[0]["a"][1].value[0]),
    "function in a list": (lambda v: [lambda: v], lambda c: c[0]()),
    "State": (lambda v: nnx.State({"a": v}), lambda c: c["a"]),
}


class TestContainers:
    @pytest.mark.parametrize("kind", CONTAINERS)
    def test_copy(self, kind: str) -> None:
        make, get = CONTAINERS[kind]
        v, inner = variable(1), variable(10)
        container = make(v)
        f = lambda: (container, get(container))  # noqa: E731
        captures = captures_of(f)
        assert only(captures) is v
        copy, seen = captures.rebind([inner])()
        assert seen is inner
        assert type(copy) is type(container)
        assert f()[1] is v
        assert f()[0] is container
        assert captures.signature == captures_of(f).signature

    def test_other_elements_are_those_of_now(self) -> None:
        cells = [A, 1]
        captures = captures_of(lambda: (cells[0].get_value(), cells[1]))
        cells[1] = 2
        assert captures.is_current()
        assert captures.rebind([variable(10)])() == (10, 2)

    def test_that_contains_itself(self) -> None:
        loop: list[Any] = [A]
        loop.append(loop)
        with pytest.raises(GraphError, match="`loop` is the list at `loop` itself"):
            rebound(lambda: loop, variable(1))

    def test_that_contains_itself_without_objects(self) -> None:
        loop: list[Any] = []
        loop.append(loop)
        f = lambda: loop  # noqa: E731
        assert rebound(f) is f

    @given(st.recursive(st.integers(0, 3), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=2), inner)))
    def test_any_nesting(self, tree: Any) -> None:
        outer, inner = [variable(i) for i in range(4)], [variable(10 + i) for i in range(4)]
        container = [jax.tree.map(lambda i: outer[i], tree)]
        f = lambda: container[0]  # noqa: E731
        captures = captures_of(f)
        number = {id(v): i for i, v in enumerate(outer)}
        numbers = [number[id(v)] for v in captures.objects]
        assert sorted(numbers) == sorted(set(jax.tree.leaves(tree)))
        seen = captures.rebind([inner[i] for i in numbers])()
        is_leaf = lambda x: isinstance(x, nnx.Variable)  # noqa: E731
        assert jax.tree.map(lambda v: v.get_value() - 10, seen, is_leaf=is_leaf) == tree
        assert captures.is_current()


class Wrapped:
    """What a transform is to captures."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f

    def __call__(self, *args: Any) -> Any:
        return self.f(*args)

    def __nnx_wrapped__(self) -> Callable[..., Any]:
        return self.f

    def __nnx_rewrap__(self, f: Callable[..., Any]) -> Wrapped:
        return Wrapped(f)


class TestTransforms:
    def test_wrapper(self) -> None:
        wrapper = Wrapped(Wrapped(lambda: A.get_value()))
        f = lambda: wrapper()  # noqa: E731
        assert only(captures_of(f)) is A
        assert rebound(f, variable(10))() == 10
        assert type(rebound(wrapper, variable(10)).__wrapped__) is Wrapped  # type: ignore[attr-defined]

    def test_that_calls_itself(self) -> None:
        made = module("def f(n):\n return v.get_value() + (f(n - 1) if n else 0)", v=variable(1))
        made.names["f"] = wrapper = Wrapped(made.f)
        captures = captures_of(made.f)
        assert captures.rebind([variable(10)])(2) == 30
        assert wrapper(2) == 3


class TestModules:
    """Objects that are attributes of imported modules."""

    def test_attribute(self) -> None:
        config = types.ModuleType("users_config", "Doc.")
        config.v, config.w = variable(1), 5  # type: ignore[attr-defined]
        made = module("def f(): return config.v.get_value(), config.w, config", config=config)
        captures = captures_of(made.f)
        assert captures.names == ("config.v",)
        value, w, seen = captures.rebind([variable(10)])()
        assert (value, w) == (10, 5)
        assert isinstance(seen, types.ModuleType)
        assert (seen.__name__, seen.__doc__) == ("users_config", "Doc.")
        assert made.f()[:2] == (1, 5)
        assert made.f()[2] is config
        assert captures.is_current()
        config.v = variable(2)  # type: ignore[attr-defined]
        assert not captures.is_current()

    def test_function_of_a_package(self) -> None:
        package = types.ModuleType("users_package")
        package.sub = types.ModuleType("users_package.sub")  # type: ignore[attr-defined]
        helpers = module("def h(): return v.get_value()", name="users_package.sub", v=variable(1))
        package.sub.h, package.sub.w = helpers.h, 7
        made = module("def f(): return package.sub.h(), package.sub.w", package=package)
        assert rebound(made.f, variable(10))() == (10, 7)
        assert made.f() == (1, 7)

    def test_attribute_that_appears(self) -> None:
        config = types.ModuleType("users_config")
        captures = captures_of(module("def f(): return config.v", config=config).f)
        assert captures.is_current()
        config.v = A  # type: ignore[attr-defined]
        assert not captures.is_current()

    def test_among_many_names(self) -> None:
        config = types.ModuleType("users_config")
        config.v = A  # type: ignore[attr-defined]
        many = "".join(f" x.a{i}\n" for i in range(300))
        captures = captures_of(module(f"def f(x):\n{many} return config.v", config=config).f)
        assert captures.names == ("config.v",)

    def test_in_class_bodies(self) -> None:
        config = types.ModuleType("users_config")
        config.v = variable(1)  # type: ignore[attr-defined]
        body = " class Local: v = config.v.get_value()\n"
        source = (
            f"def last():\n{body} return Local.v\n"
            "def middle(): return last()\n"
            f"def first(h=middle):\n{body} return Local.v, h()"
        )
        made = module(source, config=config)
        assert rebound(made.first, variable(10))() == (10, 10)
        assert config.v.get_value() == 1

    def test_writes(self) -> None:
        config = types.ModuleType("users_config")
        config.v, config.calls = variable(1), 0  # type: ignore[attr-defined]
        source = "def f():\n config.calls += config.v.get_value()\ndef g():\n config.v = config.v.get_value()"
        made = module(source, config=config)
        rebound(made.f, variable(10))()
        assert config.calls == 10
        with pytest.raises(TraceContextError, match=r"`users_config\.v` .*binds something else"):
            rebound(made.g, variable(10))()

    def test_modules_of_libraries_are_not_read(self) -> None:
        library = types.ModuleType("optax.users")
        library.v = A  # type: ignore[attr-defined]
        made = module("def f(): return library.v, sys.modules, jnp.sin", library=library, sys=sys, jnp=jnp)
        assert captures_of(made.f).objects == ()


class TestSharing:
    def test_each_object_once_in_order(self) -> None:
        x, y = variable(1), variable(2)
        both = [y, x, y]
        captures = captures_of(lambda: (x, both, A, y))
        assert len(captures.objects) == 3
        assert captures.objects == captures_of(lambda: (x, both, A, y)).objects

    def test_two_functions_share_a_cell_and_a_container(self) -> None:
        v = variable(1)
        items = [v]
        get, put = (lambda: items), (lambda: (v, items))
        one, two = rebound(lambda: (get(), put()), variable(10))()
        assert one is two[1]
        assert one[0] is two[0]

    def test_functions_that_call_each_other(self) -> None:
        v = variable(1)

        def even(n: int) -> Any:
            return v.get_value() if n == 0 else odd(n - 1)

        def odd(n: int) -> Any:
            return even(n - 1)

        assert rebound(odd, variable(10))(3) == 10
        assert odd(3) == 1

    def test_globals_that_call_each_other(self) -> None:
        made = module(
            "def even(n): return v.get_value() if n == 0 else odd(n - 1)\ndef odd(n): return even(n - 1)", v=variable(1)
        )
        assert rebound(made.odd, variable(10))(3) == 10
        assert made.odd(3) == 1

    def test_function_and_list_that_hold_each_other(self) -> None:
        hooks: list[Any] = []
        hooks.append(lambda n: A.get_value() if n == 0 else hooks[0](n - 1))
        assert rebound(lambda: hooks[0](2), variable(10))() == 10

    def test_copy_of_a_copy(self) -> None:
        made = module("def f():\n def g(): return v.get_value(), w\n return g", v=variable(1), w=5)
        first = rebound(made.f, variable(10))()
        captures = captures_of(first)
        assert only(captures).get_value() == 10
        assert captures.rebind([variable(100)])() == (100, 5)
        made.names["w"] = 6
        assert captures.is_current()
        assert captures.rebind([variable(100)])() == (100, 6)


def test_unhashable_and_unequal_values_are_not_compared() -> None:
    class Awkward:
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            raise AssertionError("compared")

    made = module("def f(): return v, w", v=Awkward(), w=A)
    captures = captures_of(made.f)
    made.names["v"] = Awkward()
    assert not captures.is_current()
    assert only(captures_of(made.f)) is A


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are syntax since 3.12")
def test_type_parameters() -> None:
    made = module("def f[T](x: T) -> T:\n return (x, v.get_value())\ndef g(): return f", v=variable(1))
    copy = rebound(made.g, variable(10))()
    assert copy(1) == (1, 10)
    assert copy.__type_params__ == made.f.__type_params__
