"""Weights in safetensors files: the format in which models travel between libraries.

Invariants

- A file appears at its path whole or not at all.
- Names are those of the path map; where it says nothing, the path of a leaf joined with dots.
- Tensors are read one at a time, straight into the place of the array that they replace.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import jax.numpy as jnp
import numpy as np

from nnx_rules.records import Record
from nnx_rules.rules import checkpoints as rules
from nnxkit.checkpoints._fit import Policy, Stored, fit
from nnxkit.checkpoints._leaves import Leaf, leaves_of, saved_state, selected_state, write
from nnxkit.checkpoints._names import Rename

T = TypeVar("T")
_INDEX = "model.safetensors.index.json"
_MEND = "give a `.safetensors` file, the index of several, or the directory that holds them"


def _safetensors() -> Any:
    """The package ``safetensors``.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise ImportError("this needs safetensors; install it with: pip install 'nnxkit[checkpoint]'") from error
    return safetensors


def save_safetensors(
    path: str | os.PathLike[str],
    target: Any,
    *filters: Any,
    names: Sequence[Rename] = (),
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write leaves of a model to a safetensors file; one that is there is replaced.

    Args:
        path: the file.
        target: the model.
        *filters: which leaves: ``nnx.Param``, as a rule; all if there is none.
        names: what the tensors are called, and how their axes lie.
        metadata: further texts for the head of the file.

    Raises:
        CheckpointArgumentError: two leaves would get the same name, or a leaf is no array.
        ImportError: safetensors is not installed.
    """
    package = _safetensors()
    tensors: dict[str, np.ndarray[Any, Any]] = {}
    for leaf in leaves_of(saved_state(target, filters), names):
        name = _tensor_name(leaf)
        if leaf.physical[0] is None:
            _fail(f"`{name}` is of type {type(leaf.value).__name__}, no array")
        if name in tensors:
            _fail(f"two leaves are called `{name}`")
        tensors[name] = np.asarray(leaf.to_file(), order="C")
    with _replacing(Path(path)) as beside:
        package.numpy.save_file(tensors, beside, metadata=None if metadata is None else dict(metadata))


def _fail(problem: str) -> None:
    raise rules.CHECKPOINT_ARGUMENT.error(problem=problem, mend="select leaves by a filter, or rename by `names`")


def _tensor_name(leaf: Leaf) -> str:
    inner = leaf.inner.removeprefix("value").removeprefix(".")
    return f"{leaf.name}.{inner}" if inner else leaf.name


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A file beside ``path`` that takes its place when the block has ended well."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        beside.chmod(0o666 & ~_umask())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def load_safetensors(
    path: str | os.PathLike[str],
    target: T,
    *filters: Any,
    names: Sequence[Rename] = (),
    missing: Literal["error", "keep"] = "error",
    unknown: Literal["error", "ignore"] = "error",
    cast: bool = False,
) -> T:
    """Read safetensors files into a model, in place.

    Args:
        path: a file, the index of several (``model.safetensors.index.json``), or the directory of either.
        target: the model, concrete or abstract.
        *filters: which leaves of the model to read; all if there is none.
        names: what the tensors are called, and how their axes lie.
        missing: ``"keep"`` leaves leaves alone that are not in the files.
        unknown: ``"ignore"`` passes over tensors that are not in the model.
        cast: whether to convert tensors to the dtypes of the model.

    Returns:
        ``target``.

    Raises:
        CheckpointMismatchError: the tensors and the model differ in names, shapes or dtypes. It names all differences;
            the model is as it was.
        CheckpointNotFoundError: there is nothing at the path.
        CheckpointFormatError: what is there is no safetensors file, or a damaged one.
        ImportError: safetensors is not installed.

    Example::

        names = [
            nnx.checkpoints.Rename("layers.{i}.linear.kernel", "h.{i}.fc.weight", axes="out in -> in out"),
            nnx.checkpoints.Rename("{*layer}.bias", "{*layer}.bias"),
        ]
        nnx.checkpoints.load_safetensors("model.safetensors", model, nnx.Param, names=names)
    """
    policy = Policy(missing, unknown, cast)
    tensors = _tensors(Path(path).expanduser())
    state = selected_state(target, filters)
    leaves = leaves_of(state, names)
    fitted = fit(
        leaves,
        leaves_of(selected_state(target, (...,)), names) if filters else (),
        {name: tensor.stored for name, tensor in tensors.items()},
        policy,
        source=os.fspath(path),
        model=type(target).__name__,
    )
    write(target, state, fitted.values(leaves, lambda name, _: tensors[name].read()))
    return target


# Reading

_DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "C64": "complex64",
}


class _Tensor(Record):
    """A tensor of a file, not read yet."""

    file: Path
    stored: Stored
    offset: int

    def read(self) -> np.ndarray[Any, Any]:
        """The tensor, mapped into memory."""
        assert self.stored.shape is not None
        if 0 in self.stored.shape:
            return np.zeros(self.stored.shape, self.stored.dtype)
        return np.memmap(self.file, self.stored.dtype, "r", self.offset, self.stored.shape)


def _tensors(path: Path) -> dict[str, _Tensor]:
    """The tensors of a file, of the files of an index, or of those in a directory.

    Raises:
        CheckpointNotFoundError: there is no such file.
        CheckpointFormatError: a file is damaged, or there are several.
    """
    if path.is_dir():
        index = path / _INDEX
        files = [index] if index.exists() else sorted(path.glob("*.safetensors"))
        if len(files) != 1:
            found = f"it holds {len(files)} files and no `{_INDEX}`" if files else "it holds no `.safetensors` file"
            raise rules.CHECKPOINT_FORMAT.error(source=path, problem=found, mend=_MEND)
        path = files[0]
    if not path.exists():
        raise rules.CHECKPOINT_NOT_FOUND.error(source=path, mend=_MEND)
    if path.suffix != ".json":
        return _tensors_of(path)
    try:
        files = sorted({path.parent / file for file in json.loads(path.read_text("utf-8"))["weight_map"].values()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise rules.CHECKPOINT_FORMAT.error(source=path, problem="it is no index of tensors", mend=_MEND) from error
    lacking = [file for file in files if not file.exists()]
    if lacking:
        raise rules.CHECKPOINT_NOT_FOUND.error(source=lacking[0], mend=f"`{path}` names it")
    return {name: tensor for file in files for name, tensor in _tensors_of(file).items()}


def _tensors_of(file: Path) -> dict[str, _Tensor]:
    package = _safetensors()
    try:
        with package.safe_open(file, "numpy"):  # checks that the head is right and the file complete
            pass
    except package.SafetensorError as error:
        raise rules.CHECKPOINT_FORMAT.error(source=file, problem=str(error), mend=_MEND) from error
    with file.open("rb") as opened:
        size = int.from_bytes(opened.read(8), "little")
        head = json.loads(opened.read(size))
    head.pop("__metadata__", None)
    foreign = sorted({entry["dtype"] for entry in head.values()} - _DTYPES.keys())
    if foreign:
        raise rules.CHECKPOINT_FORMAT.error(source=file, problem=f"it has tensors of type {foreign[0]}", mend=_MEND)
    return {
        name: _Tensor(
            file, Stored(tuple(entry["shape"]), jnp.dtype(_DTYPES[entry["dtype"]])), 8 + size + entry["data_offsets"][0]
        )
        for name, entry in head.items()
    }
