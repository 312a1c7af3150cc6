"""What certainly goes into a result of a function: the names that it is computed from, as the text has them.

A loss that is computed of the captured model, while what was merged of the parameter serves the auxiliary values alone,
has no gradient, and nothing else tells it from one that has.

Invariants: a name that is bound, filled, or called upon in a statement takes in all names of that statement, and a
result that is returned under conditions all names of these; so a name that is not found has no part in the result.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.rules.program import canonical_name, own_nodes, results_of
from nnx_lint.syntax.binding import names_in
from nnx_lint.syntax.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.modules import Env


def sources_of_loss(func: ast.AST, env: Env) -> frozenset[str]:
    """The names that go into what a function returns first of several things, or as a whole."""
    results = results_of(func)
    losses = [result.elts[0] if isinstance(result, ast.Tuple) and result.elts else result for result in results]
    found = frozenset[str]().union(*map(names_in, losses))
    links = [(_of_program(written, env), names) for written, names in _links(func)]
    while True:
        wider = found.union(*(names for written, names in links if not written.isdisjoint(found)))
        if wider == found:
            return found
        found = wider


def _of_program(names: frozenset[str], env: Env) -> frozenset[str]:
    """The names that are none of a library: calling ``jnp.sum`` changes nothing of ``jnp``."""
    return frozenset(name for name in names if canonical_name(held[1] if (held := env.lookup(name)) else None) is None)


def _links(func: ast.AST) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """What each statement of a function may change, with the names that it reads for that."""
    for node in own_nodes(func):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield frozenset({node.name}), names_in(node)
        elif isinstance(node, (ast.If, ast.While)):  # on the condition depends whatever is changed under it
            yield frozenset[str]().union(*map(_changed, [*node.body, *node.orelse])), names_in(node.test)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            yield names_in(node.target), names_in(node.iter)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            yield names_in(node.optional_vars), names_in(node.context_expr)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete, ast.Expr)):
            yield _changed(node), names_in(node)


def _changed(statement: ast.AST) -> frozenset[str]:
    """The names that a statement binds, or of which it calls a method or writes a part."""
    found: set[str] = set()
    for part in walk(statement):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            found.add(part.id)
        elif isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load):
            found |= names_in(part)
        elif isinstance(part, ast.Call):
            of = part.func.value if isinstance(part.func, ast.Attribute) else None
            found |= names_in(of) if of is not None else frozenset()
            if isinstance(statement, ast.Expr):
                found |= names_in(part)
    return frozenset(found)
