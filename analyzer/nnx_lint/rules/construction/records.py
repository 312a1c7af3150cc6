"""Records that are made with what they have no field for: dataclasses, named tuples, configurations (part of NNX838).

Their constructor is generated from the annotated names of the class, and so is what makes one anew:
``dataclasses.replace(cfg, dims=64)``, ``state.replace(param=...)``, ``step._replace(...)``.

Invariants: all fields are seen, and whether each is a parameter; a class with a constructor of its own is judged as any
function is; a model of pydantic takes what it has no field for, and drops it.
"""

from __future__ import annotations

import ast
import difflib
from typing import TYPE_CHECKING

from nnx_lint.model.classes import UserClass
from nnx_lint.model.unions import present
from nnx_lint.model.values import ClassVal, Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.construction.signatures import CLOSE, is_meant
from nnx_lint.rules.program import given
from nnx_lint.syntax.binding import imported_name
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nnx_lint.model.events import Called
    from nnx_lint.model.fields import Field

MANY = 6
"""How many fields a message names."""


def makes_record(event: Called) -> bool:
    """Whether a class is called whose constructor is generated."""
    cls = event.callee.cls if isinstance(event.callee, ClassVal) else None
    return isinstance(cls, UserClass) and cls.generated_init


@judges_calls(rules.LAYER_SIGNATURE, "class", when=makes_record)
def record_made(event: Called, report: Reporter) -> None:
    cls = event.callee.cls if isinstance(event.callee, ClassVal) else None
    fields = _fields(cls)
    args = given(event)
    if fields is None or not isinstance(cls, UserClass) or args.starred or event.name.rpartition(".")[2] != cls.name:
        return
    foreign = _foreign(args.keywords, fields)
    by_position = [field.name for field in fields if not field.keyword_only]
    extra = len(args.positional) - len(by_position)
    if foreign is not None:
        problem, mend = f"takes no `{foreign}`", _mend(foreign, fields)
    elif extra > 0:
        problem = f"takes {len(by_position)} arguments by position, and gets {len(args.positional)}"
        mend = f"its fields are {_listed(fields)}"
    else:
        told = {*by_position[: len(args.positional)], *args.keywords}
        lacking = next((field.name for field in fields if not field.has_default and field.name not in told), None)
        if lacking is None or not cls.node.body or cls.module.mentions("__defaults__"):
            return  # what `namedtuple(...)` makes may be told of defaults afterwards
        problem, mend = f"is made without `{lacking}`", f"give it, or give the field a default: `{lacking}: ... = ...`"
    root = root_of(event.node.func) if isinstance(event.node, ast.Call) else None
    if is_meant(event) and not event.frame.module.has(root or "", _imported_within):
        report(event.frame.module, event.node, cls=cls.name, problem=problem, mend=mend)


@remembered
def _imported_within(statement: ast.AST) -> frozenset[str]:
    """The names that are imported in a block of ``with``: what they stand for there, such as the configuration of a
    class that is to be made later, may be something else.
    """
    blocks = (node for node in walk(statement) if isinstance(node, (ast.With, ast.AsyncWith)))
    imports = (node for block in blocks for node in block.body if isinstance(node, (ast.Import, ast.ImportFrom)))
    return frozenset(imported_name(alias) for each in imports for alias in each.names)


@judges_calls(rules.LAYER_SIGNATURE, "dataclasses.replace", "copy.replace", "attrs.evolve", ".replace", "._replace")
def record_renewed(event: Called, report: Reporter) -> None:
    by_method = (event.subject or "").startswith(".")
    held = event.owner if by_method else given(event).get(0)
    record = present(held) if held is not None else None
    cls = record.cls if isinstance(record, Obj) else None
    fields = _fields(cls)
    if fields is None or not isinstance(cls, UserClass) or not isinstance(record, Obj):
        return
    if by_method and event.name.rpartition(".")[2] != cls.renewed_by:
        return
    foreign = _foreign(event.keywords, fields)
    # What an annotation says may be of a class below, which has more fields.
    if foreign is None or "**" in event.keywords or (cls.module.project.heirs.exist(cls.name) and record.assumed):
        return
    if is_meant(event):
        problem, mend = f"has no field `{foreign}` to be replaced", _mend(foreign, fields)
        report(event.frame.module, event.node, cls=cls.name, problem=problem, mend=mend)


def _fields(cls: object) -> list[Field] | None:
    """The parameters of a generated constructor, where all of them are known."""
    if not isinstance(cls, UserClass) or not cls.generated_init or cls.is_variable or "pydantic" in cls.record:
        return None
    if cls.is_open or cls.opaque or cls.remade or cls.replaced_init or cls.find("__new__") is not None:
        return None
    if not all(item.has_fields for item in cls.lineage if item.fields):
        return None
    fields = cls.all_fields()
    return [field for field in fields if field.init] if all(field.init is not None for field in fields) else None


def _foreign(keywords: Iterable[str], fields: list[Field]) -> str | None:
    """What is given by a name that no field has."""
    names = {field.name for field in fields}
    return next((name for name in keywords if name != "**" and name not in names), None)


def _mend(name: str, fields: list[Field]) -> str:
    alike = difflib.get_close_matches(name, [field.name for field in fields], n=1, cutoff=CLOSE)
    return f"it is called `{alike[0]}`" if alike else f"its fields are {_listed(fields)}"


def _listed(fields: list[Field]) -> str:
    names = ", ".join(f"`{field.name}`" for field in fields[:MANY])
    return (names or "none") + (", ..." if len(fields) > MANY else "")
