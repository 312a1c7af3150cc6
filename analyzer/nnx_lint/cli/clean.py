"""``nnx-lint clean``: removes the cache."""

from __future__ import annotations

import os

from nnx_lint.cli import CLEAN, UsageError
from nnx_lint.cli.arguments import parse
from nnx_lint.config.reading import ConfigError
from nnx_lint.config.registry import BY_NAME

FLAGS = ("cache-dir", "config", "isolated")


def clean(words: list[str]) -> int:
    """Remove the cache of the current folder."""
    from nnx_lint import cache
    from nnx_lint.cli.run import configured

    values, paths = parse(words, [BY_NAME[name] for name in FLAGS])
    if paths:
        raise UsageError("`nnx-lint clean` takes no paths; --cache-dir FOLDER names another cache")
    try:
        folder = configured(values).at(os.getcwd()).location("cache-dir")
    except ConfigError as error:
        raise UsageError(str(error)) from None
    removed = cache.clean(folder or os.curdir)
    print(f"Removed {removed} file{'' if removed == 1 else 's'}.")
    return CLEAN
