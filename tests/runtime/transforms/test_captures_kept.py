"""Captures: what stays as it is, which changes are noticed, what a copy may bind anew, and what is freed."""

from __future__ import annotations

import contextlib
import functools
import gc
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from captured import Box, Scale, module, only, rebound, variable
from nnx_rules.errors import TraceContextError
from nnxkit._transforms._captures import captures_of

A, B = variable(1), variable(2)


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
