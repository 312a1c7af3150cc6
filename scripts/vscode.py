"""Builds the VS Code extension, and fetches what that and its tests need.

``python scripts/vscode.py STEP ...``, where a step is one of

* ``packages``: install what ``vscode-extension/package-lock.json`` names, from the npm registry;
* ``editor``: fetch a built VS Code of the same registry, as ``.cache/vscode-VERSION``: the npm package ``code-server``
  holds one, with a server and a web page for a front end, and nothing of it is compiled or run here;
* ``check``: type-check the TypeScript;
* ``package``: build ``build/vscode/nnx.vsix``, and the folder that it was made of beside it;
* ``pictures``: put the pictures that the tests took of VS Code last into the extension's own page.

Only the first two need a network; each does nothing where its work is done. ``package`` puts into the extension all
that the server needs - the static side of nnxkit, the rule pages, pygls and what that depends on, as they are in the
running environment - so that the extension works where nothing is installed. All of it is pure Python, and that is
checked.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from nnx_rules._version import __version__

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "vscode-extension"
OUTPUT = ROOT / "build" / "vscode"
EXTENSION = OUTPUT / "extension"
VSIX = OUTPUT / "nnx.vsix"
PICTURES = ROOT / "build" / "pictures"

PACKAGES = SOURCE / "node_modules"
INSTALLED = PACKAGES / ".installed"

EDITOR_VERSION = os.environ.get("NNX_VSCODE", "4.100.3")
"""Of the npm package: the newest that runs on Node 20, or what the environment names (4.139.1 wants Node 24).
It holds VS Code 1.100.3.
"""
EDITOR = ROOT / ".cache" / f"vscode-{EDITOR_VERSION}"

SHIPPED = ("README.md", "media", "images")
"""What the extension holds as it lies in the repository."""

PYTHON = {
    "runtime/nnx_rules": "nnx_rules",
    "tests/rules": "nnx_rules/pages",
    "analyzer/nnx_lint": "nnx_lint",
    "lsp/nnx_lsp": "nnx_lsp",
}
"""The parts of nnxkit that the server consists of, and where they lie once installed."""

LAUNCHER = '''\
"""Starts the server that lies beside this file, with nothing from elsewhere: VS Code runs this by `python -I`."""

import os.path
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "libs"))

from nnx_lsp.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
'''


class Missing(Exception):
    """A step needs something that another step, or the reader, has to bring."""


def packages() -> None:
    """Install the packages of the lock file."""
    lock = SOURCE / "package-lock.json"
    if not INSTALLED.is_file() or INSTALLED.stat().st_mtime < lock.stat().st_mtime:
        _run("npm", "ci", "--no-progress", "--loglevel=error", folder=SOURCE)
        INSTALLED.touch()


def editor() -> None:
    """Fetch VS Code; the folder appears under its name once it is complete."""
    if EDITOR.is_dir():
        return
    EDITOR.parent.mkdir(exist_ok=True)
    quiet = ("--no-audit", "--no-fund", "--loglevel=error", "--ignore-scripts")
    with tempfile.TemporaryDirectory(dir=EDITOR.parent) as scratch:
        _run("npm", "pack", f"code-server@{EDITOR_VERSION}", "--silent", folder=Path(scratch))
        (archive,) = Path(scratch).glob("*.tgz")
        with tarfile.open(archive) as packed:
            packed.extractall(scratch, filter="data")
        unpacked = Path(scratch, "package", "lib", "vscode")
        _run("npm", "install", "--omit=dev", *quiet, folder=unpacked)
        for mapping in unpacked.rglob("*.map"):
            mapping.unlink()
        _link_ripgrep(unpacked)
        unpacked.rename(EDITOR)


def _link_ripgrep(folder: Path) -> None:
    """VS Code looks for files with ripgrep, whose package fetches it in a script that is not run."""
    found = shutil.which("rg")
    if found is not None:
        place = folder / "node_modules" / "@vscode" / "ripgrep" / "bin"
        place.mkdir(parents=True, exist_ok=True)
        (place / "rg").symlink_to(found)


def check() -> None:
    """Type-check the extension and the page of its view."""
    _need_packages()
    for project in (SOURCE, SOURCE / "src" / "webview"):
        _run(_tool("tsc"), "--project", str(project), folder=SOURCE)


def package() -> None:
    """Build the extension."""
    _need_packages()
    if VSIX.is_file() and VSIX.stat().st_mtime > max(path.stat().st_mtime for path in _sources()):
        return
    VSIX.unlink(missing_ok=True)
    shutil.rmtree(EXTENSION, ignore_errors=True)
    EXTENSION.mkdir(parents=True)
    _write_manifest()
    for name in SHIPPED:
        source = SOURCE / name
        if source.is_dir():
            shutil.copytree(source, EXTENSION / name)
        else:
            shutil.copy(source, EXTENSION / name)
    shutil.copy(ROOT / "LICENSE", EXTENSION / "LICENSE")
    bundle = ("--bundle", "--minify", "--target=es2022", "--log-level=warning")
    in_node = ("--platform=node", "--format=cjs", "--external:vscode")
    for entry, name, options in (("extension.ts", "extension", in_node), ("webview/structure.ts", "structure", ())):
        _run(
            _tool("esbuild"), f"src/{entry}", f"--outfile={EXTENSION}/dist/{name}.js", *bundle, *options, folder=SOURCE
        )
    _bundle_python(EXTENSION / "bundled")
    options = ("--no-dependencies", "--allow-missing-repository", "--no-rewrite-relative-links")
    _run(_tool("vsce"), "package", *options, "--out", str(VSIX), folder=EXTENSION)


def _sources() -> Iterator[Path]:
    """What the extension is made of."""
    yield Path(__file__)
    yield from (path for path in SOURCE.iterdir() if path.is_file())
    for folder in (SOURCE / "src", SOURCE / "media", SOURCE / "images", *(ROOT / name for name in PYTHON)):
        yield from (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")


def pictures() -> None:
    """Copy the pictures that the extension's page shows."""
    for picture in (SOURCE / "images").glob("*.png"):
        shutil.copy(PICTURES / picture.name, picture)


