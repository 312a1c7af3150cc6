"""Whether a constructor takes what the words of a target give it: ``Mlp(64, dept=2)`` is a mistake, and no model.

Invariants: what is left out is no mistake, since it stays a name in the drawing; where it is not certain what the
constructor takes, everything is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.classes import UserClass, method_of
from nnx_lint.selection import nearest
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_rules.signatures import SIGNATURES

if TYPE_CHECKING:
    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.classes import ClassBase

STARRED = "**"
"""The keyword under which a call keeps what it gives by names that are not known."""


class _Taken(NamedTuple):
    """What a constructor takes by position, and what by name; ``None`` is anything."""

    positional: list[str] | None
    named: list[str] | None


def refused(cls: ClassBase, args: Arguments) -> str | None:
    """What a constructor cannot take of a call, if that is certain."""
    taken = _taken_by(cls)
    if taken is None or args.starred or STARRED in args.keywords:
        return None
    count, positional, named = len(args.positional), taken.positional, taken.named
    known = [*dict.fromkeys([*(positional or ()), *(named or ())])]
    listed = f"; its parameters are {', '.join(known)}" if known else "; it takes no arguments"
    if positional is not None and count > len(positional):
        return f"{cls.name} takes {len(positional)} by position, not {count}{listed}"
    for name in args.keywords:
        if named is not None and name not in named:
            hint = nearest(name, named)
            return f"{cls.name} has no parameter {name}" + (f"; did you mean {hint}?" if hint else listed)
        if name in (positional or ())[:count]:
            return f"{cls.name} is given {name} twice"
    return None


def _taken_by(cls: ClassBase) -> _Taken | None:
    if cls.is_open or (isinstance(cls, UserClass) and cls.find("__new__") is not None):
        return None
    found = method_of(cls, "__init__")
    if found is not None:
        func = found[1]
        if func.wraps is not None or func.decorators:
            return None
        given = func.node.args
        named = [item.arg for item in (*given.args, *given.kwonlyargs)]
        own = syntax_parameters.positional_names(given)[:1]
        return _Taken(
            syntax_parameters.positional_names(given)[1:] if given.vararg is None else None,
            [name for name in named if name not in own] if given.kwarg is None else None,
        )
    library = cls.made_as
    signature = SIGNATURES.get(library.canonical) if library is not None else None
    if signature is not None:
        names = [*signature.positional, *signature.keywords]
        return _Taken(None if signature.variadic else [*signature.positional], None if signature.open else names)
    fields = [field for field in cls.all_fields() if field.init is not False]
    if not fields or any(field.init is not True for field in fields):
        return None
    return _Taken([field.name for field in fields if not field.keyword_only], [field.name for field in fields])
