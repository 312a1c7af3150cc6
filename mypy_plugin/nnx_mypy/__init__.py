"""``nnx_mypy``: a mypy plugin that knows NNX, of flax and of nnxkit. ``plugins = nnx_mypy`` in mypy's configuration.

It does two things. *Types*: results that annotations cannot say, such as one State for each of any number of filters.
*Findings*: what ``nnx-lint`` finds in the files that mypy checks, as mypy errors with codes of the family ``nnx``.

Mypy's hooks change with its minor versions, so the plugin works with those that it is tested with, and says once that
it does nothing with another one.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Final

from nnx_rules import __version__ as __version__

if TYPE_CHECKING:
    from mypy.plugin import Plugin  # the analyzer's process loads this package, and needs nothing of mypy

OLDEST: Final = (2, 2)
NEWEST: Final = (2, 4)
_WARNED: Final = "NNX_MYPY_WARNED"
"""Set in the environment once the warning was given: mypy's workers are processes that load the plugin again."""


def plugin(version: str) -> type[Plugin]:
    """The plugin for a version of mypy; mypy calls this."""
    if not is_supported(version):
        if _WARNED not in os.environ:
            os.environ[_WARNED] = "1"
            oldest, newest = (".".join(map(str, end)) for end in (OLDEST, NEWEST))
            print(
                f"warning: nnx_mypy works with mypy {oldest} to {newest}, and does nothing with {version}: "
                "install another version of one of them",
                file=sys.stderr,
            )
        from mypy.plugin import Plugin

        return Plugin
    from nnx_mypy.hooks import NNXPlugin

    return NNXPlugin


def is_supported(version: str) -> bool:
    """Whether the plugin works with a version of mypy."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is not None and OLDEST <= (int(numbers[1]), int(numbers[2])) <= NEWEST
