"""How fast `nnx-lint` is on a large tree, against ruff, ty, mypy and pyright.

All of them read the same copy of the same files in the same run, in turns, each as a process of its own and with what
it does by default; ty and mypy find jax and flax, which are installed beside them. Times are of the clock, from start
to exit. The rows are the promises; the tools answer different questions, so the times say what a team waits
for.

    python benchmarks/linter.py            # a pinned package from PyPI with 338,000 lines
    python benchmarks/linter.py FOLDER     # any other tree
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from _installed import environment
from _turns import in_turns

from fetch import Package, fetch

TREE = Package("easydel", "0.3.0", "a91deae549b24a25d66c59dcd2f0d2b8a48e0d1e9b1e40fb111b624a9c3a8a6d")

ROUNDS = 3
SLOW_PEERS = 1
"""How often mypy and pyright run: they take minutes."""

MEDIUM = 60
"""How many files the cost of a single one is the median of."""

ENVIRONMENT: dict[str, str] = {}
"""Of all processes that are measured; it is known when there is a folder for their byte code."""
LINT = [sys.executable, "-P", "-m", "nnx_lint", "check", "--isolated", "--exit-zero", "--quiet"]


def seconds(command: list[str], folder: Path) -> float:
    """How long a command takes; its exit code says what it found, which is not the question."""
    begin = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    taken = time.perf_counter() - begin
    if done.returncode not in {0, 1, 2}:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr.decode()}")
    return taken


def tool(name: str) -> str:
    """The program that is installed beside this interpreter."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name) or name


class Tree:
    """A copy of the files, in which a file can be changed."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.folder = folder
        for path in sorted(source.rglob("*.py")):
            copy = folder / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        (folder / "pyproject.toml").write_text("", encoding="utf-8")  # the top of a repository, as one has it
        self.files = sorted(folder.rglob("*.py"))
        self.cache = folder.parent / f"{folder.name}.cache"
        self._changes = 0

    def cold(self) -> float:
        """Everything, without a cache."""
        return seconds([*LINT, "--no-cache", "."], self.folder)

    def warm(self) -> float:
        """Nothing changed."""
        return seconds([*LINT, "--cache-dir", str(self.cache), "."], self.folder)

    def changed(self, path: Path) -> float:
        """One file changed since the last run."""
        self._changes += 1
        text = path.read_text(encoding="utf-8")
        path.write_text(f"{text}\n_CHANGE = {self._changes}\n", encoding="utf-8")
        taken = self.warm()
        path.write_text(text, encoding="utf-8")
        self.warm()
        return taken

    def alone(self, path: Path) -> float:
        """One file, without a cache."""
        return seconds([*LINT, "--no-cache", str(path.relative_to(self.folder))], self.folder)


def nnx_files(files: Iterable[Path]) -> list[Path]:
    """The files that name NNX."""
    return [path for path in files if "nnx" in path.read_text(encoding="utf-8")]


def lines(files: Iterable[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in files)


def peak_memory(tree: Tree) -> float:
    """The most memory that all processes of a cold run have together, in MB."""
    process = subprocess.Popen(
        [*LINT, "--no-cache", "."],
        cwd=tree.folder,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    peak = 0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.02):
            peak = max(peak, sum(_proportional(pid) for pid in _family(process.pid)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    process.wait()
    done.set()
    watcher.join()
    if not peak:  # no /proc: the largest process is all that is known
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return peak / 1e6


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return [pid]
    return [pid, *(each for child in children for each in _family(int(child)))]


def _proportional(pid: int) -> int:
    """The memory of a process, what it shares with others divided among them."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


# What one file costs beside its parsing is asked in one process: a start takes longer than most files.
RATIOS = """
import ast, gc, statistics, sys, time
from nnx_lint.engine import Engine
from nnx_lint.selection import Options
from nnx_lint.sources import Sources
gc.disable()
paths = sys.stdin.read().splitlines()
sources = Sources(paths)
engine = Engine(sources, ["."], Options.everywhere(lambda rule: rule.default))
ratios = []
for path in paths:
    if "nnx" not in sources[path].text:
        continue
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        ast.parse(sources[path].text)
        best = min(best, time.process_time() - begin)
    begin = time.process_time()
    engine.check(path)
    ratios.append((time.process_time() - begin) / best)
print(statistics.median(ratios))
"""


