"""What the mypy plugin costs: mypy on a project of about 20,000 lines of flax.nnx code, with the plugin and without.

Modules import from each other in a tree. *Cold*: nothing is cached, of the project or of the libraries. *Warm*: after
an edit of one file, with the cache of the run before. *Daemon*: the same edit, in a running daemon. The two take turns,
in processes of their own, and the median of the ratios of a turn is reported. Times are what a caller waits. Each side
has one turn that is not counted, in which Python keeps the byte code of what it loads.

Run with ``python benchmarks/mypy_plugin.py``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _installed import environment

MODULES = 100
SIDES = ("without", "with")

CLASS = '''

class Block{number}(nnx.Module):
    """A block."""

    def __init__(self, width: int, *, rngs: nnx.Rngs) -> None:
        self.width = width
        self.inner = nnx.Linear(width, 4 * width, rngs=rngs)
        self.outer = nnx.Linear(4 * width, width, rngs=rngs)
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.scale = nnx.Param(jnp.ones((width,)))
        self.heads = nnx.List([nnx.Linear(width, width, rngs=rngs) for _ in range(3)])

    def __call__(self, x: jax.Array) -> jax.Array:
        hidden = nnx.relu(self.inner(self.norm(x)))
        out = self.outer(hidden) * self.scale
        for head in self.heads:
            out = out + head(x)
        return out


def loss{number}(model: Block{number}, x: jax.Array) -> jax.Array:
    return ((model(x) - x) ** 2).mean()


@nnx.jit
def step{number}(model: Block{number}, x: jax.Array) -> jax.Array:
    value, grads = nnx.value_and_grad(loss{number})(model, x)
    graphdef, params, rest = nnx.split(model, nnx.Param, ...)
    nnx.update(model, params)
    return value
'''


def write_project(folder: Path) -> int:
    """Write the project, and return how many lines it has."""
    package = folder / "project"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    lines = 0
    for number in range(MODULES):
        above = f"from project.module{number // 5} import Block0 as Above\n" if number else ""
        text = f"import jax\nimport jax.numpy as jnp\nfrom flax import nnx\n\n{above}"
        text += "".join(CLASS.format(number=each) for each in range(6))
        (package / f"module{number}.py").write_text(text)
        lines += text.count("\n")
    for side in SIDES:
        plugin = "plugins = nnx_mypy\n" if side == "with" else ""
        (folder / f"{side}.ini").write_text(f"[mypy]\n{plugin}cache_dir = cache-{side}\n")
    return lines


class Project:
    """The project, and what is done to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkout"  # beside the byte code, which no project has among its files
        self.lines = write_project(self.folder)
        self._edits = 0
        self._environment = environment(folder)

    def edit(self) -> None:
        """Change the body of a function in one module."""
        self._edits += 1
        path = self.folder / "project" / f"module{MODULES // 2}.py"
        text = path.read_text()
        path.write_text(text.replace("    return value\n", f"    print({self._edits})\n    return value\n", 1))

    def run(self, side: str) -> float:
        """What one run of mypy takes."""
        return self._mypy("mypy", "--config-file", f"{side}.ini", "project")

    def cold(self, side: str) -> float:
        """A run without any cache."""
        for name in (f"cache-{side}", *[".nnx_lint_cache"] * (side == "with")):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        return self.run(side)

    def start(self, side: str) -> None:
        """Start a daemon, and let it check everything."""
        self._daemon(side, "start", "--", "--config-file", f"{side}.ini")
        self._daemon(side, "check", "project")

    def recheck(self, side: str) -> float:
        """What the daemon takes after an edit."""
        return self._daemon(side, "check", "project")

    def stop(self, side: str) -> None:
        """Stop the daemon."""
        self._daemon(side, "stop")

    def _daemon(self, side: str, *words: str) -> float:
        return self._mypy("mypy.dmypy", "--status-file", f"{side}.json", *words)

    def _mypy(self, module: str, *words: str) -> float:
        command = [sys.executable, "-m", module, *words]
        began = time.perf_counter()
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, env=self._environment)
        took = time.perf_counter() - began
        if done.returncode == 2 or "INTERNAL ERROR" in done.stdout + done.stderr:
            raise SystemExit(done.stdout + done.stderr)
        return took


def compare(turns: int, measure: Callable[[str], float], before: Callable[[], None] = lambda: None) -> str:
    """The medians of both sides, and of their ratios."""
    times: dict[str, list[float]] = {side: [] for side in SIDES}
    for turn in range(turns):
        before()
        for side in SIDES if turn % 2 else reversed(SIDES):
            times[side].append(measure(side))
    without, with_plugin = (statistics.median(times[side]) for side in SIDES)
    ratio = statistics.median(b / a for a, b in zip(times["without"], times["with"], strict=True))
    return f"{without:8.2f} s {with_plugin:8.2f} s {ratio:8.2f}×"


def main() -> int:
    parser = argparse.ArgumentParser(description="What the mypy plugin costs.")
    parser.add_argument("--cold", type=int, default=3, help="turns of cold runs")
    parser.add_argument("--turns", type=int, default=7, help="turns of the others")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder))
        print(f"{project.lines} lines, {os.cpu_count()} processors: without the plugin, with it, ratio")
        for side in SIDES:
            project.cold(side)
        print("cold  ", compare(options.cold, project.cold))
        print("warm  ", compare(options.turns, project.run, project.edit))
        for side in SIDES:
            project.start(side)
        try:
            print("daemon", compare(options.turns, project.recheck, project.edit))
        finally:
            for side in SIDES:
                project.stop(side)
    return 0


if __name__ == "__main__":
    sys.exit(main())
