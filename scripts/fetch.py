"""Pinned real packages, as source trees to read.

A package is downloaded as a wheel by pip, without its dependencies, verified by pip against the recorded sha256, and
unpacked into `.cache/packages/NAME-VERSION/`. Nothing of it is installed, imported or run. A tree that is there
already is used as it is: the folder appears under its final name only once it is complete.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "packages"


@dataclass(frozen=True)
class Package:
    """One wheel on PyPI, by content."""

    name: str
    version: str
    sha256: str

    @property
    def requirement(self) -> str:
        """The line of a requirements file that admits this wheel only."""
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"


def fetch(package: Package, cache: Path = CACHE) -> Path:
    """Return the folder of the unpacked package, downloading it on the first call.

    Raises:
        subprocess.CalledProcessError: pip found no such wheel, or one with another content.
    """
    folder = cache / f"{package.name}-{package.version}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        requirements = Path(scratch, "requirements.txt")
        requirements.write_text(package.requirement + "\n", encoding="utf-8")
        # The wheel is only read, so what it demands of the interpreter does not matter.
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
                *("--no-deps", "--only-binary", ":all:", "--ignore-requires-python", "--require-hashes"),
                *("--dest", scratch, "--requirement", str(requirements)),
            ],
            check=True,
        )
        (wheel,) = Path(scratch).glob("*.whl")
        tree = Path(scratch, "tree")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tree)
        shutil.move(tree, folder)
    return folder
