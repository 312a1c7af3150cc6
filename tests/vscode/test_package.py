"""The extension's manifest and what is packed: settings are the options, and nothing is missing or not allowed in."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from nnx_lint.config.registry import EDITOR, OPTIONS
from repository import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
try:
    import write_settings
finally:
    sys.path.remove(str(ROOT / "scripts"))

SOURCE = ROOT / "vscode-extension"
MANIFEST: dict[str, Any] = json.loads((SOURCE / "package.json").read_text(encoding="utf-8"))
SETTINGS = {
    name: described
    for group in MANIFEST["contributes"]["configuration"]
    for name, described in group["properties"].items()
}
OWN = {name for name in SETTINGS if name.startswith(("nnx.server.", "nnx.trace."))}


def test_settings_are_what_the_registry_makes_of_them() -> None:
    text = write_settings.MANIFEST.read_text(encoding="utf-8")

    assert write_settings.manifest(text) == text, "run scripts/write_settings.py"


def test_every_option_of_editors_is_a_setting_and_nothing_else_is() -> None:
    assert set(SETTINGS) - OWN == {option.setting for option in OPTIONS if EDITOR in option.places}


def test_a_stale_manifest_is_mended() -> None:
    text = write_settings.MANIFEST.read_text(encoding="utf-8")

    assert write_settings.manifest(text.replace("nnx.hintShapes", "nnx.hintSizes")) == text


def test_whatever_could_run_a_program_of_the_workspace_waits_for_trust() -> None:
    assert set(MANIFEST["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]) == {
        name for name in OWN if name.startswith("nnx.server.")
    }


def test_the_lock_file_names_no_host() -> None:
    lock = json.loads((SOURCE / "package-lock.json").read_text(encoding="utf-8"))

    assert [name for name, entry in lock["packages"].items() if "resolved" in entry] == []


def test_pictures_of_the_page_are_there() -> None:
    shown = re.findall(r"!\[.+?\]\((\S+?)\)", (SOURCE / "README.md").read_text(encoding="utf-8"))

    assert {SOURCE / name for name in shown} == set((SOURCE / "images").iterdir())


@pytest.fixture(scope="module")
def unpacked(vsix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vsix")
    with zipfile.ZipFile(vsix) as archive:
        archive.extractall(folder)
    return folder / "extension"


def test_the_package_holds_what_runs_and_nothing_that_was_only_needed_to_build(unpacked: Path) -> None:
    top = {path.name.lower() for path in unpacked.iterdir()}
    manifest = json.loads((unpacked / "package.json").read_text(encoding="utf-8"))

    assert top == {"package.json", "readme.md", "license.txt", "dist", "media", "images", "bundled"}
    assert {path.name for path in (unpacked / "dist").iterdir()} == {"extension.js", "structure.js"}
    assert "devDependencies" not in manifest
    assert re.fullmatch(r"\d+\.\d+\.\d+", manifest["version"])


def test_what_is_bundled_is_pure_python_with_its_licences(unpacked: Path) -> None:
    libraries = unpacked / "bundled" / "libs"
    licences = {path.parents[1].name.partition("-")[0] for path in libraries.glob("*.dist-info/licenses/*")}

    assert {"nnx_rules", "nnx_lint", "nnx_lsp", "pygls"} <= {path.name for path in libraries.iterdir()}
    assert not (libraries / "nnxkit").exists()
    assert not list(libraries.rglob("*.so"))
    assert {path.name.partition("-")[0] for path in libraries.glob("*.dist-info")} == licences


def test_the_bundled_server_needs_nothing_else(unpacked: Path) -> None:
    program = f"""
import runpy, sys
sys.argv[1:] = ["--version"]
try:
    runpy.run_path({str(unpacked / "bundled" / "serve.py")!r}, run_name="__main__")
except SystemExit as end:
    assert not end.code
from nnx_lint.pages import page
from nnx_rules.rules import REGISTRY
import nnx_lsp.server
assert page(REGISTRY.get("NNX101")).startswith("# "), "pages are bundled"
import json
print(json.dumps([sys.modules[name].__file__ for name in ("nnx_rules", "nnx_lint", "nnx_lsp", "pygls", "attrs")]))
"""
    run = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    places = json.loads(run.stdout.splitlines()[-1])
    assert all(Path(place).is_relative_to(unpacked) for place in places)
