"""`make foreign`: the tests of packages that nobody here wrote, with `import nnxkit as nnx` for `from flax import nnx`.

Each suite comes from a pinned source distribution. Its tree is copied twice; in one copy every import of `flax.nnx`
and every `flax.nnx.` in expressions and doctests becomes one of nnxkit. The tests run in both copies, in an environment
of their own, and are compared one by one. Suites that need a newer Python than this one are left out where none is
found.

Fails if a test passes on flax and not on nnxkit, unless `tests/foreign/differences.toml` has one pattern for it, with
the entry of `docs/differences.md` that says why; and if a pattern there is for no such test, so that the list stays
true. The figures go into the table in `docs/foreign.md`.
"""

import argparse
import ast
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fetch import CACHE, Package, fetch

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "foreign" / "differences.toml"
TABLE = ROOT / "docs" / "foreign.md"
COMPILED = {
    "JAX_COMPILATION_CACHE_DIR": str(CACHE.parent / "foreign-compiled"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
"""What is compiled for one library is there for the other, and for the next run: most of the time would go there."""
REPORTS = CACHE.parent / "foreign-reports"
"""Where the outcome of each test of the last run lies, with what a failure said."""
COMMON = ("optax", "pytest>=8", "absl-py", "cloudpickle")
"""What all suites need."""


@dataclass(frozen=True)
class Environment:
    """Where tests run.

    Attributes:
        folder: where the environment is made.
        libraries: the versions of flax and jax.
        pythons: names of interpreters that it can be made with; this one if there are none.
    """

    folder: Path
    libraries: tuple[str, ...]
    pythons: tuple[str, ...] = ()

    def interpreter(self) -> str | None:
        """The interpreter to make it with; `None` if there is none."""
        if not self.pythons:
            return sys.executable
        managed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
        # A name that is found may lead to nothing: version managers put one there for all that they know.
        found = (
            *(name for name in self.pythons if shutil.which(name)),
            *(str(path) for name in self.pythons for path in sorted(managed.glob(f"*/bin/{name}"))),
        )
        return next(
            (name for name in found if not subprocess.run([name, "-c", ""], capture_output=True).returncode), None
        )


COMPARED = Environment(CACHE.parent / "foreign", ("flax==0.12.8", "jax==0.10.2"))
"""The versions that nnxkit is compared with."""
NEWEST = Environment(
    CACHE.parent / "foreign-newest", ("flax==0.12.12", "jax>=0.12,<0.13"), ("python3.14", "python3.13", "python3.12")
)


@dataclass(frozen=True)
class Suite:
    """The tests of one package.

    Attributes:
        package: the source distribution.
        tests: files and folders of tests, from its root.
        path: folders that are put on the module path.
        requirements: what they need further.
        environment: where they run.
    """

    package: Package
    tests: tuple[str, ...]
    path: tuple[str, ...] = (".",)
    requirements: tuple[str, ...] = ()
    environment: Environment = COMPARED

    @property
    def name(self) -> str:
        """What it is called: the package and its version."""
        return f"{self.package.name}-{self.package.version}"


SUITES = (
    Suite(
        Package("flax", "0.12.8", "1bb438775b967a3f1f42b9c3d4ddf1d2883cd6406589f9cecdc244634036bdc4", is_source=True),
        tests=("tests/nnx",),
        path=(),  # the installed flax, not this copy of it
        requirements=("treescope",),
    ),
    Suite(
        Package("flax", "0.12.12", "103cc503c94219513b73027aa0e93aac408adfd3fcdfb1df85e9d147219e4896", is_source=True),
        tests=("tests/nnx",),
        path=(),
        requirements=("treescope",),
        environment=NEWEST,
    ),
    Suite(
        Package("bijx", "1.3.2", "a8ad4a6183d8fc717774dad14149852331e7d2bd2c1ec5420b6af8e5437e700e", is_source=True),
        tests=("tests",),
        path=("src",),
        requirements=("chex", "diffrax", "einops", "jax-autovmap", "flowjax", "hypothesis[numpy]"),
    ),
    Suite(
        Package("nnx-ppo", "0.3.0", "86eb4f65255ad09480d25a5c63a3b6c037aa875b62306d409d7923f3ff17ce1e", is_source=True),
        tests=("nnx_ppo",),
        requirements=("orbax-checkpoint", "jaxtyping", "beartype"),
    ),
    Suite(
        Package(
            "mamba2-jax", "1.1.2", "8113ad7236128b52806a8055afe6d5cbf1d17288e4e980ba3529942b26cd7daf", is_source=True
        ),
        tests=("tests",),
    ),
    Suite(
        Package("attnax", "0.2.0", "f25a45d975425b14eb8be20c3376000508cd7f342e7044b15ddae1417ebad2a1", is_source=True),
        tests=("tests",),
    ),
    Suite(
        Package(
            "blaxbird", "0.2.0", "cad27f230a9ae399590dab9b1768c51eab3c41941b2d0d11941e780e019828b6", is_source=True
        ),
        tests=("blaxbird",),
        requirements=("orbax-checkpoint", "chex", "grain", "einops"),
    ),
    Suite(
        Package(
            "dantinox", "0.4.14", "2a5bed8eab485994838cf02456bef380f606a712fad57fb0327a730a1f16439c", is_source=True
        ),
        # The others need files that the distribution lacks.
        tests=tuple(
            f"tests/test_{name}.py"
            for name in ("core_invariants", "differential_attention", "improvements", "lora", "mla")
        ),
        requirements=("pyyaml", "tokenizers", "msgpack", "tqdm"),
    ),
    Suite(
        Package("cax", "0.4.4", "0eca5a0aada02a1aadbb4f0a4a2ac431fb9804c06c07cff98cbb9714738b618e", is_source=True),
        tests=("tests/test_core", "tests/test_cs", "tests/test_nn", "tests/test_utils"),
        path=("src",),
        requirements=("pillow",),
        environment=NEWEST,
    ),
    Suite(
        Package("gpjax", "0.13.6", "4c25ad05cebc2dfa403c88393074726f21a745602a796effeddffc8628e60536", is_source=True),
        tests=("tests",),
        requirements=("numpyro", "jaxtyping", "beartype", "hypothesis", "mktestdocs", "networkx"),
    ),
)


# -- rewriting imports -------------------------------------------------------------------------------------------------

_DOCTEST = re.compile(r"^(\s*(?:>>>|\.\.\.)\s+)from flax import nnx\s*$", re.MULTILINE)


def rewritten(source: str) -> str:
    """A module with nnxkit in the place of `flax.nnx`; its lines keep their numbers.

    >>> rewritten("from flax import errors, nnx")
    'from flax import errors; import nnxkit as nnx'
    >>> rewritten("import flax; x = flax.nnx.Param(1)")
    'import flax, nnxkit; x = nnxkit.Param(1)'
    """
    lines = [line.encode() for line in _DOCTEST.sub(r"\1import nnxkit as nnx", source).split("\n")]
    tree = ast.parse("\n".join(line.decode() for line in lines))
    uses_attribute = any(map(_is_flax_nnx, ast.walk(tree)))
    # From the end, so that positions in front stay right.
    for node, text in sorted(_edits(tree, uses_attribute), key=lambda edit: _start(edit[0]), reverse=True):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        behind = lines[last][node.end_col_offset :]
        lines[first] = lines[first][: node.col_offset] + text.encode()
        if first == last:
            lines[first] += behind
        else:
            lines[first + 1 : last + 1] = [b""] * (last - first)
            lines[last] = behind
    return "\n".join(line.decode() for line in lines)


def _edits(tree: ast.AST, uses_attribute: bool) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "flax":
            chosen = [alias for alias in node.names if alias.name == "nnx"]
            others = [alias for alias in node.names if alias.name != "nnx"]
            if chosen:
                texts = [ast.unparse(ast.ImportFrom("flax", others, 0))] * bool(others)
                yield node, "; ".join([*texts, *(f"import nnxkit as {alias.asname or 'nnx'}" for alias in chosen)])
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and _is_below(node.module or ""):
            yield node, ast.unparse(ast.ImportFrom(_renamed(node.module or ""), node.names, 0))
        elif isinstance(node, ast.Import):
            names = [ast.alias(_renamed(alias.name), alias.asname) for alias in node.names]
            if uses_attribute and any(alias.name == "flax" and alias.asname is None for alias in node.names):
                names.append(ast.alias("nnxkit"))
            if [alias.name for alias in names] != [alias.name for alias in node.names]:
                yield node, ast.unparse(ast.Import(names))
        elif _is_flax_nnx(node):
            assert isinstance(node, ast.expr)
            yield node, "nnxkit"


def _start(node: ast.stmt | ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _is_below(module: str) -> bool:
    return module == "flax.nnx" or module.startswith("flax.nnx.")


def _renamed(module: str) -> str:
    return "nnxkit" + module.removeprefix("flax.nnx") if _is_below(module) else module


def _is_flax_nnx(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "nnx"
        and isinstance(node.value, ast.Name)
        and node.value.id == "flax"
    )


def rewrite_tree(folder: Path) -> None:
    """Rewrite all modules below a folder; what is no Python is left alone.

    To be run by the interpreter of the tests: it decides what is Python.
    """
    for path in folder.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if "nnx" in source:
            try:
                changed = rewritten(source)
            except SyntaxError:
                continue
            path.write_text(changed, encoding="utf-8")


# -- running -----------------------------------------------------------------------------------------------------------


def prepare(environment: Environment, suites: list[Suite], interpreter: str) -> Path:
    """Make an environment with what the suites need; returns its interpreter."""
    own = environment.folder / "bin" / "python"
    if not own.exists():
        subprocess.run([interpreter, "-m", "venv", environment.folder], check=True)
    wanted = sorted({*COMMON, *environment.libraries, *(line for suite in suites for line in suite.requirements)})
    subprocess.run([own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted], check=True)
    return own


def give_metadata(suite: Suite, tree: Path) -> None:
    """Let the package be found among the installed ones: some ask for their own version when they are imported."""
    for folder in suite.path[:1]:
        distribution = tree / folder / f"{suite.package.name.replace('-', '_')}-{suite.package.version}.dist-info"
        distribution.mkdir(exist_ok=True)
        shutil.copy(tree / "PKG-INFO", distribution / "METADATA")


def run(suite: Suite, tree: Path, python: Path, select: str | None) -> dict[str, str]:
    """Run the tests in a copy of a package: the outcome of each, by its name."""
    report = REPORTS / f"{suite.name}-{tree.name}.xml"
    path = os.pathsep.join([*(str(tree / folder) for folder in suite.path), str(ROOT / "runtime")])
    subprocess.run(
        [
            *(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore"),
            "--continue-on-collection-errors",
            *("--rootdir", str(tree), "--junitxml", str(report), "-o", "addopts="),
            *(("-k", select) if select else ()),
            *suite.tests,
        ],
        cwd=tree,
        env={**os.environ, **COMPILED, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    return dict(_outcomes(report))


def _outcomes(report: Path) -> Iterator[tuple[str, str]]:
    for case in ET.parse(report).iter("testcase"):
        name = "::".join(filter(None, (case.get("classname"), case.get("name"))))
        kinds = {child.tag for child in case}
        yield name, next((kind for kind in ("error", "failure", "skipped") if kind in kinds), "passed")


def differences(suite: Suite, python: Path, select: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """The outcomes of one suite on flax and on nnxkit."""
    source = fetch(suite.package)
    outcomes: list[dict[str, str]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("flax", "nnxkit"):
            tree = Path(scratch, name)
            shutil.copytree(source, tree)
            give_metadata(suite, tree)
            if name == "nnxkit":
                rewriting = "import sys, pathlib, foreign_tests; foreign_tests.rewrite_tree(pathlib.Path(sys.argv[1]))"
                subprocess.run([python, "-c", rewriting, tree], cwd=ROOT / "scripts", check=True)
            outcomes.append(run(suite, tree, python, select))
    return outcomes[0], outcomes[1]


# -- the report --------------------------------------------------------------------------------------------------------


def problems(
    name: str, flax: Mapping[str, str], ours: Mapping[str, str], known: Mapping[str, str], used: set[str]
) -> Iterator[str]:
    """What the record does not account for.

    Args:
        name: name of the suite.
        flax: outcomes on flax.
        ours: outcomes on nnxkit.
        known: the entry of the documentation for each pattern of names.
        used: gets the patterns that account for something.
    """
    for test in different(flax, ours):
        found = [pattern for pattern in known if fnmatch.fnmatchcase(test, pattern)]
        used.update(found)
        if not found:
            yield f"{name}: {test} passes on flax, and on nnxkit: {ours.get(test, 'missing')}"
        elif len(found) > 1:
            yield f"{name}: {test} is matched by several patterns: {', '.join(found)}"


def different(flax: Mapping[str, str], ours: Mapping[str, str]) -> list[str]:
    """The tests that pass on flax and not on nnxkit."""
    return sorted(test for test, outcome in flax.items() if outcome == "passed" != ours.get(test))


def with_row(document: str, name: str, passed: int, differ: int) -> str:
    """The table of results with the row of one suite."""
    row = f"| {name} | {passed} | {passed - differ} | {differ} |"
    lines = document.split("\n")
    rows = [place for place, line in enumerate(lines) if line.startswith("| ")]
    place = next((place for place in rows if lines[place].startswith(f"| {name} |")), None)
    if place is None:
        lines.insert(rows[-1] + 1, row)
    else:
        lines[place] = row
    return "\n".join(lines)


def main() -> int:
    """Run the suites; 1 if something differs that is not listed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="names of packages; all by default")
    parser.add_argument("-k", dest="select", metavar="EXPRESSION", help="which tests, as for pytest")
    options = parser.parse_args()
    names = {suite.package.name for suite in SUITES} | {suite.name for suite in SUITES}
    if unknown := set(options.suites) - names:
        parser.error(f"unknown suite {', '.join(sorted(unknown))}; there are {', '.join(sorted(names))}")
    chosen = [suite for suite in SUITES if not options.suites or {suite.name, suite.package.name} & set(options.suites)]
    record = tomllib.loads(RECORD.read_text(encoding="utf-8"))
    found: list[str] = []
    used: set[str] = set()
    ran: list[Suite] = []
    for environment in dict.fromkeys(suite.environment for suite in chosen):
        suites = [suite for suite in chosen if suite.environment == environment]
        interpreter = environment.interpreter()
        if interpreter is None:
            print(f"left out for want of {' or '.join(environment.pythons)}: {', '.join(s.name for s in suites)}")
            continue
        python = prepare(environment, suites, interpreter)
        for suite in suites:
            flax, ours = differences(suite, python, options.select)
            passed, differ = Counter(flax.values())["passed"], len(different(flax, ours))
            print(f"{suite.name}: {passed} pass on flax, {passed - differ} of them on nnxkit", flush=True)
            found += problems(suite.name, flax, ours, record.get(suite.package.name, {}), used)
            ran.append(suite)
            if options.select is None:
                TABLE.write_text(with_row(TABLE.read_text(encoding="utf-8"), suite.name, passed, differ), "utf-8")
    if ran == list(SUITES) and options.select is None:
        for package, patterns in record.items():
            found += [f"{package}: {pattern} matches no difference" for pattern in patterns if pattern not in used]
    print("\n".join(found))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
