"""A digest of what the plugin's answers depend on beside the code that mypy checks.

Mypy notices a change of the plugin's entry module only. The digest is part of what it keeps of every module, so that
another version of the plugin, of the analyzer or of the rules makes it look again.
"""

from __future__ import annotations

import functools
import hashlib
import os

import nnx_lint
import nnx_mypy
import nnx_rules


@functools.cache
def of_packages() -> str:
    """The digest of the plugin, the analyzer and the rules, by the contents of their files."""
    digest = hashlib.blake2b(digest_size=16)
    for package in (nnx_mypy, nnx_lint, nnx_rules):
        root = os.path.dirname(package.__file__ or "")
        for path in sorted(_files(root)):
            digest.update(os.path.relpath(path, root).encode())
            with open(path, "rb") as file:
                digest.update(file.read())
    return digest.hexdigest()


def _files(folder: str) -> list[str]:
    found: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                found.append(entry.path)
            elif entry.is_dir() and entry.name != "__pycache__":
                found += _files(entry.path)
    return found
