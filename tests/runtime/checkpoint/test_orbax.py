"""Checkpoints in the format of Orbax: what comes back, what does not fit, and what is left when a save is cut off."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import nnxkit as nnx
from nnxkit.errors import (
    CheckpointArgumentError,
    CheckpointExistsError,
    CheckpointFormatError,
    CheckpointMismatchError,
    CheckpointNotFoundError,
)

ocp = pytest.importorskip("orbax.checkpoint")
checkpoints = nnx.checkpoints


class Net(nnx.Module):
    """A model with a list, running statistics, a random stream and a shared parameter."""

    def __init__(self, rngs: nnx.Rngs, width: int = 3) -> None:
        self.layers = nnx.List([nnx.Linear(2, width, rngs=rngs), nnx.Linear(width, 2, rngs=rngs)])
        self.norm = nnx.BatchNorm(2, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.tied = self.layers[0].kernel


def leaves(target: Any) -> list[Any]:
    """The leaves of a model, keys as numbers."""
    flat = [leaf[...] if isinstance(leaf, jax.Ref) else leaf for leaf in jax.tree.leaves(nnx.state(target))]
    return [
        jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
        for leaf in flat
        if hasattr(leaf, "dtype")
    ]


def assert_equal(first: Any, second: Any) -> None:
    for one, other in zip(leaves(first), leaves(second), strict=True):
        assert type(one) is type(other)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def trained(seed: int) -> dict[str, Any]:
    model = Net(nnx.Rngs(seed))
    optimizer = nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)
    optimizer.update(model, jax.tree.map(jnp.ones_like, nnx.state(model, nnx.Param)))
    return {"model": model, "optimizer": optimizer}


def test_a_model_and_its_optimizer_come_back(tmp_path: Path) -> None:
    before, after = trained(0), trained(1)
    checkpoints.save(tmp_path / "1", before)

    assert checkpoints.restore(tmp_path / "1", after) is after
    assert_equal(before, after)
    assert after["model"].tied is after["model"].layers[0].kernel
    assert not after["model"].layers[0].kernel.get_raw_value().committed  # as it was: fits arrays on any device
    part = checkpoints.restore(tmp_path / "1", Net(nnx.Rngs(2)), at="model")
    assert_equal(part, before["model"])


class Odd(nnx.Module):
    """Everything that a leaf may be."""

    def __init__(self, scale: int) -> None:
        self.tree = nnx.Variable({"a": [jnp.ones(2) * scale, jnp.zeros((2, 1))], "b": (jnp.full(1, scale),)})
        self.bare = nnx.data(jnp.array(scale))
        self.count = nnx.Variable(2 * scale)
        self.rate = nnx.Variable(0.5 * scale)
        self.flag = nnx.Variable(scale > 1)
        self.array = nnx.Variable(np.arange(3.0) * scale)
        self.number = nnx.Variable(np.int32(scale))
        self.half = nnx.Param(jnp.ones(3, jnp.bfloat16) * scale)
        self.keys = nnx.Variable(jax.random.split(jax.random.key(scale), 3))
        self.slow = nnx.Variable(jax.random.key(scale, impl="rbg"))
        self.ref = nnx.Variable(jnp.ones(2) * scale, ref=True)
        self.empty = nnx.Param(jnp.zeros((0, scale)))
        self.none = nnx.Variable(None)
        self.text = nnx.Variable(f"version {scale}")


def test_every_kind_of_leaf_comes_back_as_what_it_was(tmp_path: Path) -> None:
    before, after = Odd(3), Odd(1)
    after.empty.set_value(jnp.zeros((0, 3)))
    checkpoints.save(tmp_path / "1", before)
    checkpoints.restore(tmp_path / "1", after)

    assert_equal(before, after)
    for name in ("count", "rate", "flag", "text", "none"):
        one, other = (getattr(node, name).get_raw_value() for node in (before, after))
        assert type(one) is type(other)
        assert one == other
    assert isinstance(after.ref.get_raw_value(), jax.Ref)
    np.testing.assert_array_equal(after.ref.get_raw_value()[...], [3.0, 3.0])


def test_numbers_fit_numbers_of_their_kind_only(tmp_path: Path) -> None:
    checkpoints.save(tmp_path / "1", nnx.Dict(a=nnx.Variable(2.5)))
    target = nnx.Dict(a=nnx.Variable(jnp.zeros((), jnp.float16)))
    checkpoints.restore(tmp_path / "1", target)
    assert target.a.dtype == jnp.float16
    assert target.a.get_value() == 2.5
    with pytest.raises(CheckpointMismatchError, match=r"`a`: dtype int64 in the model, float64 in the checkpoint"):
        checkpoints.restore(tmp_path / "1", nnx.Dict(a=nnx.Variable(2)))


def test_what_numpy_arrays_hold_is_copied_before_the_save_returns(tmp_path: Path) -> None:
    array = np.zeros(100_000)
    pending = checkpoints.save_async(tmp_path / "1", nnx.Dict(a=nnx.Variable(array)))
    array[:] = 1
    pending.wait()
    assert pending.done
    assert not checkpoints.restore(tmp_path / "1", nnx.Dict(a=nnx.Variable(array.copy()))).a.get_value().any()


# -- what does not fit -------------------------------------------------------------------------------------------------


class Other(Net):
    """Differs from `Net` in all ways."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        super().__init__(rngs)
        self.layers[1] = nnx.Linear(4, 2, param_dtype=jnp.bfloat16, rngs=rngs)
        self.new = nnx.Linear(1, 1, use_bias=False, rngs=rngs)
        del self.norm


