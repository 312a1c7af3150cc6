"""Weights in safetensors files: path maps, what does not fit, and what is no such file."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import nnxkit as nnx
from nnxkit.checkpoints import Rename, load_safetensors, save_safetensors
from nnxkit.checkpoints._names import Layout
from nnxkit.errors import (
    CheckpointArgumentError,
    CheckpointFormatError,
    CheckpointMismatchError,
    CheckpointNotFoundError,
)

numpy_files = pytest.importorskip("safetensors.numpy")


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.layers = nnx.List([nnx.Linear(2, 3, rngs=rngs), nnx.Linear(3, 4, rngs=rngs)])
        self.query = nnx.LinearGeneral(4, (2, 3), rngs=rngs)
        self.conv = nnx.Conv(2, 3, (5, 7), rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)


NAMES = [
    Rename("layers.{i}.kernel", "h.{i}.fc.weight", axes="out in -> in out"),
    Rename("layers.{i}.bias", "h.{i}.fc.bias"),
    Rename("query.kernel", "attn.q.weight", axes="(heads dim) in -> in heads dim"),
    Rename("query.bias", "attn.q.bias", axes="(heads dim) -> heads dim"),
    Rename("conv.kernel", "conv.weight", axes="o i h w -> h w i o"),
]


def test_a_path_map_writes_and_reads(tmp_path: Path) -> None:
    saved, model = Net(nnx.Rngs(0)), Net(nnx.Rngs(1))
    saved.query.bias[...] = jnp.arange(6.0).reshape(2, 3)
    path = tmp_path / "w.safetensors"
    save_safetensors(path, saved, nnx.Param, names=NAMES, metadata={"format": "pt"})

    tensors = numpy_files.load_file(path)
    assert set(tensors) == {
        *(f"h.{i}.fc.{name}" for i in (0, 1) for name in ("weight", "bias")),
        *("attn.q.weight", "attn.q.bias", "conv.weight", "conv.bias"),
    }
    np.testing.assert_array_equal(tensors["h.1.fc.weight"], saved.layers[1].kernel[...].T)
    np.testing.assert_array_equal(tensors["attn.q.weight"], saved.query.kernel[...].reshape(4, 6).T)
    np.testing.assert_array_equal(tensors["attn.q.bias"], np.arange(6.0))
    np.testing.assert_array_equal(tensors["conv.weight"], saved.conv.kernel[...].transpose(3, 2, 0, 1))

    key = jax.random.key_data(model.drop.rngs.key[...])
    assert load_safetensors(path, model, nnx.Param, names=NAMES) is model
    for one, other in zip(*(jax.tree.leaves(nnx.state(node, nnx.Param)) for node in (saved, model)), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(jax.random.key_data(model.drop.rngs.key[...]), key)


@given(st.permutations(["a", "b", "c", "d"]), st.lists(st.integers(1, 4), max_size=3), st.data())
def test_axes_go_there_and_back(model: list[str], cuts: list[int], data: st.DataObject) -> None:
    file = data.draw(st.permutations(model))
    bounds = sorted({0, 4, *(min(cut, 4) for cut in cuts)})
    groups = " ".join(f"({' '.join(file[start:end])})" for start, end in itertools.pairwise(bounds))
    layout = Layout.parse(f"{groups} -> {' '.join(model)}")
    array = np.arange(24).reshape(data.draw(st.permutations([1, 2, 3, 4])))
    there = layout.to_file(array)
    assert there.shape == layout.file_shape(array.shape)
    np.testing.assert_array_equal(layout.to_model(there, array.shape), array)


@pytest.mark.parametrize(
    ("model", "file", "axes", "problem"),
    [
        ("a.{i}", "b", None, r"must have the same placeholders"),
        ("a.{i}.{i}", "b.{i}.{i}", None, r"each once"),
        ("a", "b", "i o", r"axes='i o' does not give each axis"),
        ("a", "b", "i o -> i", r"does not give each axis"),
        ("a", "b", "((i o) -> i o", r"does not give each axis"),
        ("a", "b", "i -> i j j", r"does not give each axis"),
    ],
)
def test_an_entry_of_a_path_map_makes_sense(model: str, file: str, axes: str | None, problem: str) -> None:
    with pytest.raises(CheckpointArgumentError, match=problem):
        Rename(model, file, axes)


def test_placeholders() -> None:
    assert Rename("a.{x}.c", "{x}").rename("a.b.c") == "b"
    assert Rename("a.{x}.c", "{x}").rename("a.b.d.c") is None
    assert Rename("a.{*x}.c", "{*x}").rename("a.b.d.c") == "b.d"
    assert Rename("a+.{x}", "{x}").rename("aa.b") is None
    with pytest.raises(CheckpointArgumentError, match=r"shape \(2,\) has other axes than `i o`"):
        save_safetensors("unused", nnx.Dict(a=nnx.Param(jnp.ones(2))), names=[Rename("a", "b", "o i -> i o")])


def test_mismatches_are_named_on_both_sides(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    numpy_files.save_file(
        {
            "h.0.fc.weight": np.ones((3, 3), np.float32),
            "h.0.fc.bias": np.ones(3, np.float16),
            "old": np.ones(1, np.float32),
        },
        path,
    )
    model = nnx.Dict(layers=nnx.List([nnx.Linear(2, 3, rngs=nnx.Rngs(0))]), head=nnx.Param(jnp.ones(2)))
    with pytest.raises(CheckpointMismatchError, match=r"does not fit `Dict`; nothing was written. 4 leaves") as caught:
        load_safetensors(path, model, names=NAMES)
    lines = str(caught.value).splitlines()
    assert [line.strip() for line in lines if line.startswith("    ")] == [
        "`head`: not in the checkpoint",
        "`layers[0].bias`: dtype float32 in the model, float16 in the checkpoint (`h.0.fc.bias` there)",
        "`layers[0].kernel`: shape (3, 2) in the model, (3, 3) in the checkpoint (`h.0.fc.weight` there)",
        "`old`: not in the model",
    ]
    bias = nnx.Dict(layers=nnx.List([nnx.Dict(bias=nnx.Param(jnp.zeros(3)))]))
    load_safetensors(path, bias, names=NAMES, unknown="ignore", cast=True)
    np.testing.assert_array_equal(bias.layers[0].bias[...], jnp.ones(3))
    assert bias.layers[0].bias.dtype == jnp.float32


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int32", "uint64", "float16", "bfloat16", "float32", "float8_e4m3fn", "complex64"]
)
def test_dtypes_come_back(tmp_path: Path, dtype: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(jnp.dtype(dtype))
    model = nnx.Dict(a=nnx.Variable(array), b=nnx.Variable(np.array(1).astype(jnp.dtype(dtype))))
    save_safetensors(tmp_path / "a.safetensors", model)
    again = load_safetensors(
        tmp_path / "a.safetensors",
        nnx.Dict(a=nnx.Variable(np.zeros_like(array)), b=nnx.Variable(np.array(array[0, 0]))),
    )
    assert again.a.get_raw_value().dtype == array.dtype
    np.testing.assert_array_equal(again.a.get_raw_value(), array)
    assert again.b.get_raw_value() == 1


def test_the_files_of_an_index_are_one_checkpoint(tmp_path: Path) -> None:
    numpy_files.save_file({"a": np.ones(2, np.float32)}, tmp_path / "model-1.safetensors")
    numpy_files.save_file({"b": np.zeros((0, 2), np.float32)}, tmp_path / "model-2.safetensors")
    model = nnx.Dict(a=nnx.Param(jnp.zeros(2)), b=nnx.Param(jnp.zeros((0, 2))))
    with pytest.raises(CheckpointFormatError, match=r"holds 2 files and no `model.safetensors.index.json`"):
        load_safetensors(tmp_path, model)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}))
    load_safetensors(tmp_path, model)
    np.testing.assert_array_equal(model.a[...], [1.0, 1.0])
    index.write_text(json.dumps({"weight_map": {"a": "model-3.safetensors"}}))
    with pytest.raises(CheckpointNotFoundError, match=r"no checkpoint at `.*model-3.safetensors`"):
        load_safetensors(index, model)
    index.write_text("[]")
    with pytest.raises(CheckpointFormatError, match=r"it is no index of tensors"):
        load_safetensors(index, model)


def test_what_is_no_file_of_tensors(tmp_path: Path) -> None:
    model = nnx.Dict(a=nnx.Param(jnp.zeros(200)))
    path = tmp_path / "a.safetensors"
    with pytest.raises(CheckpointNotFoundError, match=r"no checkpoint at `.*a.safetensors`"):
        load_safetensors(path, model)
    with pytest.raises(CheckpointFormatError, match=r"it holds no `.safetensors` file"):
        load_safetensors(tmp_path, model)
    save_safetensors(path, model)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointFormatError, match=r"a.safetensors` cannot be read: "):
        load_safetensors(path, model)


def test_a_save_that_fails_leaves_the_file_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.safetensors"
    save_safetensors(path, nnx.Dict(a=nnx.Param(jnp.zeros(2))))
    before = path.read_bytes()

    def fail(tensors: Any, file: Path, metadata: Any) -> None:
        file.write_bytes(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(numpy_files, "save_file", fail)
    with pytest.raises(OSError, match="no space left"):
        save_safetensors(path, nnx.Dict(a=nnx.Param(jnp.ones(2))))
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["a.safetensors"]


def test_names_are_unique_and_values_are_arrays(tmp_path: Path) -> None:
    two = nnx.Dict(a=nnx.Param(jnp.ones(1)), b=nnx.Param(jnp.ones(1)))
    with pytest.raises(CheckpointArgumentError, match=r"two leaves are called `w`"):
        save_safetensors(tmp_path / "x", two, names=[Rename("a", "w"), Rename("b", "w")])
    with pytest.raises(CheckpointArgumentError, match=r"`a` is of type str, no array"):
        save_safetensors(tmp_path / "x", nnx.Dict(a=nnx.Variable("text")))


def test_tensors_are_placed_where_the_model_has_them(tmp_path: Path) -> None:
    mesh = jax.make_mesh((8,), ("model",))
    kernel = np.arange(128, dtype=np.float32).reshape(8, 16)
    numpy_files.save_file({"weight": kernel.T.copy()}, tmp_path / "a.safetensors")
    sharding = NamedSharding(mesh, P(None, "model"))
    model = nnx.Dict(kernel=nnx.Param(jax.ShapeDtypeStruct((8, 16), jnp.float32, sharding=sharding)))
    load_safetensors(tmp_path / "a.safetensors", model, names=[Rename("kernel", "weight", "o i -> i o")])
    assert model.kernel.sharding == sharding
    np.testing.assert_array_equal(model.kernel[...], kernel)
