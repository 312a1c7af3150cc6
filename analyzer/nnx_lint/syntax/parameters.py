"""The parameters of a function, by how a call may give them: in the order of their positions, or by name.

``*args`` and ``**kwargs`` are none of them: they take what no other parameter does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast


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


def defaults(arguments: ast.arguments) -> dict[str, ast.expr]:
    """The expressions of the defaults, by the names of the parameters that have one."""
    last = zip(reversed(positional_names(arguments)), reversed(arguments.defaults), strict=False)
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return dict(last) | {item.arg: default for item, default in named if default is not None}
