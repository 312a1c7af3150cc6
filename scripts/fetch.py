"""Pinned real packages, as source trees to read.

A package is downloaded by pip, without its dependencies, verified by pip against the recorded sha256, and unpacked into
`.cache/packages/`. It is a wheel, of which nothing is installed, imported or run, or a source distribution, which also
has the tests of the package (pip asks its build backend for its metadata). A tree that is there already is used as it
is: the folder appears under its final name only once it is complete.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "packages"


@dataclass(frozen=True)
class Package:
    """One wheel or source distribution on PyPI, by content."""

    name: str
    version: str
    sha256: str
    is_source: bool = False

    @property
    def requirement(self) -> str:
        """The line of a requirements file that admits this file only."""
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"


def fetch(package: Package, cache: Path = CACHE) -> Path:
    """Return the folder of the unpacked package, downloading it on the first call.

    Raises:
        subprocess.CalledProcessError: pip found no such file, or one with another content.
    """
    folder = cache / f"{package.name}-{package.version}{'-source' * package.is_source}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        requirements = Path(scratch, "requirements.txt")
        requirements.write_text(package.requirement + "\n", encoding="utf-8")
        # A wheel is only read, so what it demands of the interpreter does not matter.
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
                *("--no-deps", "--no-binary" if package.is_source else "--only-binary", ":all:"),
                *("--ignore-requires-python", "--require-hashes"),
                *("--dest", scratch, "--requirement", str(requirements)),
            ],
            check=True,
        )
        tree = Path(scratch, "tree")
        if package.is_source:
            (found,) = Path(scratch).glob("*.tar.gz")
            with tarfile.open(found) as source:
                source.extractall(tree, filter="data")
            (tree,) = tree.iterdir()
        else:
            (found,) = Path(scratch).glob("*.whl")
            with zipfile.ZipFile(found) as wheel:
                wheel.extractall(tree)
        shutil.move(tree, folder)
    return folder
