"""A digest of what the plugin's answers depend on beside the code that mypy checks.

Mypy notices a change of the plugin's entry module only. The digest is part of what it keeps of every module, so that
another version of the plugin, of the analyzer or of the rules makes it look again. It is one of contents, for mypy's
cache may come from another machine; as long as the times and sizes of the files stay, it is not computed again.
"""

from __future__ import annotations

import functools
import hashlib
import os
from typing import Final

import nnx_lint
import nnx_mypy
import nnx_rules
from nnx_lint.cache import modules
from nnx_mypy import kept

FILE: Final = "nnx_digest.json"


@functools.cache
def of_packages(folder: str) -> str:
    """The digest of the plugin, the analyzer and the rules.

    Args:
        folder: that of mypy's cache, where the digest is kept.
    """
    roots = [os.path.dirname(package.__file__ or "") for package in (nnx_mypy, nnx_lint, nnx_rules)]
    state = _hashed("\n".join(line for root in roots for line in sorted(modules(root))).encode())
    known = kept.read(folder, FILE)
    if isinstance(known, list) and len(known) == 2 and known[0] == state:
        return str(known[1])
    contents = _hashed(*(part for root in roots for part in _contents(root)))
    kept.write(folder, FILE, [state, contents])
    return contents


def _contents(root: str) -> list[bytes]:
    """The name and the content of each module below a folder."""
    parts: list[bytes] = []
    for folder, inner, names in os.walk(root):
        inner.sort()
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    parts += [os.path.relpath(path, root).encode(), file.read()]
    return parts


def _hashed(*parts: bytes) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
