"""The checkpoints of a training run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import nnxkit as nnx
from nnxkit.errors import CheckpointArgumentError, CheckpointExistsError, CheckpointNotFoundError

ocp = pytest.importorskip("orbax.checkpoint")
Manager = nnx.checkpoints.Manager


def counter(value: float = 0.0) -> nnx.Dict:
    return nnx.Dict(count=nnx.Param(jnp.full(3, value, jnp.float32)))


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    model = counter()
    with Manager(tmp_path / "run", keep=2, every=2) as manager:
        assert (manager.steps, manager.latest) == ([], None)
        with pytest.raises(CheckpointNotFoundError, match=r"no checkpoint at `.*run`\n.*\n  help: save a step first"):
            manager.restore(model)
        written = []
        for step in range(6):
            written.append(manager.save(step, {"model": model}))
            model.count[...] += 1  # while it is being written
        assert written == [True, False] * 3
        assert manager.save(5, {"model": model}, force=True)

    again = counter(-1)
    with Manager(tmp_path / "run", keep=2) as manager:
        assert manager.steps == [4, 5]
        assert manager.restore({"model": again}) == 5
        np.testing.assert_array_equal(again.count[...], [6.0] * 3)
        assert manager.restore(again, step=4, at="model") == 4
        np.testing.assert_array_equal(again.count[...], [4.0] * 3)
        with pytest.raises(CheckpointNotFoundError, match=r"run/1`\n.*\n  help: the steps are 4, 5"):
            manager.restore(again, step=1, at="model")
        with pytest.raises(CheckpointExistsError, match=r"run/5` exists"):
            manager.save(5, {"model": model}, force=True)


def test_the_best_steps_are_kept(tmp_path: Path) -> None:
    with Manager(tmp_path, keep=1, best="loss", mode="min", wait=True) as manager:
        for step, loss in enumerate([3.0, 1.0, 2.0]):
            manager.save(step, counter(step), metrics={"loss": jnp.array(loss)})
        assert (manager.steps, manager.best) == ([1], 1)
        with pytest.raises(CheckpointArgumentError, match=r"no metric `loss`.*\n.*\n  help: pass metrics={'loss'"):
            manager.save(3, counter(), metrics={"accuracy": 1.0})


def test_directories_of_orbax_are_read_and_written(tmp_path: Path) -> None:
    model = counter(2)
    with ocp.CheckpointManager(tmp_path / "theirs") as theirs:
        theirs.save(7, args=ocp.args.StandardSave(nnx.state(model)))
    with Manager(tmp_path / "theirs") as ours:
        again = counter()
        assert ours.restore(again) == 7
        np.testing.assert_array_equal(again.count[...], model.count[...])

    with Manager(tmp_path / "ours", wait=True) as ours:
        ours.save(7, model)
    with ocp.CheckpointManager(tmp_path / "ours") as theirs:
        state = theirs.restore(7, args=ocp.args.StandardRestore(nnx.state(counter())))
    np.testing.assert_array_equal(state["count"][...], model.count[...])


_ENDS = """
import sys
import jax.numpy as jnp
import nnxkit as nnx
model = nnx.Dict(**{f"a{i}": nnx.Param(jnp.full(50_000, 3.0)) for i in range(10)})
nnx.checkpoints.save_async(sys.argv[1] + "/model", model)
nnx.checkpoints.Manager(sys.argv[1] + "/run").save(0, model)
"""


def test_a_program_does_not_end_before_its_checkpoints_are_whole(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _ENDS, tmp_path], capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr
    model = nnx.Dict(a3=nnx.Param(jnp.zeros(50_000)))
    nnx.checkpoints.restore(tmp_path / "model", model, unknown="ignore")
    assert (model.a3[...] == 3).all()
    with Manager(tmp_path / "run") as manager:
        assert manager.steps == [0]
