"""What is built is what is promised: the packages, the rule pages, their types, and no demand on a base install."""

import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from repository import ROOT, repository_files

PACKAGES = {
    "nnx_rules": "runtime",
    "nnxkit": "runtime",
    "nnx_lint": "analyzer",
    "nnx_lsp": "lsp",
    "nnx_mypy": "mypy_plugin",
}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a freshly built wheel and sdist. Hatchling is installed, so building needs no network."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", folder], cwd=ROOT, check=True, capture_output=True
    )
    return folder


@pytest.fixture
def wheel(dist: Path) -> zipfile.Path:
    (path,) = dist.glob("*.whl")
    return zipfile.Path(path)


@pytest.fixture
def sdist_names(dist: Path) -> list[str]:
    """The files of the sdist, relative to its one top-level folder."""
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return [name.partition("/")[2] for name in archive.getnames()]


def metadata(wheel: zipfile.Path) -> Message:
    (info,) = (entry for entry in wheel.iterdir() if entry.name.endswith(".dist-info"))
    return message_from_string((info / "METADATA").read_text(encoding="utf-8"))


def names(wheel: zipfile.Path) -> set[str]:
    return set(wheel.root.namelist())


def sources(package: str) -> set[str]:
    """The files of a package in the repository, as the wheel names them."""
    root = ROOT / PACKAGES[package]
    return {path.relative_to(root).as_posix() for path in repository_files() if path.is_relative_to(root / package)}


def test_wheel_holds_the_packages_and_nothing_else(wheel: zipfile.Path) -> None:
    assert {entry.name for entry in wheel.iterdir() if not entry.name.endswith(".dist-info")} == set(PACKAGES)


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_wheel_holds_every_file_of_a_package_and_its_type_marker(package: str, wheel: zipfile.Path) -> None:
    assert f"{package}/py.typed" in names(wheel)
    assert sources(package) <= names(wheel)


def test_wheel_holds_the_page_of_every_rule(wheel: zipfile.Path) -> None:
    pages = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "rules").glob("*.md")}
    assert pages, "no rule pages to ship"

    shipped = {entry.name: entry.read_text(encoding="utf-8") for entry in (wheel / "nnx_rules" / "pages").iterdir()}

    assert shipped == pages


def test_sources_hold_what_the_wheel_is_built_from_and_no_tests(sdist_names: list[str]) -> None:
    python_tests = [name for name in sdist_names if name.startswith("tests/") and name.endswith(".py")]

    assert python_tests == []
    assert {f"{PACKAGES[package]}/{name}" for package in PACKAGES for name in sources(package)} <= set(sdist_names)
    assert {"pyproject.toml", "README.md", "LICENSE"} <= set(sdist_names)
    assert any(name.startswith("tests/rules/") for name in sdist_names)


def test_wheel_can_be_built_from_the_sdist(dist: Path, wheel: zipfile.Path, tmp_path: Path) -> None:
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()

    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=unpacked, check=True)

    (rebuilt,) = (unpacked / "dist").glob("*.whl")
    assert names(zipfile.Path(rebuilt)) == names(wheel)


def test_base_install_demands_nothing(wheel: zipfile.Path) -> None:
    requirements = metadata(wheel).get_all("Requires-Dist", [])

    assert requirements, "the extras are missing"
    assert [line for line in requirements if "extra ==" not in line] == []


def test_extras_that_users_are_told_of_exist(wheel: zipfile.Path) -> None:
    extras = set(metadata(wheel).get_all("Provides-Extra", []))

    assert extras == {"runtime", "checkpoint", "lsp", "mypy", "all", "bench", "dev"}


def test_wheel_gives_the_commands(wheel: zipfile.Path) -> None:
    (info,) = (entry for entry in wheel.iterdir() if entry.name.endswith(".dist-info"))

    lines = (info / "entry_points.txt").read_text(encoding="utf-8").splitlines()
    assert {"nnx-lint = nnx_lint.__main__:main", "nnx-lsp = nnx_lsp.__main__:main"} <= set(lines)


def test_licence_is_the_apache_licence(wheel: zipfile.Path) -> None:
    assert metadata(wheel)["License-Expression"] == "Apache-2.0"
    (info,) = (entry for entry in wheel.iterdir() if entry.name.endswith(".dist-info"))
    assert "Version 2.0, January 2004" in (info / "licenses" / "LICENSE").read_text(encoding="utf-8")