def test_every_mismatch_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    checkpoints.save(tmp_path / "1", Net(nnx.Rngs(0)))
    model, untouched = Other(nnx.Rngs(1)), Other(nnx.Rngs(1))

    with pytest.raises(CheckpointMismatchError, match=r"does not fit `Other`; nothing was written. 7 leaves") as caught:
        checkpoints.restore(tmp_path / "1", model)

    error = caught.value
    assert (error.code, error.path) == ("NNX650", ("layers", 1, "bias"))
    assert [(found.path, found.kind, found.expected, found.given) for found in error.mismatches[:3]] == [
        (("layers", 1, "bias"), "dtype", jnp.bfloat16, jnp.float32),
        (("layers", 1, "kernel"), "shape", (4, 2), (3, 2)),
        (("new", "kernel"), "missing", None, None),
    ]
    assert {(found.path, found.name) for found in error.mismatches[3:]} == {
        (None, f"norm.{name}.value") for name in ("bias", "mean", "scale", "var")
    }
    assert "`layers[1].kernel`: shape (4, 2) in the model, (3, 2) in the checkpoint" in str(error)
    assert pickle.loads(pickle.dumps(error)).mismatches == error.mismatches
    assert isinstance(error, ValueError)
    assert_equal(model, untouched)


def test_what_may_differ_is_said(tmp_path: Path) -> None:
    saved = Net(nnx.Rngs(0))
    checkpoints.save(tmp_path / "1", saved)
    model = Other(nnx.Rngs(1))
    del model.layers[1]
    kept = model.new.kernel[...]

    checkpoints.restore(tmp_path / "1", model, missing="keep", unknown="ignore")
    np.testing.assert_array_equal(model.tied[...], saved.tied[...])
    np.testing.assert_array_equal(model.new.kernel[...], kept)

    half = nnx.Linear(2, 3, param_dtype=jnp.bfloat16, rngs=nnx.Rngs(1))
    checkpoints.restore(tmp_path / "1", half, at="layers.0", cast=True)
    assert half.kernel.dtype == jnp.bfloat16
    np.testing.assert_array_equal(half.kernel[...], saved.tied[...].astype(jnp.bfloat16))

    renamed = nnx.Dict(first=nnx.Linear(2, 3, rngs=nnx.Rngs(1)))
    names = [checkpoints.Rename("first.{name}", "layers.0.{name}")]
    checkpoints.restore(tmp_path / "1", renamed, names=names, unknown="ignore")
    np.testing.assert_array_equal(renamed.first.kernel[...], saved.tied[...])


def test_a_filter_selects_what_is_read(tmp_path: Path) -> None:
    saved, model = Net(nnx.Rngs(0)), Net(nnx.Rngs(1))
    saved.norm.mean[...] += 1
    checkpoints.save(tmp_path / "1", saved)
    checkpoints.restore(tmp_path / "1", model, nnx.Param)
    np.testing.assert_array_equal(model.tied[...], saved.tied[...])
    assert not model.norm.mean[...].any()
    checkpoints.restore(tmp_path / "1", model, nnx.BatchStat, nnx.RngState)
    assert_equal(saved, model)


def test_a_part_that_was_meant_is_suggested(tmp_path: Path) -> None:
    checkpoints.save(tmp_path / "1", {"model": Net(nnx.Rngs(0))})
    with pytest.raises(CheckpointMismatchError, match=r'help: at="model" reads the part `model`'):
        checkpoints.restore(tmp_path / "1", Net(nnx.Rngs(0)))
    with pytest.raises(CheckpointArgumentError, match=r"has no part `modle`\n.*\n  help: it has `model`"):
        checkpoints.restore(tmp_path / "1", Net(nnx.Rngs(0)), at="modle")


