"""The parameters of a function, by how a call may give them: in the order of their positions, or by name.

``*args`` and ``**kwargs`` are none of them: they take what no other parameter does. :func:`misfit` says why Python
refuses a call.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.syntax.dotted import last_name

if TYPE_CHECKING:
    from collections.abc import Collection


def positional(arguments: ast.arguments) -> list[ast.arg]:
    """The parameters that a call may give by position, in order."""
    return [*arguments.posonlyargs, *arguments.args]


def positional_names(arguments: ast.arguments) -> list[str]:
    """The names of the parameters that a call may give by position, in order."""
    return [item.arg for item in positional(arguments)]


def each(arguments: ast.arguments) -> list[ast.arg]:
    """All parameters of their own, in order: positional ones first."""
    return [*positional(arguments), *arguments.kwonlyargs]


def names(arguments: ast.arguments) -> list[str]:
    """The names of all parameters of their own, in order."""
    return [item.arg for item in each(arguments)]


def said_of(parameter: ast.arg) -> ast.expr | None:
    """The annotation of a parameter, if it says anything: ``Any`` and ``object`` may be everything."""
    said = parameter.annotation
    if isinstance(said, ast.Constant) and isinstance(said.value, str):
        return None if said.value.rpartition(".")[2] in _EVERYTHING else said
    return None if last_name(said) in _EVERYTHING else said


_EVERYTHING = frozenset({"Any", "object"})


def defaults(arguments: ast.arguments) -> dict[str, ast.expr]:
    """The expressions of the defaults, by the names of the parameters that have one."""
    last = zip(reversed(positional_names(arguments)), reversed(arguments.defaults), strict=False)
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return dict(last) | {item.arg: default for item, default in named if default is not None}


def misfit(
    arguments: ast.arguments, count: int, keywords: Collection[str], *, bound: bool = False, besides: str | None = None
) -> tuple[str, str] | None:
    """Why a function cannot be called with so many arguments by position and these by name, with the name of the
    parameter: one that is ``foreign``, ``extra`` ones, one given ``twice``, or one that is ``missing``.

    As a method it is ``bound`` to its object; the parameter ``besides`` is judged elsewhere.
    """
    by_position = positional_names(arguments)[bound:]
    if arguments.kwarg is None and (foreign := [name for name in keywords if not _is_named(arguments, name)]):
        return "foreign", foreign[0]
    if count > len(by_position) and arguments.vararg is None:
        return "extra", ""
    for name in by_position[:count]:
        if name in keywords and _is_named(arguments, name):
            return "twice", name
    without = by_position[count : max(len(by_position) - len(arguments.defaults), 0)]
    by_name = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    needed = [*without, *(item.arg for item, default in by_name if default is None)]
    missing = next((name for name in needed if name not in keywords and name != besides), None)
    return ("missing", missing) if missing is not None else None


def _is_named(arguments: ast.arguments, name: str) -> bool:
    """Whether a function has a parameter that a call may give by this name."""
    return any(item.arg == name for item in (*arguments.args, *arguments.kwonlyargs))
