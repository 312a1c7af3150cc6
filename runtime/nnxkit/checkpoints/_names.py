"""Names: how a leaf of a model is called in a file, and how its axes lie there.

A leaf is called by its path joined with dots, ``layers.0.kernel``. Files that other programs wrote use other names; a
table of `Rename` entries translates. An entry says the same in both directions, so that one table reads a file and
writes it.

Invariants

- The first entry whose ``model`` pattern matches decides; a leaf that none matches keeps its name.
- Both patterns of an entry have the same placeholders, so each name determines the other.
- The sizes of all axes follow from the shape in the model alone. So a shape can be checked before anything is read.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from typing import Any

from nnx_rules.records import Record
from nnx_rules.rules import checkpoints as rules

_GROUP = re.compile(r"\(([^()]*)\)|([^\s()]+)")
_PLACEHOLDER = re.compile(r"\{(\*?)(\w+)\}")


@dataclasses.dataclass(frozen=True)
class Rename:
    """One line of a path map: what leaves are called in a file, and how their axes lie there.

    Args:
        model: the name in the model, ``layers.{i}.attn.kernel``. ``{name}`` stands for one part between dots, and
            ``{*name}`` for one or more.
        file: the name in the file, with the same placeholders: ``h.{i}.attn.c_proj.weight``.
        axes: how the axes of the file become those of the model, if they differ: ``"out in -> in out"`` transposes,
            ``"(heads dim) in -> in heads dim"`` also takes an axis of the file apart.

    Raises:
        CheckpointArgumentError: the two names have different placeholders, or the axes of both sides are not the same.

    >>> Rename("layers.{i}.kernel", "h.{i}.weight", axes="o i -> i o").rename("layers.3.kernel")
    'h.3.weight'
    """

    model: str
    file: str
    axes: str | None = None
    layout: Layout | None = dataclasses.field(init=False, repr=False, compare=False)
    _pattern: re.Pattern[str] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        wanted, given = (sorted(_PLACEHOLDER.findall(pattern)) for pattern in (self.model, self.file))
        if wanted != given or len(set(given)) < len(given):
            raise _argument(
                f"`{self.model}` and `{self.file}` must have the same placeholders, each once",
                "write `{name}` for one part of a name and `{*name}` for several, on both sides",
            )
        object.__setattr__(self, "layout", None if self.axes is None else Layout.parse(self.axes))
        object.__setattr__(self, "_pattern", re.compile(_pattern_of(self.model)))

    def rename(self, name: str) -> str | None:
        """The name in the file of a leaf with this name in the model; ``None`` if the entry is not about it."""
        match = self._pattern.fullmatch(name)
        return None if match is None else _PLACEHOLDER.sub(lambda found: match[found[2]], self.file)


def _pattern_of(name: str) -> str:
    """A regular expression for names with placeholders."""
    pattern, end = "", 0
    for found in _PLACEHOLDER.finditer(name):
        pattern += re.escape(name[end : found.start()])
        pattern += rf"(?P<{found[2]}>{'.+' if found[1] else '[^.]+'})"
        end = found.end()
    return pattern + re.escape(name[end:])


class Layout(Record):
    """Axes of a file, and of the model: ``(heads dim) in -> in heads dim``."""

    file: tuple[tuple[str, ...], ...]
    model: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Layout:
        """Read the notation.

        Raises:
            CheckpointArgumentError: it is not of this form.
        """
        left, arrow, right = text.partition("->")
        groups = _GROUP.findall(left)
        file = tuple(tuple(group.split()) if group else (name,) for group, name in groups)
        model = tuple(right.split())
        flat = [name for group in file for name in group]
        is_plain = not _GROUP.sub("", left).strip() and all(name.isidentifier() for name in model)
        if not arrow or not is_plain or sorted(flat) != sorted(model) or len(set(flat)) < len(flat):
            raise _argument(
                f"axes={text!r} does not give each axis of the model once on both sides",
                'write the axes of the file, an arrow and those of the model: "(heads dim) in -> in heads dim"',
            )
        return cls(file, model)

    def file_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape in the file of a leaf with this shape in the model.

        Raises:
            CheckpointArgumentError: it has another number of axes.
        """
        if len(shape) != len(self.model):
            raise _argument(
                f"an array of shape {tuple(shape)} has other axes than `{' '.join(self.model)}`",
                "let the entry of the path map match arrays with these axes only",
            )
        sizes = dict(zip(self.model, shape, strict=True))
        return tuple(math.prod(sizes[name] for name in group) for group in self.file)

    def to_model(self, array: Any, shape: Sequence[int]) -> Any:
        """An array of the file as the model has it."""
        sizes = dict(zip(self.model, shape, strict=True))
        flat = [name for group in self.file for name in group]
        return array.reshape([sizes[name] for name in flat]).transpose([flat.index(name) for name in self.model])

    def to_file(self, array: Any) -> Any:
        """An array of the model as the file has it."""
        flat = [name for group in self.file for name in group]
        shape = self.file_shape(array.shape)
        return array.transpose([self.model.index(name) for name in flat]).reshape(shape)


def entry_for(name: str, names: Sequence[Rename]) -> tuple[str, Layout | None]:
    """The name in the file of a leaf of the model, and how its axes lie there."""
    for entry in names:
        renamed = entry.rename(name)
        if renamed is not None:
            return renamed, entry.layout
    return name, None


def _argument(problem: str, mend: str) -> Exception:
    return rules.CHECKPOINT_ARGUMENT.error(problem=problem, mend=mend)