def test_what_is_no_state_is_refused(tmp_path: Path) -> None:
    model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    with pytest.raises(CheckpointArgumentError, match=r"`run\[0\]` is of type int, which is no state"):
        checkpoints.save(tmp_path / "1", {"model": model, "run": [3]})
    checkpoints.save(tmp_path / "1", {"model": model, "run": [3], "step": jnp.array(7)}, ...)
    with pytest.raises(CheckpointArgumentError, match=r"`step` is of type int"):
        checkpoints.restore(tmp_path / "1", {"model": model, "step": 0})
    train = {"model": model, "step": jnp.array(0)}
    assert checkpoints.restore(tmp_path / "1", train)["step"] == 7
    with pytest.raises(CheckpointArgumentError, match=r"`bias` is abstract: it has a shape and no values"):
        checkpoints.save(tmp_path / "2", nnx.eval_shape(lambda: model))
    with pytest.raises(CheckpointArgumentError, match=r"`bias` is abstract"):
        nnx.jit(lambda model: checkpoints.save(tmp_path / "2", model))(model)


@pytest.mark.parametrize("wrong", [{"missing": "ignore"}, {"unknown": "keep"}])
def test_options_have_two_values(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(CheckpointArgumentError, match=r"(missing|unknown)='\w+' has no meaning"):
        checkpoints.restore(tmp_path / "1", Net(nnx.Rngs(0)), **wrong)


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    model = nnx.Linear(1, 1, rngs=nnx.Rngs(0))
    with pytest.raises(CheckpointNotFoundError, match=r"there is no checkpoint at `.*nowhere`") as caught:
        checkpoints.restore(tmp_path / "nowhere", model)
    assert isinstance(caught.value, FileNotFoundError)
    with pytest.raises(CheckpointFormatError, match=r"it has no `_METADATA`"):
        checkpoints.restore(tmp_path, model)
    checkpoints.save(tmp_path / "run" / "1", model)
    with pytest.raises(CheckpointFormatError, match=r"help: there is one below it: restore `.*/run/1`"):
        checkpoints.restore(tmp_path / "run", model)
    with pytest.raises(CheckpointExistsError, match=r"`.*/run/1` exists"):
        checkpoints.save(tmp_path / "run" / "1", model)


@pytest.mark.parametrize("damaged", ["_METADATA", "**/d/*"])
def test_a_damaged_checkpoint_is_a_typed_error(tmp_path: Path, damaged: str) -> None:
    model = nnx.Dict(a=nnx.Param(jnp.zeros(4)))  # one array: of several that fail, Orbax warns about all but one
    checkpoints.save(tmp_path / "1", nnx.Dict(a=nnx.Param(jnp.ones(4))))
    for file in list((tmp_path / "1").glob(damaged)):
        file.write_bytes(file.read_bytes()[:5])
    with pytest.raises(CheckpointFormatError, match=r"/1` cannot be read: "):
        checkpoints.restore(tmp_path / "1", model)
    assert not model.a[...].any()


def test_orbax_is_imported_when_it_is_needed() -> None:
    program = """
import sys, nnxkit as nnx
assert not {"orbax", "safetensors"} & set(sys.modules)
sys.modules["orbax.checkpoint"] = None
try:
    nnx.checkpoints.save("x", nnx.Dict(a=nnx.Param(1.0)))
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'nnxkit[checkpoint]'" in done.stdout


# -- sharding ----------------------------------------------------------------------------------------------------------


class Wide(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        init = nnx.with_partitioning(nnx.initializers.lecun_normal(), (None, "model"))
        self.linear = nnx.Linear(8, 16, kernel_init=init, rngs=rngs)


@pytest.fixture
def mesh() -> Any:
    return jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def test_arrays_come_back_to_where_the_model_has_them(tmp_path: Path, mesh: Any) -> None:
    with jax.set_mesh(mesh):
        saved = Wide(nnx.Rngs(0))
    checkpoints.save(tmp_path / "1", saved)

    with jax.set_mesh(mesh):  # abstract: nothing but metadata says where
        model = checkpoints.restore(tmp_path / "1", nnx.eval_shape(lambda: Wide(nnx.Rngs(0))))
    assert model.linear.kernel.sharding.is_equivalent_to(NamedSharding(mesh, P(None, "model")), 2)
    np.testing.assert_array_equal(model.linear.kernel[...], saved.linear.kernel[...])

    alone = nnx.Linear(8, 16, rngs=nnx.Rngs(1))  # on one device
    checkpoints.restore(tmp_path / "1", alone, at="linear")
    assert len(alone.kernel.sharding.device_set) == 1
    np.testing.assert_array_equal(alone.kernel[...], saved.linear.kernel[...])

    across = nnx.Linear(8, 16, rngs=nnx.Rngs(1))  # another sharding than the saved one
    across.kernel.set_value(jax.device_put(across.kernel[...], NamedSharding(mesh, P("data"))))
    checkpoints.restore(tmp_path / "1", across, at="linear")
    assert across.kernel.sharding.spec == P("data")
    np.testing.assert_array_equal(across.kernel[...], saved.linear.kernel[...])

    struct = nnx.eval_shape(lambda: nnx.Linear(8, 16, rngs=nnx.Rngs(0)))  # the shape itself says where
    sharding = NamedSharding(mesh, P("model"))
    nnx.update(
        struct, jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), nnx.state(struct))
    )
    checkpoints.restore(tmp_path / "1", struct, at="linear")
    assert struct.kernel.sharding.spec == P("model")


# -- cut off -----------------------------------------------------------------------------------------------------------

_CUT_OFF = """
import os, signal, sys
import jax.numpy as jnp
import nnxkit as nnx
from etils import epath

path, step = sys.argv[1], sys.argv[2]
model = nnx.Dict(a=nnx.Param(jnp.zeros(4)), b=nnx.Param(jnp.zeros(4)))
nnx.checkpoints.save(path, model)
model.a[...] += 1
model.b[...] += 1

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

if step == "writing":
    from orbax.checkpoint import AsyncCheckpointer
    AsyncCheckpointer.wait_until_finished = kill
cls = type(epath.Path(path))
original = cls.rename
def watched(self, target):
    name = os.path.basename(os.fspath(target))
    if name == step:
        kill()
    result = original(self, target)
    if "after " + name == step:
        kill()
    return result
cls.rename = watched
nnx.checkpoints.save(path, model, overwrite=True)
print("not cut off")
"""


@pytest.mark.parametrize(("step", "value"), [("writing", 0.0), ("after model.previous", 0.0), ("after model", 1.0)])
def test_a_save_that_is_killed_leaves_a_whole_checkpoint(tmp_path: Path, step: str, value: float) -> None:
    path = tmp_path / "model"
    done = subprocess.run([sys.executable, "-c", _CUT_OFF, path, step], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stdout + done.stderr

    model = nnx.Dict(a=nnx.Param(jnp.full(4, 7.0)), b=nnx.Param(jnp.full(4, 7.0)))
    checkpoints.restore(path, model)
    np.testing.assert_array_equal(jnp.stack([model.a[...], model.b[...]]), np.full((2, 4), value))
    # The next save cleans up.
    checkpoints.save(path, model, overwrite=True)
    assert [file.name for file in tmp_path.iterdir() if not file.name.endswith("tmp")] == ["model"]


# -- round trips -------------------------------------------------------------------------------------------------------

_DTYPES = ["float32", "bfloat16", "int8", "uint32", "bool", "complex64"]
_leaf = st.tuples(st.sampled_from(_DTYPES), st.lists(st.integers(0, 3), max_size=3), st.integers(0, 1))
_tree = st.recursive(
    _leaf,
    lambda children: st.one_of(
        st.dictionaries(st.sampled_from(["a", "b", "value", "0"]), children, max_size=3),
        st.lists(children, max_size=3),
    ),
    max_leaves=6,
)


def build(tree: Any, scale: int) -> Any:
    """A model of this structure; leaves are Variables, or bare arrays."""
    if isinstance(tree, dict):
        return nnx.Dict({name: build(child, scale) for name, child in tree.items()})
    if isinstance(tree, list):
        return nnx.List([build(child, scale) for child in tree])
    dtype, shape, bare = tree
    array = jnp.arange(int(np.prod(shape, dtype=int))).reshape(shape).astype(dtype) * jnp.array(scale, dtype)
    return nnx.data(array) if bare else nnx.Param(array)


@given(_tree)
@example({"a": [("float32", [0, 2], 0)], "value": {}})
@example({"a": [("bool", [], 1), ("bfloat16", [2, 0], 1)], "value": {"value": ("int8", [2], 0)}})
@settings(max_examples=10)
def test_any_structure_comes_back(tmp_path_factory: pytest.TempPathFactory, tree: Any) -> None:
    before, after = build({"root": tree}, 1), build({"root": tree}, 0)
    path = tmp_path_factory.mktemp("checkpoint") / "1"
    if not jax.tree.leaves(nnx.map_state(lambda _, leaf: leaf if leaf.size else None, nnx.state(before))):
        with pytest.raises(CheckpointArgumentError, match="nothing of `Dict` is to be saved"):
            checkpoints.save(path, before)
        return
    checkpoints.save(path, before)
    checkpoints.restore(path, after)
    assert_equal(before, after)
