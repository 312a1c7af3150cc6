"""Captures: which objects a function reaches, by which routes, and copies of it that reach others."""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import types
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnxkit as nnx
from nnx_rules.errors import GraphError, TraceContextError
from nnxkit._transforms._captures import Captures, captures_of


def variable(value: Any) -> nnx.Variable[Any]:
    return nnx.Variable(value)


class Scale(nnx.Module):
    def __init__(self, factor: float) -> None:
        self.factor = nnx.Param(factor)

    def __call__(self, x: Any) -> Any:
        return x * self.factor.get_value()

    def twice(self, x: Any) -> Any:
        return self(self(x))


def module(source: str, name: str = "users_module", **given: Any) -> types.SimpleNamespace:
    """What a module of the user with this text defines; ``names`` are its globals."""
    names: dict[str, Any] = {"__name__": name, **given}
    exec(source, names)
    return types.SimpleNamespace(**{k: v for k, v in names.items() if k.isidentifier()}, names=names)


def only(captures: Captures) -> Any:
    (found,) = captures.objects
    return found


def rebound(f: Callable[..., Any], *inner: Any) -> Callable[..., Any]:
    return captures_of(f).rebind(inner)


A, B = variable(1), variable(2)
"""Globals for the functions of this module."""


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
class Box:
    def __init__(self, value: Any) -> None:
        self.value = value

    def tree_flatten(self) -> Any:
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Any:
        return cls(*children)


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


class TestKept:
    def test_function_without_objects_is_itself(self) -> None:
        f = lambda x: jnp.sin(x) + len(__name__)  # noqa: E731
        captures = captures_of(f)
        assert captures.objects == ()
        assert captures.rebind([]) is f
        assert captures.is_current()

    @pytest.mark.parametrize("f", [len, jnp.sin, jax.jit(lambda x: x), Scale, int.__add__, jnp.vectorize])
    def test_opaque_callable_is_itself(self, f: Callable[..., Any]) -> None:
        assert rebound(f) is f

    def test_helpers_without_objects_are_the_same(self) -> None:
        helper = lambda: 0  # noqa: E731
        v = variable(1)
        assert rebound(lambda: (v, helper), variable(2))()[1] is helper

    def test_cells_without_objects_are_the_same(self) -> None:
        v, calls = variable(1), 0

        def f() -> Any:
            nonlocal calls
            calls += 1
            return v.get_value()

        assert rebound(f, variable(10))() == 10
        assert calls == 1

    def test_attributes_of_the_function(self) -> None:
        def f(a: int, *, b: int = 2) -> Any:
            """Doc."""
            return A.get_value() + a + b

        f.mark = "x"  # type: ignore[attr-defined]
        holder = [f]
        copy = rebound(lambda: holder, variable(10))()[0]
        assert copy is not f
        assert copy(1) == 13
        for name in ("__name__", "__qualname__", "__doc__", "__module__", "__kwdefaults__", "__annotations__", "mark"):
            assert getattr(copy, name) == getattr(f, name)

    def test_name_of_the_result(self) -> None:
        def f() -> Any:
            return A

        assert rebound(f, B).__name__ == "f"

    def test_libraries_are_not_walked(self) -> None:
        captures = captures_of(lambda x: jax.eval_shape(x) + functools.wraps(A)(x))
        assert only(captures) is A

    @pytest.mark.parametrize(
        ("name", "file"), [("optax.something", "/x/optax/something.py"), ("contextlib", contextlib.__file__)]
    )
    def test_globals_of_libraries_are_not_read(self, name: str, file: str) -> None:
        helper = module("def helper(): return v", name=name, v=A, __file__=file).helper
        assert captures_of(lambda: helper()).objects == ()

    def test_installed_packages_are_walked_from_within_only(self) -> None:
        place = {"__file__": "/x/lib/python3.11/site-packages/users_package/a.py"}
        helpers = module("def helper(): return v", name="users_package.a", v=variable(1), **place)
        inside = module("def f(): return helper()", name="users_package.b", helper=helpers.helper, **place)
        outside = module("def f(): return helper()", name="elsewhere", helper=helpers.helper)
        assert len(captures_of(inside.f).objects) == 1
        assert captures_of(outside.f).objects == ()


