"""Checkpoints in the format of Orbax: a directory that holds the State of a model.

The directory is what ``orbax.checkpoint`` writes for ``nnx.state(model)``, so that Orbax, and flax with it, read it and
are read.

Invariants

- A checkpoint appears at its path whole or not at all: Orbax writes beside it and renames.
- One that is replaced stays until the new one is whole. Two renames put the new one in its place; between them the
  old one is at ``<name>.previous``, where `restore` looks too.
- Orbax is imported when the first checkpoint is written or read.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import jax
import numpy as np

from nnx_rules.rules import checkpoints as rules
from nnxkit.checkpoints._exit import finished, wait_at_exit
from nnxkit.checkpoints._fit import Policy, Stored, fit
from nnxkit.checkpoints._leaves import Leaf, leaves_of, saved_state, selected_state, write
from nnxkit.checkpoints._names import Rename

T = TypeVar("T")
_METADATA = "_METADATA"
Keys = tuple[str, ...]
"""The place of an array in the tree of a checkpoint."""


def orbax() -> Any:
    """The package ``orbax.checkpoint``.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import orbax.checkpoint as ocp
    except ImportError as error:
        raise ImportError(
            "checkpoints need orbax-checkpoint; install it with: pip install 'nnxkit[checkpoint]'"
        ) from error
    return ocp


def store_path(path: str | os.PathLike[str]) -> Any:
    """An absolute path, local or in a cloud store."""
    from etils import epath

    if "://" in os.fspath(path):
        return epath.Path(path)
    return epath.Path(Path(path).expanduser().absolute())


class PendingSave:
    """A checkpoint that is being written while the program goes on.

    Its arrays are copied already: the model may change. The program does not end before it is written.
    """

    def __init__(self, checkpointer: Any, place: _Place) -> None:
        self._checkpointer = checkpointer
        self._place = place
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._finish, name="nnxkit checkpoint")
        wait_at_exit(self)
        self._thread.start()

    def _finish(self) -> None:
        try:
            self._checkpointer.wait_until_finished()
            self._place.settle()
        except BaseException as error:  # told by `wait`
            self._error = error
        finally:
            self._checkpointer.close()
            finished(self)

    @property
    def done(self) -> bool:
        """Whether it is written, or has failed."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Wait until the checkpoint is written.

        Raises:
            Exception: what went wrong while it was written.
        """
        self._thread.join()
        if self._error is not None:
            raise self._error


def save(path: str | os.PathLike[str], target: Any, *filters: Any, overwrite: bool = False) -> None:
    """Write the state of a model to a new directory.

    Args:
        path: the directory; with several processes, one that all of them see.
        target: a module, an optimizer, or a container of several: ``{"model": model, "optimizer": optimizer}``.
        *filters: which leaves; all if there is none.
        overwrite: whether to replace a checkpoint that is there.

    Raises:
        CheckpointExistsError: the path exists, and ``overwrite`` is false.
        CheckpointArgumentError: there is nothing to save, or something that is no state.
        ImportError: orbax-checkpoint is not installed.
    """
    save_async(path, target, *filters, overwrite=overwrite).wait()


def save_async(path: str | os.PathLike[str], target: Any, *filters: Any, overwrite: bool = False) -> PendingSave:
    """As `save`, but return as soon as the arrays are copied.

    Args:
        path: the directory.
        target: a module, an optimizer, or a container of several.
        *filters: which leaves; all if there is none.
        overwrite: whether to replace a checkpoint that is there.

    Raises:
        CheckpointExistsError: the path exists, and ``overwrite`` is false.
        CheckpointArgumentError: there is nothing to save, or something that is no state.
        ImportError: orbax-checkpoint is not installed.
    """
    ocp = orbax()
    state = state_to_save(target, filters)
    place = _Place(store_path(path), overwrite=overwrite)
    checkpointer = ocp.AsyncCheckpointer(ocp.PyTreeCheckpointHandler())
    try:
        checkpointer.save(place.written, args=ocp.args.PyTreeSave(state))
    except BaseException:
        checkpointer.close()
        raise
    return PendingSave(checkpointer, place)


def state_to_save(target: Any, filters: Sequence[Any]) -> Any:
    """What is written of a model.

    Raises:
        CheckpointArgumentError: nothing: it has no leaves, or the filters take none.
    """
    state = saved_state(target, filters)
    if not jax.tree.leaves(state):
        raise rules.CHECKPOINT_ARGUMENT.error(
            problem=f"nothing of `{type(target).__name__}` is to be saved",
            mend="see that the filters take what the model has" if filters else "give a model that has Variables",
        )
    return state