def ratio_to_parsing(tree: Tree) -> float:
    """The median over NNX files of what their analysis costs, parsing included, in units of their parsing."""
    paths = "\n".join(str(path.relative_to(tree.folder)) for path in tree.files)
    done = subprocess.run(
        [sys.executable, "-P", "-c", RATIOS],
        cwd=tree.folder,
        env=ENVIRONMENT,
        input=paths,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def growth(tree: Tree, scratch: Path) -> tuple[float, int, int]:
    """How much more a line costs in many copies of a small tree than in one, with the lines of both.

    The copies are packages of their own, so that each line is as hard as it was.
    """
    small = scratch / "small"
    chosen: list[Path] = []
    for path in nnx_files(tree.files):
        if lines(chosen) >= 10_000:
            break
        chosen.append(path)
    for size, copies in (("small", 1), ("large", 20)):
        for number in range(copies):
            for path in chosen:
                copy = scratch / size / f"copy{number}" / path.relative_to(tree.folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
    one, many = small, scratch / "large"
    command = [*LINT, "--no-cache", "--jobs", "1", "."]
    empty = scratch / "empty"
    empty.mkdir()
    (empty / "nothing.py").write_text("from flax import nnx\n", encoding="utf-8")
    taken = in_turns(
        {
            name: lambda folder=folder: seconds(command, folder)
            for name, folder in (("start", empty), ("one", one), ("many", many))
        },
        ROUNDS,
    )
    few, much = lines(one.rglob("*.py")), lines(many.rglob("*.py"))
    per_line = (taken["one"] - taken["start"]) / few, (taken["many"] - taken["start"]) / much
    return per_line[1] / per_line[0], few, much


def main() -> None:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else fetch(TREE)
    with tempfile.TemporaryDirectory() as scratch:
        ENVIRONMENT.update(environment(scratch))
        tree = Tree(source, Path(scratch, "tree"))
        marked = nnx_files(tree.files)
        print(
            f"{len(tree.files)} files, {lines(tree.files):,} lines, {lines(marked):,} of them in files that name NNX;"
        )
        print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}\n", flush=True)
        tree.warm()
        peers = {
            "ruff": [tool("ruff"), "check", "--isolated", "--no-cache", "--exit-zero", "--quiet", "."],
            "ty": [tool("ty"), "check", "--exit-zero", "--quiet", "."],
        }
        slow = {
            "mypy": [tool("mypy"), "--ignore-missing-imports", "--cache-dir", os.devnull, "."],
            "pyright": [tool("pyright"), "."],
        }
        for command in peers.values():
            seconds(command, tree.folder)  # what comes from the disk comes from memory afterwards
        times = in_turns(
            {
                "cold": tree.cold,
                "warm": tree.warm,
                **{name: lambda command=command: seconds(command, tree.folder) for name, command in peers.items()},
            },
            ROUNDS,
        )
        times |= in_turns(
            {name: lambda command=command: seconds(command, tree.folder) for name, command in slow.items()}, SLOW_PEERS
        )
        print("| tool | seconds |\n|---|---:|")
        for name in ("cold", "warm", "ruff", "ty", "mypy", "pyright"):
            label = {"cold": "nnx-lint, no cache", "warm": "nnx-lint, nothing changed"}.get(name, name)
            print(f"| {label} | {times[name]:.2f} |", flush=True)
        some = marked[:: max(1, len(marked) // MEDIUM)]
        own = {path: tree.alone(path) for path in some}
        extra = statistics.median((tree.changed(path) - times["warm"]) / own[path] for path in some)
        slower = min(times["mypy"], times["pyright"]) / times["cold"]
        times_as_long, few, much = growth(tree, Path(scratch))
        rows = [
            ("cold, `--no-cache` ÷ ty", f"{times['cold'] / times['ty']:.2f}", "≤ 1"),
            ("mypy, pyright ÷ cold (the faster one)", f"{slower:.1f}", "≥ 10"),
            ("warm ÷ ruff's cold time", f"{times['warm'] / times['ruff']:.2f}", "≤ 1.5"),
            (f"one file changed, more than warm ÷ that file alone (median of {len(some)})", f"{extra:.2f}", "≤ 2"),
            ("analysis of one file ÷ `ast.parse` (median of NNX files)", f"{ratio_to_parsing(tree):.1f}", "≤ 6"),
            (f"cost of a line, {much:,} ÷ {few:,} lines", f"{times_as_long:.2f}", "≤ 1.15"),
            ("peak memory of all processes, MB", f"{peak_memory(tree):.0f}", "≤ 400"),
        ]
        print("\n| measure | value | promise |\n|---|---:|---:|")
        for row in rows:
            print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
