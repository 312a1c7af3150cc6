"""What ``--show-settings`` prints: the settings of one file, as a configuration file would have them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from nnx_lint.config.kinds import PerFile
from nnx_lint.config.reading import shown
from nnx_lint.config.registry import FILE, OPTIONS
from nnx_lint.config.schema import literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nnx_lint.config.settings import Configuration


def described(configuration: Configuration, path: str) -> Iterator[str]:
    """The lines that describe the settings of a file."""
    from nnx_rules.rules import REGISTRY

    _, settings, target = configuration.place(os.path.dirname(path))
    options = configuration.options_for(path)
    files = [shown(document.path) for document in reversed(settings.documents) if document.path is not None]
    yield f"# settings of {path}\n"
    yield f"# configuration: {', which extends '.join(files) or 'none'}\n"
    yield f"# runs on: {target} ({shown(target.source) if os.path.isabs(target.source) else target.source})\n\n"
    for option in OPTIONS:
        if FILE not in option.places or option.name in ("extend", "rules"):
            continue
        value = settings.get(option.name)
        if isinstance(option.kind, PerFile):
            value = dict(cast("Sequence[tuple[str, object]]", value))
        if value is None:
            yield f"# {option.name}: {option.unset}\n"
        else:
            yield f"{option.name} = {literal(value)}\n"
    yield "\n[rules]\n"
    for rule in REGISTRY:
        if options.selected(rule):
            yield f"{rule.code} = {literal(options.severity(rule).value)}  # {rule.name}\n"
