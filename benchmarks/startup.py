"""How long `nnx-lint` takes to start, against an interpreter that does nothing.

A linter runs at every save and every commit, so its start is what people feel. Medians over fresh processes, taken in
turns so that a busy machine slows all of them alike. The targets are differences to the bare interpreter: 40 ms for
`--version`, 100 ms for one small file.
"""

import functools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _installed import environment
from _turns import in_turns

ROUNDS = 31

SMALL_FILE = """\
from flax import nnx
import jax


class Net(nnx.Module):
    def __init__(self, width: int, *, rngs: nnx.Rngs):
        self.layers = [nnx.Linear(width, width, rngs=rngs) for _ in range(3)]
        self.head = nnx.Linear(width, 10, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        for layer in self.layers:
            x = nnx.relu(layer(x))
        return self.head(x)


@nnx.jit
def loss(model: Net, x: jax.Array, y: jax.Array) -> jax.Array:
    return ((model(x) - y) ** 2).mean()
"""


def milliseconds(command: list[str], installed: dict[str, str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, env=installed, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return (time.perf_counter() - begin) * 1000


def main() -> None:
    lint = [sys.executable, "-m", "nnx_lint"]
    with tempfile.TemporaryDirectory() as folder:
        installed = environment(folder)
        path = Path(folder, "net.py")
        path.write_text(SMALL_FILE, encoding="utf-8")
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "nnx-lint --version": [*lint, "--version"],
            "nnx-lint net.py": [*lint, os.fspath(path)],
        }
        measures = {name: functools.partial(milliseconds, command, installed) for name, command in commands.items()}
        medians = in_turns(measures, ROUNDS, unmeasured=1)
    bare = medians["python -c pass"]
    targets = {"nnx-lint --version": 40, "nnx-lint net.py": 100}
    print(f"Median of {ROUNDS} runs, Python {sys.version.split()[0]}\n")
    print("| command | ms | more than bare | target |")
    print("|---|---:|---:|---:|")
    for name, median in medians.items():
        target = f"≤ {targets[name]}" if name in targets else ""
        more = f"{median - bare:.1f}" if name in targets else ""
        print(f"| `{name}` | {median:.1f} | {more} | {target} |")


if __name__ == "__main__":
    main()
