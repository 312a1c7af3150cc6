"""Does a checkpoint fit a model? All differences are found, and named, before a single array is read.

Invariants

- A leaf of the model is looked for under its name with what is inside of the Variable (``kernel.value``, as States are
  saved), then under its plain name (``kernel``, as pure dictionaries and safetensors have it).
- Leaves of the checkpoint that belong to parts of the model that were not asked for are not unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from nnx_rules.errors import CheckpointMismatchError, LeafMismatch, format_path
from nnx_rules.records import Record
from nnx_rules.rules import checkpoints as rules
from nnxkit.checkpoints._leaves import Leaf

_SHOWN = 40


class Policy(Record):
    """What may differ.

    Attributes:
        missing: whether a leaf that the checkpoint lacks keeps its value.
        unknown: whether leaves that the model lacks are passed over.
        cast: whether arrays become the dtype of the model.
    """

    missing: Literal["error", "keep"] = "error"
    unknown: Literal["error", "ignore"] = "error"
    cast: bool = False

    def __post_init__(self) -> None:
        for name, allowed in (("missing", ("error", "keep")), ("unknown", ("error", "ignore"))):
            if getattr(self, name) not in allowed:
                raise rules.CHECKPOINT_ARGUMENT.error(
                    problem=f"{name}={getattr(self, name)!r} has no meaning",
                    mend=f"{name} is {' or '.join(map(repr, allowed))}",
                )


class Stored(Record):
    """What a checkpoint says about one of its leaves.

    Attributes:
        shape: its shape; ``None`` for what is no array.
        dtype: its dtype; ``None`` for what is no array.
        is_number: whether it was a Python number, which fits every dtype of its kind.
    """

    shape: tuple[int, ...] | None
    dtype: Any
    is_number: bool = False


class Fit(Record):
    """For each leaf the name of what it gets; ``None`` for one that keeps its value."""

    names: Sequence[str | None]

    def values(self, leaves: Sequence[Leaf], read: Callable[[str, Leaf], Any]) -> list[Any]:
        """The values of all leaves, those that are in the checkpoint read by a function."""
        pairs = zip(leaves, self.names, strict=True)
        return [_kept(leaf) if name is None else leaf.from_file(read(name, leaf)) for leaf, name in pairs]


def _kept(leaf: Leaf) -> Any:
    return leaf.from_file(np.zeros(leaf.value.shape)) if leaf.is_empty else leaf.value


def fit(
    leaves: Sequence[Leaf],
    others: Iterable[Leaf],
    stored: Mapping[str, Stored],
    policy: Policy,
    *,
    source: str,
    model: str,
) -> Fit:
    """Find for each leaf of a model what the checkpoint has for it.

    Args:
        leaves: what is to be restored.
        others: the rest of the model.
        stored: what the checkpoint has.
        policy: what may differ.
        source: how the checkpoint is called in an error.
        model: how the model is called in an error.

    Raises:
        CheckpointMismatchError: they differ in another way; all differences are in it.
    """
    names = [_find(leaf, stored) for leaf in leaves]
    found: list[LeafMismatch] = []
    for leaf, name in zip(leaves, names, strict=True):
        if name is None:
            if policy.missing == "error" and not leaf.is_empty:
                found.append(LeafMismatch(leaf.path, leaf.name, "missing"))
            continue
        expected, given = leaf.physical, stored[name]
        if expected[0] != given.shape:
            found.append(LeafMismatch(leaf.path, name, "shape", expected[0], given.shape))
        elif not (policy.cast or _fits(expected[1], given.dtype, number=leaf.is_number or given.is_number)):
            found.append(LeafMismatch(leaf.path, name, "dtype", expected[1], given.dtype))
    if policy.unknown == "error":
        known = {*names, *(_find(leaf, stored) for leaf in others)}
        found += (LeafMismatch(None, name, "unknown") for name in stored if name not in known)
    if found:
        raise _error(found, source, model)
    return Fit(names)


def _find(leaf: Leaf, stored: Mapping[str, Stored]) -> str | None:
    plain = leaf.inner.removeprefix("value").removeprefix(".")
    for inner in dict.fromkeys((leaf.inner, plain)):
        name = ".".join(part for part in (leaf.name, inner) if part)
        if name in stored:
            return name
    return None


def _fits(expected: Any, given: Any, *, number: bool) -> bool:
    if expected is None or given is None:
        return expected is given
    return np.can_cast(given, expected, "same_kind") if number else bool(expected == given)


# The error

_LINES = {
    "missing": "{path}: not in the checkpoint{alias}",
    "unknown": "`{name}`: not in the model",
    "shape": "{path}: shape {expected} in the model, {given} in the checkpoint{alias}",
    "dtype": "{path}: dtype {expected} in the model, {given} in the checkpoint{alias}",
}
_MENDS = {
    "missing": 'missing="keep" leaves what the checkpoint lacks as it is',
    "unknown": 'unknown="ignore" passes over what the model lacks',
    "shape": "restore into a model of the same sizes, or leave these leaves out by a filter",
    "dtype": "cast=True converts to the dtypes of the model",
}


def _error(found: Sequence[LeafMismatch], source: str, model: str) -> Exception:
    lines = [f"    {_line(mismatch)}" for mismatch in found[:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append(f"    and {len(found) - _SHOWN} more")
    kinds = dict.fromkeys(mismatch.kind for mismatch in found)
    error = rules.CHECKPOINT_MISMATCH.error(
        cls=model,
        path=next((mismatch.path for mismatch in found if mismatch.path is not None), None),
        source=source,
        count="1 leaf differs" if len(found) == 1 else f"{len(found)} leaves differ",
        lines="".join(f"\n{line}" for line in lines),
        mend="\n".join([*_parts(found), *(_MENDS[kind] for kind in kinds)]),
    )
    assert isinstance(error, CheckpointMismatchError)
    error.mismatches = tuple(found)
    return error


def _parts(found: Sequence[LeafMismatch]) -> Iterator[str]:
    """Say which part of the checkpoint has what is missing, if one has."""
    missing = {mismatch.name for mismatch in found if mismatch.kind == "missing"}
    unknown = (mismatch.name.removesuffix(".value").partition(".") for mismatch in found if mismatch.kind == "unknown")
    for part in dict.fromkeys(part for part, _, name in unknown if name in missing):
        yield f'at="{part}" reads the part `{part}` of the checkpoint'


def _line(mismatch: LeafMismatch) -> str:
    path = None if mismatch.path is None else format_path(mismatch.path)
    plain = None if mismatch.path is None else ".".join(map(str, mismatch.path))
    alias = "" if mismatch.name.removesuffix(".value") == plain else f" (`{mismatch.name}` there)"
    return _LINES[mismatch.kind].format(
        path=f"`{path}`", name=mismatch.name, expected=mismatch.expected, given=mismatch.given, alias=alias
    )
