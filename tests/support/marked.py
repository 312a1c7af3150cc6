"""Programs that mark each line that a rule is to report by `# NNX201`, the rule's code; all other lines are clean."""

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nnx_lint import engine
from nnx_lint.diagnostics import Diagnostic
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile
from nnx_rules.registry import Version

PREAMBLE = """\
import functools
import jax
import jax.numpy as jnp
import optax
from flax import nnx
"""
MARK = re.compile(r"# ((?:NNX\d\d\d ?)+)$")


def findings(
    folder: Path,
    files: Mapping[str, str],
    *,
    library: str | None = None,
    version: Version | None = None,
    rules: tuple[str, ...] = ("NNX2",),
) -> tuple[list[Diagnostic], dict[str, SourceFile]]:
    """All findings of the rules whose codes start so, by default of those about traces, with the sources by path."""
    sources = {}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        sources[str(path)] = SourceFile.read(str(path))
    options = Options.everywhere(lambda rule: rule.code.startswith(rules), library, version)
    return engine.check(list(sources.values()), roots=[str(folder)], options=options), sources


def expect(folder: Path, files: Mapping[str, str], **how: Any) -> list[Diagnostic]:
    """The findings are exactly those that the marks in the files say."""
    found, sources = findings(folder, files, **how)
    reported = {(item.path, sources[item.path].location(item.span.start)[0], item.rule.code) for item in found}
    marked = {
        (path, row, code)
        for path, source in sources.items()
        for row, line in enumerate(source.text.splitlines(), 1)
        if (mark := MARK.search(line))
        for code in mark.group(1).split()
    }
    assert reported == marked, sorted(reported ^ marked)
    return found


def program(text: str) -> dict[str, str]:
    """One file of this text, below the usual imports."""
    return {"program.py": PREAMBLE + textwrap.dedent(text)}
