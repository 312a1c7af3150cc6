"""What ``jax.debug.print`` is given, against the fields of its text (NNX478).

It takes a text in the manner of ``str.format``, and, unlike that, refuses what no field takes: ``print("loss", loss)``
of Python, or a field with a name for an argument without one.

Invariants: the text is written as a literal; with starred arguments nothing is known.
"""

from __future__ import annotations

import ast
import re
import string
from typing import TYPE_CHECKING

from nnx_lint.model.values import Const
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.program import is_tried
from nnx_rules.rules import autodiff as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called

OPTIONS = frozenset({"ordered", "partitioned", "skip_format_check"})
"""What ``jax.debug.print`` takes for itself."""

PERCENT = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?[sdfgeir]")


@judges_calls(rules.DEBUG_FIELDS, "jax.debug.print")
def fields_of_print(event: Called, report: Reporter) -> None:
    text, call = event.args[0] if event.args else None, event.node
    if not isinstance(text, Const) or not isinstance(text.value, str) or None in event.args:
        return
    words = [word.arg for word in call.keywords] if isinstance(call, ast.Call) else [None]
    fields = fields_in(text.value)
    if fields is None or None in words:
        return
    values, names = event.nodes[1:], {str(word) for word in words} - OPTIONS
    lacking = [name for name in fields if not (int(name) < len(values) if name.isdigit() else name in names)]
    spare = [ast.unparse(node) for place, node in enumerate(values) if str(place) not in fields]
    spare += [f"{name}=..." for name in sorted(names.difference(fields))]
    if (lacking or spare) and not is_tried(event.frame.module, call):
        problem = f"has no field for `{spare[0]}`" if spare else f"has a field `{{{lacking[0]}}}` that nothing fills"
        report(event.frame.module, call, problem=problem, mend=_mend(text.value, lacking, spare))


def fields_in(text: str) -> list[str] | None:
    """The names and numbers of the fields of a text, by which they ask for arguments; ``None`` if it has no such."""
    names, parts = list[str](), [text]
    try:
        for part in parts:
            for _, name, form, _ in string.Formatter().parse(part):
                if name is not None:
                    head = re.split(r"[.\[]", name, maxsplit=1)[0]
                    names.append(head or str(sum(each.isdigit() for each in names)))
                    parts.append(form or "")
    except ValueError:
        return None
    return names


def _mend(text: str, lacking: list[str], spare: list[str]) -> str:
    """How the first argument and the first field that have nothing to do with each other come together."""
    by_name = bool(lacking) and not lacking[0].isdigit()
    if PERCENT.search(text) is not None and not lacking:
        return "write `{}` in the place of `%`: the fields are those of `str.format`"
    if spare and by_name and not spare[0].endswith("=..."):
        return f"hand it over by its name: `{lacking[0]}={spare[0]}`"
    if spare and not lacking:
        return "write a field where it is to stand: `{}`, or `{name}` for `name=...`"
    return "give each field an argument, and each argument a field"
