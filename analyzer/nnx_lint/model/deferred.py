"""Names that a module imports, and that nobody has asked for yet.

An import at the top of a module does not execute the module that it names: that happens when the name is looked up
first. Most of what a file imports, and nearly all that those files import in turn, is never looked at.

Invariants: a :class:`Deferred` stays where it was bound, and no other value holds one: who reads names takes them from
:class:`~nnx_lint.model.modules.Env`, or through :func:`settled`. What it stands for depends on the texts of modules
alone; the module that imports it has then used the one that it comes from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.values import UNKNOWN, Value

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable

    from nnx_lint.model.modules import Module


class Deferred(Value):
    """What an import binds: a module's statement, which imports a name.

    ``ask`` gives the value of these, or ``None`` while the module that has it is being executed; ``asking`` says that
    the value is being asked for: the name leads to itself.
    """

    __slots__ = ("_ask", "_importer", "_name", "_node", "_value", "asking")

    def __init__(
        self,
        ask: Callable[[Module, ast.ImportFrom, str], Value | None],
        importer: Module,
        node: ast.ImportFrom,
        name: str,
    ) -> None:
        self._ask, self._importer, self._node, self._name = ask, importer, node, name
        self.asking = False
        self._value: Value | None = None

    def settled(self) -> Value:
        """The value; unknown while it is being asked for."""
        if self._value is None:
            if self.asking:
                return UNKNOWN
            self.asking = True
            try:
                self._value = self._ask(self._importer, self._node, self._name)
            finally:
                self.asking = False
        return self._value if self._value is not None else UNKNOWN


def settled(value: Value) -> Value:
    """What a name is bound to."""
    return value.settled() if type(value) is Deferred else value