def _write_manifest() -> None:
    """The manifest, with the version of nnxkit and without what only building needs."""
    manifest = json.loads((SOURCE / "package.json").read_text(encoding="utf-8"))
    del manifest["devDependencies"], manifest["private"]
    manifest["version"] = Version(__version__).base_version
    (EXTENSION / "package.json").write_text(json.dumps(manifest, indent=2), encoding="utf-8")


def _bundle_python(folder: Path) -> None:
    libraries = folder / "libs"
    libraries.mkdir(parents=True)
    (folder / "serve.py").write_text(LAUNCHER, encoding="utf-8")
    for source, name in PYTHON.items():
        shutil.copytree(ROOT / source, libraries / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in sorted(_closure("pygls")):
        _copy_distribution(distribution(name), libraries)


def _closure(name: str) -> set[str]:
    """A distribution and all that it depends on in any Python that nnxkit supports; no extras."""
    names, waiting = set[str](), [name]
    while waiting:
        current = waiting.pop().lower().replace("_", "-")
        if current not in names:
            names.add(current)
            needed = map(Requirement, distribution(current).requires or [])
            waiting += [item.name for item in needed if item.marker is None or item.marker.evaluate({"extra": ""})]
    return names


def _copy_distribution(found: Distribution, folder: Path) -> None:
    """The modules, the metadata and the licences of an installed distribution."""
    for file in found.files or []:
        if ".." in file.parts or file.suffix == ".pyc":
            continue  # a script, or what an interpreter has made
        if file.suffix in {".so", ".pyd"}:
            raise Missing(f"{found.name} is not pure Python: {file}")
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(str(file.locate()), target)


def _need_packages() -> None:
    if not INSTALLED.is_file():
        raise Missing("the packages of Node are not installed: python scripts/vscode.py packages")


def _tool(name: str) -> str:
    return str(PACKAGES / ".bin" / name)


def _run(program: str, *arguments: str, folder: Path) -> None:
    if shutil.which(program) is None:
        raise Missing(f"{program} was not found: install Node 20 or later, which brings npm")
    done = subprocess.run([program, *arguments], cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.stderr.write(done.stdout + done.stderr)
        done.check_returncode()


STEPS = {step.__name__: step for step in (packages, editor, check, package, pictures)}


def main(names: list[str]) -> int:
    """Run some steps in the order given."""
    wrong = [name for name in names if name not in STEPS]
    if wrong or not names:
        print(f"usage: python scripts/vscode.py STEP ..., with steps of: {', '.join(STEPS)}", file=sys.stderr)
        return 2
    try:
        for name in names:
            STEPS[name]()
    except Missing as error:
        print(f"vscode.py: {error}", file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        print(f"vscode.py: {Path(error.cmd[0]).name} ended with {error.returncode}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
