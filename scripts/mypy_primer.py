"""`make mypy-primer`: mypy on pinned packages that nobody here wrote, with the plugin and without.

The record, `tests/mypy/upstream.toml`, has for each package how many errors there are, and every error that only the
plugin reports, with a verdict of somebody who read the code. Fails if a package has another such error, or one that is
recorded as false, or more errors with the plugin than without that are no findings.

Counts change with the versions of mypy, jax and flax that are installed, so they are shown, and kept for the record.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from fetch import fetch
from primer import PACKAGES

NAMES = (
    "bijx",
    "calibrax",
    "canvit-nnx",
    "gensbi",
    "heal-swin-nnx",
    "jraphx",
    "lpips-nnx",
    "mamba2-jax",
    "mamba3-jax",
    "nnx-ppo",
    "rl-blox",
    "synecdoche",
    "vitax",
    "zlynx",
)
RECORD = Path(__file__).resolve().parent.parent / "tests" / "mypy" / "upstream.toml"
CONFIGURATION = "[mypy]\nignore_missing_imports = true\ncheck_untyped_defs = true\nnamespace_packages = true\n"


def errors(folder: Path, cache: Path, plugin: bool) -> set[str]:
    """The errors in a package: file, message and code, without lines."""
    configuration = cache / f"{plugin}.ini"
    configuration.write_text(
        CONFIGURATION + "explicit_package_bases = true\n" + ("plugins = nnx_mypy\n" if plugin else "")
    )
    words = ["--config-file", str(configuration), "--cache-dir", str(cache / str(plugin)), "--no-error-summary", "."]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words], cwd=folder, capture_output=True, text=True, check=False, env=os.environ
    )
    if done.returncode == 2:
        raise SystemExit(done.stdout + done.stderr)
    return {re.sub(r":\d+: error", ": error", line) for line in done.stdout.splitlines() if ": error: " in line}


def main() -> int:
    record = tomllib.loads(RECORD.read_text(encoding="utf-8"))
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        for package in PACKAGES:
            if package.name not in NAMES:
                continue
            root = fetch(package)
            without, with_plugin = (errors(root, cache, plugin) for plugin in (False, True))
            new = with_plugin - without
            print(f"{package.name} {package.version}: {len(without)} without the plugin, {len(with_plugin)} with it")
            known = {entry["error"]: entry["verdict"] for entry in record.get(package.name, {}).get("new", ())}
            for error in sorted(new):
                verdict = known.get(error, "unread")
                failed |= verdict != "true"
                print(f"    {verdict}: {error}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