class _Place:
    """Where a checkpoint is written, and how it comes to its path."""

    def __init__(self, path: Any, *, overwrite: bool) -> None:
        self.path = path
        self.previous: Any = path.parent / f"{path.name}.previous"
        self.replaces = overwrite and (path.exists() or self.previous.exists())
        if path.exists() and not overwrite:
            raise rules.CHECKPOINT_EXISTS.error(source=path)
        self.written: Any = path.parent / f"{path.name}.next" if self.replaces else path
        if self.replaces and is_primary():
            _remove(self.written)  # of a save that was cut off after it was whole

    def settle(self) -> None:
        """Put a checkpoint that is whole to its path."""
        if self.replaces and is_primary():
            if self.path.exists():
                _remove(self.previous)
                self.path.rename(self.previous)
            self.written.rename(self.path)
            _remove(self.previous)
        if self.replaces and jax.process_count() > 1:
            from jax.experimental import multihost_utils

            multihost_utils.sync_global_devices(f"nnxkit checkpoint {self.path}")


def is_primary() -> bool:
    """Whether this process renames and removes directories."""
    return jax.process_index() == 0


def _remove(path: Any) -> None:
    if path.exists():
        path.rmtree()


def restore(
    path: str | os.PathLike[str],
    target: T,
    *filters: Any,
    at: str = "",
    names: Sequence[Rename] = (),
    missing: Literal["error", "keep"] = "error",
    unknown: Literal["error", "ignore"] = "error",
    cast: bool = False,
) -> T:
    """Read a checkpoint into a model, in place.

    The checkpoint may be one of `save`, of a `Manager`, or one that Orbax or flax wrote for a State or for a pure
    dictionary. Each array is read to where the array is that it replaces. In an abstract model (`nnx.eval_shape`) it
    goes where its ``jax.ShapeDtypeStruct`` or the sharding metadata of its Variable says.

    Args:
        path: the directory.
        target: the model, concrete or abstract, or a container of several.
        *filters: which leaves of the model to read; all if there is none.
        at: the part of the checkpoint that is the model: ``"model"`` if it was saved as ``{"model": model}``.
        names: what leaves are called in the checkpoint, where they are not called as in the model.
        missing: ``"keep"`` leaves leaves alone that are not in the checkpoint.
        unknown: ``"ignore"`` passes over leaves that are not in the model.
        cast: whether to convert arrays to the dtypes of the model.

    Returns:
        ``target``.

    Raises:
        CheckpointMismatchError: the checkpoint and the model differ in structure, shapes or dtypes. It names all
            differences; the model is as it was.
        CheckpointNotFoundError: there is nothing at the path.
        CheckpointFormatError: what is there is no checkpoint, or a damaged one.
        ImportError: orbax-checkpoint is not installed.
    """
    ocp = orbax()
    policy = Policy(missing, unknown, cast)
    source = _find(store_path(path))
    prefix = tuple(at.split(".")) if at else ()
    checkpointer = ocp.Checkpointer(handler := ocp.PyTreeCheckpointHandler())
    try:
        with _unreadable(source):
            tree = handler.metadata(source).tree
        stored = {".".join(keys): (keys, entry) for keys, entry in _leaves(_part(tree, prefix, source), prefix)}
        stored = {name.removeprefix(f"{at}."): entry for name, entry in stored.items()} if at else stored
        state = selected_state(target, filters)
        leaves = leaves_of(state, names)
        fitted = fit(
            leaves,
            leaves_of(selected_state(target, (...,)), names) if filters else (),
            {name: _stored(ocp, entry) for name, (_, entry) in stored.items()},
            policy,
            source=str(source),
            model=type(target).__name__,
        )
        wanted = {stored[name][0]: leaf for name, leaf in zip(fitted.names, leaves, strict=True) if name is not None}
        read = _read(ocp, checkpointer, source, tree, wanted)
    finally:
        checkpointer.close()
    write(target, state, fitted.values(leaves, lambda name, _: read[stored[name][0]]))
    return target


# Reading


