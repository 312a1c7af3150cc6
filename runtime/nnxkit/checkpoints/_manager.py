"""The checkpoints of a training run: one directory, one checkpoint a step, old ones removed.

The directory is that of Orbax's ``CheckpointManager`` (``<directory>/<step>/default``), so that a run which it began
can go on here, and the other way round.

Invariants

- A step is listed when it is whole. A save that is cut off leaves nothing that is listed, and the steps before it.
- An old step is removed after a newer one is whole.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self

from nnx_rules.rules import checkpoints as rules
from nnxkit.checkpoints._exit import finished, wait_at_exit
from nnxkit.checkpoints._names import Rename
from nnxkit.checkpoints._orbax import orbax, restore, state_to_save, store_path

_ITEM = "default"


class Manager:
    """The checkpoints of a training run.

    Use it in a ``with`` statement, or call `close`: it waits for what is being written.

    Args:
        directory: where the checkpoints are; it is made if it does not exist.
        keep: how many steps to keep; all if ``None``.
        every: which steps `save` writes: those that this number divides.
        best: name of the metric that decides which steps to keep; the newest are kept if ``None``.
        mode: whether a large or a small value of the metric is good.
        wait: whether `save` returns only when the checkpoint is written.

    Raises:
        ImportError: orbax-checkpoint is not installed.

    Example::

        with nnx.checkpoints.Manager("runs/1", keep=3, every=100) as manager:
            start = manager.restore(train) + 1 if manager.steps else 0
            for step in range(start, 1000):
                train_step(train, next(batches))
                manager.save(step, train)
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        keep: int | None = None,
        every: int = 1,
        best: str | None = None,
        mode: Literal["max", "min"] = "max",
        wait: bool = False,
    ) -> None:
        ocp = orbax()
        self.directory: Any = store_path(directory)
        self._best = best
        options = ocp.CheckpointManagerOptions(
            max_to_keep=keep,
            save_interval_steps=every,
            best_fn=None if best is None else (lambda metrics: metrics[best]),
            best_mode=mode,
            keep_checkpoints_without_metrics=False,
            cleanup_tmp_directories=True,
            enable_async_checkpointing=not wait,
        )
        self._manager = ocp.CheckpointManager(self.directory, options=options)
        self._arguments = ocp.args.PyTreeSave
        wait_at_exit(self)

    @property
    def steps(self) -> list[int]:
        """The steps that are whole, in ascending order."""
        return sorted(self._manager.all_steps())

    @property
    def latest(self) -> int | None:
        """The newest step; ``None`` if there is none."""
        return self.steps[-1] if self.steps else None

    @property
    def best(self) -> int | None:
        """The step with the best metric; ``None`` if there is none."""
        found: int | None = self._manager.best_step()
        return found

    def save(
        self,
        step: int,
        target: Any,
        *filters: Any,
        metrics: Mapping[str, float] | None = None,
        force: bool = False,
    ) -> bool:
        """Write the state of a model, if it is the turn of this step.

        Args:
            step: number of the step.
            target: a module, an optimizer, or a container of several.
            *filters: which leaves; all if there is none.
            metrics: what the step reached, with the metric ``best``.
            force: whether to write it in any case: the last step of a run, say.

        Returns:
            whether it is written. It is being written until `wait` returns; the model may change at once.

        Raises:
            CheckpointArgumentError: ``metrics`` lacks the metric that decides, or there is nothing to save.
            CheckpointExistsError: the step is there already.
        """
        if self._best is not None and self._best not in (metrics or {}):
            raise rules.CHECKPOINT_ARGUMENT.error(
                problem=f"`save` got no metric `{self._best}`, by which the best step is chosen",
                mend=f"pass metrics={{{self._best!r}: ...}}",
            )
        if not (force or self._manager.should_save(step)):
            return False
        if step in self._manager.all_steps():
            raise rules.CHECKPOINT_EXISTS.error(source=self._path(step))
        state = state_to_save(target, filters)
        metrics = None if metrics is None else {name: float(value) for name, value in metrics.items()}
        written: bool = self._manager.save(step, args=self._arguments(state), metrics=metrics, force=force)
        return written

    def restore(
        self,
        target: Any,
        *filters: Any,
        step: int | None = None,
        at: str = "",
        names: Sequence[Rename] = (),
        missing: Literal["error", "keep"] = "error",
        unknown: Literal["error", "ignore"] = "error",
        cast: bool = False,
    ) -> int:
        """Read a step into a model, in place, as `restore` does.

        Args:
            target: the model, concrete or abstract, or a container of several.
            *filters: which leaves of the model to read; all if there is none.
            step: the step; the newest if ``None``.
            at: the part of the checkpoint that is the model.
            names: what leaves are called in the checkpoint.
            missing: ``"keep"`` leaves leaves alone that are not in the checkpoint.
            unknown: ``"ignore"`` passes over leaves that are not in the model.
            cast: whether to convert arrays to the dtypes of the model.

        Returns:
            the step.

        Raises:
            CheckpointNotFoundError: there is no such step, or none at all.
            CheckpointMismatchError: the checkpoint and the model differ; the model is as it was.
            CheckpointFormatError: the checkpoint is damaged.
        """
        self.wait()
        steps = self.steps
        found = self.latest if step is None else step
        if found is None or found not in steps:
            mend = f"the steps are {', '.join(map(str, steps))}" if steps else "save a step first"
            raise rules.CHECKPOINT_NOT_FOUND.error(
                source=self.directory if found is None else self._path(found), mend=mend
            )
        restore(
            self._path(found) / _ITEM,
            target,
            *filters,
            at=at,
            names=names,
            missing=missing,
            unknown=unknown,
            cast=cast,
        )
        return found

    def _path(self, step: int) -> Any:
        return self.directory / str(step)

    def wait(self) -> None:
        """Wait until everything is written.

        Raises:
            Exception: what went wrong while it was written.
        """
        self._manager.wait_until_finished()

    def close(self) -> None:
        """Wait until everything is written, and stop."""
        try:
            self._manager.close()
        finally:
            finished(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
