"""``nnx.scan``: edits that a carry does not allow, and axes, lengths and results that make no sense."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest

import nnxkit as nnx
from modes import without_updates
from nets import tracers
from nnx_rules.errors import (
    TransformArgumentError,
    TransformTypeError,
)
from nnxkit import Carry
from scanned import XS, Model


def add(model: Any) -> None:
    model.extra = nnx.Param(jnp.ones(2))


def static(model: Any) -> None:
    model.mode = "busy"


def retyped(model: Any) -> None:
    model.w = nnx.BatchStat(model.w + 1)


def metadata(model: Any) -> None:
    model.w.set_metadata(unit="m")


EDITS: dict[str, tuple[Callable[[Any], None], str]] = {
    "added": (add, r"\.extra` is missing before a step of `nnx\.scan` and a (new )?`Param` after it"),
    "static": (static, r"\.mode` is `'idle'` before a step of `nnx\.scan` and `'busy'` after it"),
    "retyped": (retyped, r"\.w` is a `Param` before a step of `nnx\.scan` and a (new )?`BatchStat`"),
    "metadata": (metadata, r"\.w` is a Variable with the metadata \{\} before"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_carried_objects_may_not_be_edited(edit: str, mode: dict[str, bool]) -> None:
    f, message = EDITS[edit]
    model = Model()
    before = nnx.graphdef(model), model.w
    with pytest.raises(TransformArgumentError, match=message):
        nnx.scan(lambda model, x: (f(model), (model, x))[1], **mode)(model, XS)
    assert (nnx.graphdef(model), model.w) == before
    assert not tracers(model)


@pytest.mark.parametrize("edit", ["added", "static", "retyped"])
@pytest.mark.parametrize("how", ["captured", "broadcast"])
def test_other_objects_may_not_be_edited(edit: str, how: str) -> None:
    f, message = EDITS[edit]
    model = Model()
    before = nnx.graphdef(model)
    if how == "captured":
        scan = functools.partial(nnx.scan(lambda carry, x: (f(model), (carry, x))[1]), 0.0, XS)
    else:
        scan = functools.partial(nnx.scan(lambda m, x: (f(m), x)[1], in_axes=(None, 0), out_axes=0), model, XS)
    with pytest.raises(TransformArgumentError, match=message):
        scan()
    assert nnx.graphdef(model) == before


def replace(model: Any) -> None:
    model.w = nnx.Param(model.w + 1)


def test_without_graph_updates_no_new_object_may_take_a_place() -> None:
    with pytest.raises(TransformArgumentError, match=r"returns another `Param` as `args\[0\]\.w`"):
        nnx.scan(lambda model, x: (replace(model), (model, x))[1], graph_updates=False)(Model(), XS)


def test_a_new_object_may_not_take_the_place_of_what_is_broadcast() -> None:
    with pytest.raises(TransformArgumentError, match=r"changes `args\[0\]\.w`, whose axis is None"):
        nnx.scan(lambda m, x: (replace(m), x)[1], in_axes=(None, 0), out_axes=0)(Model(), XS)


def test_new_attributes_may_not_be_carried() -> None:
    model = nnx.Dict(w=nnx.Param(XS), total=nnx.BatchStat(jnp.zeros(())))
    axes = nnx.StateAxes({nnx.BatchStat: Carry, ...: 0})

    def step(model: Any, x: Any) -> Any:
        model.extra = nnx.BatchStat(x)
        return x

    with pytest.raises(TransformArgumentError, match=r"`args\[0\]\.extra` is missing before a step"):
        nnx.scan(step, in_axes=(axes, 0), out_axes=0)(model, XS)
    assert not hasattr(model, "extra")


def test_another_carry(mode: dict[str, bool]) -> None:
    with pytest.raises(TransformTypeError, match=r"the carry goes into a step of `nnx\.scan` as `\*` and"):
        nnx.scan(lambda c, x: ((c, c), x), **mode)(0.0, XS)
    with pytest.raises(
        TransformTypeError, match=r"`args\[0\]` goes into a step of `nnx\.scan` as float32\[\] and comes"
    ):
        nnx.scan(lambda c, x: (jnp.ones(3), x), **mode)(0.0, XS)
    with pytest.raises(
        TransformArgumentError, match=r"returns another `Model` as `args\[0\]|as `args\[0\]\.total` than"
    ):
        nnx.scan(lambda c, x: (Model(), x), **mode)(Model(), XS)
    with pytest.raises(
        TransformTypeError, match=r"`args\[0\]\.total` goes into a step of `nnx\.scan` as float32\[\] and"
    ):
        nnx.scan(lambda c, x: (c.total.set_value(jnp.ones(2)), (c, x))[1], **mode)(Model(), XS)


# Axes and lengths that make no sense


AXES: dict[str, tuple[Any, Any, str]] = {
    "two carries": ((Carry, Carry), (Carry, 0), r"`in_axes` of `nnx\.scan` is \(Carry, Carry\): only one value can be"),
    "two carries out": ((Carry, 0), (Carry, Carry), r"`out_axes` of `nnx\.scan` is \(Carry, Carry\): only one value"),
    "nested": (({"a": Carry}, 0), 0, r"`in_axes` of `nnx\.scan` is .*: `Carry` is inside of a container"),
    "nested out": ((Carry, 0), [(Carry, 0)], r"`Carry` is inside of a container"),
    "an instance": ((Carry(), 0), (Carry, 0), r"`Carry` is used as it is, without a call"),
    "only in": ((Carry, 0), 0, r"`out_axes` of `nnx\.scan` is 0: it has no `Carry`, and the other one has"),
    "only out": ((0, 0), (Carry, 0), r"`in_axes` of `nnx\.scan` is \(0, 0\): it has no `Carry`, and the other one"),
    "broadcast result": ((Carry, 0), (Carry, None), r"each step has its own result, which cannot be broadcast"),
    "no axis": ((Carry, "rows"), (Carry, 0), r"`in_axes` of `nnx\.scan` is \(Carry, 'rows'\): `'rows'` is no axis"),
}


@pytest.mark.parametrize("case", AXES)
def test_axes_that_make_no_sense(case: str, mode: dict[str, bool]) -> None:
    in_axes, out_axes, message = AXES[case]
    with pytest.raises(TransformArgumentError, match=message):
        nnx.scan(lambda *args: args, in_axes=in_axes, out_axes=out_axes, **mode)


@pytest.mark.parametrize(
    ("out_axes", "message"),
    [
        (nnx.StateAxes({...: None}), r"each step has its own result, which cannot be broadcast"),
        (nnx.StateAxes({nnx.Param: Carry, ...: 0}), r"a part of a result cannot be carried"),
    ],
)
def test_filters_that_make_no_sense(out_axes: Any, message: str) -> None:
    with pytest.raises(TransformArgumentError, match=message):
        nnx.scan(lambda *args: args, in_axes=0, out_axes=out_axes)


def test_axes_that_do_not_fit_the_call(mode: dict[str, bool]) -> None:
    identity = nnx.scan(lambda c, x: (c, x), **mode)
    with pytest.raises(TransformArgumentError, match=r"only one argument can be carried"):
        nnx.scan(lambda a, b: (a, b), in_axes=Carry, out_axes=Carry, length=2, **mode)(1.0, 2.0)
    with pytest.raises(TransformArgumentError, match=r"`in_axes` of `nnx\.scan` does not fit"):
        identity(0.0, XS, XS)
    with pytest.raises(TransformTypeError, match=r"`in_axes` of `nnx\.scan` is a dict"):
        nnx.scan(lambda c: c, in_axes={"a": 0}, out_axes=0, **mode)(XS)
    with pytest.raises(TransformArgumentError, match=r"is to map over axis 0 of `args\[1\]`, whose shape is \(\)"):
        identity(0.0, 1.0)
    with pytest.raises(TransformArgumentError, match=r"which has 2 elements, and over 3 of axis 0 of `args\[1\]\[0\]`"):
        identity(0.0, (XS, jnp.ones(2)))


def test_lengths_that_make_no_sense(mode: dict[str, bool]) -> None:
    with pytest.raises(TransformArgumentError, match=r"there is nothing to scan over, and no `length`"):
        nnx.scan(lambda c, x: (c, x), **mode)(0.0, None)
    with pytest.raises(TransformArgumentError, match=r"`length` is 2, and there are 3 elements to scan over"):
        nnx.scan(lambda c, x: (c, x), length=2, **mode)(0.0, XS)


def test_results_that_do_not_fit(mode: dict[str, bool]) -> None:
    with pytest.raises(TransformArgumentError, match=r"a tuple of 2 values, and returns an array"):
        nnx.scan(lambda c, x: c, **mode)(0.0, XS)
    with pytest.raises(TransformArgumentError, match=r"a tuple of 2 values, and returns 3 of them"):
        nnx.scan(lambda c, x: (c, x, x), **mode)(0.0, XS)
    with pytest.raises(TransformArgumentError, match=r"`out_axes` of `nnx\.scan` does not fit"):
        nnx.scan(lambda c, x: (c, x), out_axes=(Carry, {"a": 0}), **mode)(0.0, XS)


@without_updates
def test_filter_prefixes_belong_to_the_default_mode(mode: dict[str, bool]) -> None:
    with pytest.raises(TransformArgumentError, match=r"holds a `StateAxes`, which a transform without graph updates"):
        nnx.scan(lambda m: 1.0, in_axes=(nnx.StateAxes({...: 0}),), out_axes=0, **mode)(Model(shape=(3,)))