def _find(path: Any) -> Any:
    """Where the checkpoint of a path is.

    Raises:
        CheckpointNotFoundError: nowhere.
        CheckpointFormatError: something else is there.
    """
    previous = path.parent / f"{path.name}.previous"
    for candidate in (path, previous):
        if (candidate / _METADATA).exists():
            return candidate
    if not path.exists():
        raise rules.CHECKPOINT_NOT_FOUND.error(source=path, mend=_nearby(path))
    inside = [item.name for item in path.iterdir() if (item / _METADATA).exists()] if path.is_dir() else []
    steps = [item.name for item in path.iterdir() if item.name.isdigit()] if path.is_dir() else []
    mend = "give the directory that `checkpoints.save` wrote"
    if inside:
        mend = f"there is one below it: restore `{path / sorted(inside)[0]}`"
    elif steps:
        mend = "it holds the steps of a training: use `checkpoints.Manager`"
    raise rules.CHECKPOINT_FORMAT.error(source=path, problem=f"it has no `{_METADATA}`", mend=mend)


def _nearby(path: Any) -> str:
    if not path.parent.is_dir():
        return f"the directory `{path.parent}` does not exist"
    beside = [f"`{item.name}`" for item in path.parent.iterdir() if (item / _METADATA).exists()]
    if beside:
        return f"beside it there is {', '.join(sorted(beside))}"
    return "see that the path is right; one that ends in `.orbax-checkpoint-tmp` is of a save that was cut off"


@contextlib.contextmanager
def _unreadable(source: Any) -> Iterator[None]:
    """Say which checkpoint it is that Orbax stumbles over."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        problem = str(error).partition("\n")[0] or type(error).__name__
        raise rules.CHECKPOINT_FORMAT.error(
            source=source, problem=problem, mend="restore another one; this one is damaged or of an unknown version"
        ) from error


def _part(tree: Any, keys: Keys, source: Any) -> Any:
    for depth, key in enumerate(keys):
        children = dict(_children(tree))
        if key not in children:
            held = ", ".join(f"`{name}`" for name in children) or "no parts"
            raise rules.CHECKPOINT_ARGUMENT.error(
                problem=f"`{source}` has no part `{'.'.join(keys[: depth + 1])}`", mend=f"it has {held}"
            )
        tree = children[key]
    return tree


def _children(tree: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(tree, Mapping):
        return [(str(key), child) for key, child in tree.items()]
    return [(str(index), child) for index, child in enumerate(tree)] if isinstance(tree, list | tuple) else []


def _leaves(tree: Any, keys: Keys) -> Iterator[tuple[Keys, Any]]:
    if isinstance(tree, Mapping | list | tuple):
        for key, child in _children(tree):
            yield from _leaves(child, (*keys, key))
    elif tree is not None:
        yield keys, tree


def _stored(ocp: Any, entry: Any) -> Stored:
    if not isinstance(entry, ocp.metadata.ArrayMetadata):  # a string, or what Orbax does not know
        return Stored(None, None)
    return Stored(tuple(entry.shape), np.dtype(entry.dtype), isinstance(entry, ocp.metadata.ScalarMetadata))


def _read(ocp: Any, checkpointer: Any, source: Any, tree: Any, wanted: Mapping[Keys, Leaf]) -> dict[Keys, Any]:
    """The arrays at some of the keys of a checkpoint."""
    if not wanted:
        return {}
    branches = {name[:length] for name in wanted for length in range(len(name) + 1)}
    item, restore_args = _request(ocp, tree, (), wanted, branches)
    with _unreadable(source):
        restored = checkpointer.restore(
            source, args=ocp.args.PyTreeRestore(item=item, restore_args=restore_args, partial_restore=True)
        )
    return dict(_leaves(restored, ()))


def _request(ocp: Any, tree: Any, keys: Keys, wanted: Mapping[Keys, Leaf], branches: Container[Keys]) -> Any:
    """The tree without the dictionary items that are not wanted, and for each array how to read it.

    A list cannot be shortened, so it is read whole if anything of it is wanted.
    """
    if isinstance(tree, Mapping):
        kept = {
            key: _request(ocp, child, (*keys, str(key)), wanted, branches)
            for key, child in tree.items()
            if (*keys, str(key)) in branches
        }
        return {key: item for key, (item, _) in kept.items()}, {key: args for key, (_, args) in kept.items()}
    if isinstance(tree, list | tuple):
        parts = [_request(ocp, child, (*keys, str(index)), wanted, branches) for index, child in enumerate(tree)]
        return [item for item, _ in parts], [args for _, args in parts]
    leaf = wanted.get(keys)
    if leaf is not None and leaf.is_placed:
        return 0, ocp.ArrayRestoreArgs(sharding=leaf.sharding, dtype=leaf.value.dtype)
    is_array = _stored(ocp, tree).shape is not None
    return 0, ocp.RestoreArgs(restore_type=np.ndarray) if is_array else ocp.RestoreArgs()