class TestCurrent:
    """Changes of places are noticed; what cannot matter is not."""

    def change(self, source: str, change: Callable[[dict[str, Any]], None], **names: Any) -> bool:
        made = module(source, **names)
        captures = captures_of(made.f)
        assert captures.is_current()
        change(made.names)
        return captures.is_current()

    @pytest.mark.parametrize("new", [variable(5), None, 3, lambda: 0, [A]])
    def test_global_object(self, new: Any) -> None:
        assert not self.change("def f(): return v", lambda names: names.update(v=new), v=A)

    def test_deleted_global(self) -> None:
        assert not self.change("def f(): return v", lambda names: names.pop("v"), v=A)

    def test_global_that_appears(self) -> None:
        assert not self.change("def f(): return v", lambda names: names.update(v=A))

    def test_shadowed_builtin(self) -> None:
        assert not self.change("def f(): return len(v)", lambda names: names.update(len=A), v=1)

    def test_opaque_global_that_becomes_an_object(self) -> None:
        assert not self.change("def f(): return v", lambda names: names.update(v=A), v=None)

    @pytest.mark.parametrize(("old", "new"), [(1, 2), (jnp.zeros(2), jnp.ones(3)), ("a", "b")], ids=repr)
    def test_opaque_global_that_stays_opaque(self, old: Any, new: Any) -> None:
        assert self.change("def f(): return v, w", lambda names: names.update(v=new), v=old, w=A)

    def test_unread_global(self) -> None:
        assert self.change("def f(): return v.w", lambda names: names.update(w=B, x=B), v=A)

    def test_helper(self) -> None:
        assert not self.change("def f(): return h()", lambda names: names.update(h=lambda: A), h=lambda: 0)

    def test_global_of_a_helper(self) -> None:
        helper = module("def h(): return v", name="users_helpers", v=1)
        source = "def f(): return h()"
        assert not self.change(source, lambda _: helper.names.update(v=A), h=helper.h)

    @pytest.mark.parametrize("empty", [False, True])
    def test_cell(self, empty: bool) -> None:
        def make() -> tuple[Callable[[], Any], Callable[[Any], None]]:
            def f() -> Any:
                return v

            def put(new: Any) -> None:
                nonlocal v
                v = new

            if not empty:
                v = A
            return f, put

        f, put = make()
        captures = captures_of(f)
        assert len(captures.objects) == (not empty)
        assert captures.is_current()
        put(B)
        assert not captures.is_current()
        assert only(captures_of(f)) is B

    def test_emptied_cell(self) -> None:
        v = variable(1)
        captures = captures_of(lambda: v)  # noqa: F821
        del v
        assert not captures.is_current()

    @pytest.mark.parametrize("attribute", ["__defaults__", "__kwdefaults__"])
    def test_defaults(self, attribute: str) -> None:
        def f(v: Any = A, *, w: Any = A) -> Any:
            return v, w

        captures = captures_of(f)
        setattr(f, attribute, {"w": B} if attribute == "__kwdefaults__" else (B,))
        assert not captures.is_current()

    CHANGES: tuple[tuple[str, Any, Callable[[Any], object], bool], ...] = (
        ("element replaced", [A, 1], lambda c: c.__setitem__(0, B), False),
        ("opaque element replaced", [A, 1], lambda c: c.__setitem__(1, 2), True),
        ("object in place of an opaque element", [A, 1], lambda c: c.__setitem__(1, B), False),
        ("appended", [A], lambda c: c.append(1), False),
        ("appended where no object was", [], lambda c: c.append(A), False),
        ("appended in a tuple", (A, []), lambda c: c[1].append(B), False),
        ("appended to an inner list", [[A]], lambda c: c[0].append(B), False),
        ("value replaced", {"a": A}, lambda c: c.update(a=B), False),
        ("item added", {"a": 1}, lambda c: c.update(b=A), False),
        ("key replaced", {"a": A}, lambda c: c.update(b=c.pop("a")), False),
        ("field of a registered class", Box(A), lambda c: setattr(c, "value", B), False),
        ("unchanged", [A, {"a": (B, [])}], lambda c: None, True),
    )

    @pytest.mark.parametrize(("old", "change", "current"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
    def test_container(self, old: Any, change: Callable[[Any], object], current: bool) -> None:
        assert self.change("def f(): return v", lambda names: change(names["v"]), v=old) is current

    def test_array_beside_objects(self) -> None:
        items = [jnp.zeros(3), A, jnp.zeros(3)]
        captures = captures_of(lambda: items)
        items[0] = jnp.ones(3)
        assert captures.is_current()


class TestSignature:
    def test_same_places(self) -> None:
        def make(v: Any) -> Callable[[], Any]:
            return lambda: v

        one, two = captures_of(make(A)), captures_of(make([A]))
        assert one.signature == captures_of(make(B)).signature
        assert hash(one.signature) == hash(captures_of(make(B)).signature)
        assert one.signature != two.signature

    def test_sharing(self) -> None:
        def make(v: Any, w: Any) -> Callable[[], Any]:
            return lambda: (v, w)

        assert captures_of(make(A, A)).signature != captures_of(make(A, B)).signature

    def test_other_code(self) -> None:
        def make(h: Any) -> Callable[[], Any]:
            return lambda: h()

        one, two = captures_of(make(lambda: A)), captures_of(make(lambda: (A,)))
        assert one.signature != two.signature


class TestBindings:
    """What a copied function binds anew."""

    def test_ordinary_global(self) -> None:
        made = module("def f():\n global calls\n calls += 1\n return v.get_value(), calls", v=variable(1), calls=0)
        assert rebound(made.f, variable(10))() == (10, 1)
        assert made.names["calls"] == 1
        assert "v" not in vars(made.names["f"])

    def test_globals_are_read_live(self) -> None:
        made = module("def f(set_it):\n set_it()\n return v.get_value(), w", v=variable(1), w=0)
        assert rebound(made.f, variable(10))(lambda: made.names.update(w=1)) == (10, 1)

    def test_deleted_global(self) -> None:
        made = module("def f():\n global w\n del w\n return v", v=A, w=0)
        rebound(made.f, variable(10))()
        assert "w" not in made.names

    @pytest.mark.parametrize("source", ["global v\n v = 3", "global v\n del v"])
    def test_global_of_an_object(self, source: str) -> None:
        made = module(f"def f():\n {source}\ndef g(): return v, f()", v=A)
        with pytest.raises(TraceContextError, match=r"`v` .*binds something else") as error:
            rebound(made.g, variable(10))()
        assert error.value.code == "NNX216"
        assert made.names["v"] is A

    def test_cell_of_an_object(self) -> None:
        v: Any = variable(1)

        def f() -> Any:
            nonlocal v
            v = v.get_value() + 1

        with pytest.raises(TraceContextError, match=r"`v` .*binds something else"):
            rebound(f, variable(10))()
        assert v.get_value() == 1

    def test_name_that_is_bound_back(self) -> None:
        v: Any = variable(1)

        def read() -> Any:
            return v.get_value()

        def f() -> Any:
            nonlocal v
            kept, v = v, variable(5)
            seen = read()
            v = kept
            return seen, read()

        assert rebound(f, variable(10))() == (5, 10)

    @pytest.mark.parametrize("change", [lambda c: c.append(1), lambda c: c.__setitem__(0, 1), lambda c: c.clear()])
    def test_list_of_objects(self, change: Callable[[Any], None]) -> None:
        items = [A, 0]

        def f() -> None:
            change(items)

        with pytest.raises(TraceContextError, match=r"`items` .*binds something else"):
            rebound(f, variable(10))()
        assert items == [A, 0]

    def test_list_without_objects(self) -> None:
        items: list[Any] = []

        def f() -> None:
            items.append(A.get_value())

        rebound(f, variable(10))()
        assert items == [10]


class TestMemory:
    def test_old_object_is_freed_at_once(self) -> None:
        made = module("def f(): return v.get_value(), items", v=variable(1), items=[variable(2), variable(3)])
        captures = captures_of(made.f)
        del made.v, made.items
        old = [weakref.ref(v) for v in captures.objects]
        made.names["v"] = variable(5)
        made.names["items"][0] = variable(6)
        assert [reference() is None for reference in old].count(True) == 2
        assert not captures.is_current()

    def test_nothing_outlives_the_function(self) -> None:
        def make() -> Any:
            v = variable(1)
            helper = lambda: v  # noqa: E731
            f = lambda: helper()  # noqa: E731
            return f, weakref.ref(v)

        f, reference = make()
        gc.disable()
        try:
            captures_of(f).rebind([variable(2)])()
            assert reference() is not None
            del f
            assert reference() is None
        finally:
            gc.enable()


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
