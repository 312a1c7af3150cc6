"""The reads that may find what a statement has bound a name to.

A name that is bound anew before anything reads it has lost what it stood for. The text decides: the statements of the
blocks around a read, and the loops that come back to it.

Invariants: a read is left out only if a plain assignment surely binds the name anew on each way to it. A function that
is defined before the statement and reads the name when it runs is not seen.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from nnx_lint.rules.bindings import Assignment, pairs_of
from nnx_lint.rules.program import FUNCTIONS, STATEMENT_LOOPS, ancestors, block_of, enclosing, own_nodes, reads_of
from nnx_lint.syntax.binding import names_in
from nnx_lint.syntax.places import begin, end
from nnx_lint.syntax.walk import remembered, walk

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module


def reads_after(module: Module, scope: ast.AST, name: str, made: Assignment) -> list[ast.Name]:
    """Where a name may be read with what a statement has bound it to, in the order of the text."""
    loops = [item for item in ancestors(module, made) if isinstance(item, STATEMENT_LOOPS)]
    inside = [loop for loop in loops if enclosing(module, loop, *FUNCTIONS, ast.Module) is scope]
    reads = _reads_in_order(scope).get(name, [])
    first = bisect_left(reads, begin(inside[-1] if inside else made), key=begin)
    last = bound_next(module, scope, name, made)
    end_of = bisect_left(reads, end(last), key=begin) if last is not None else len(reads)
    return [read for read in reads[first:end_of] if _reaches(module, scope, made, read)]


@remembered
def _reads_in_order(scope: ast.AST) -> dict[str, list[ast.Name]]:
    names = {node.id for node in walk(scope) if isinstance(node, ast.Name)}
    return {name: sorted(reads_of(scope, name), key=begin) for name in names}


def bound_next(module: Module, scope: ast.AST, name: str, made: Assignment) -> Assignment | None:
    """The next statement of the same block that binds a name anew: what comes after it finds that."""
    found = _bindings(scope).get(name, [])
    block = block_of(module, made)
    later = found[bisect_right(found, begin(made), key=begin) : bisect_left(found, end(block[-1]), key=begin)]
    return next((item for item in later if block_of(module, item) is block), None)


@remembered
def _bindings(scope: ast.AST) -> dict[str, list[Assignment]]:
    """The plain assignments to each name of a function or module, in the order of the text."""
    found: dict[str, list[Assignment]] = {}
    for item in sorted((node for node in own_nodes(scope) if isinstance(node, Assignment)), key=begin):
        for name in _surely_bound(item):
            found.setdefault(name, []).append(item)
    return found


def _reaches(module: Module, scope: ast.AST, made: Assignment, read: ast.Name) -> bool:
    """Whether what a statement binds may be what a read finds: nothing surely binds the name anew on the way."""
    is_later = begin(read) > end(made)
    first = begin(made)
    if not is_later:
        loop = next((item for item in ancestors(module, made) if isinstance(item, STATEMENT_LOOPS)), None)
        while loop is not None and not begin(loop) <= begin(read) < end(loop):
            loop = next((item for item in ancestors(module, loop) if isinstance(item, STATEMENT_LOOPS)), None)
        if loop is None or enclosing(module, read, *FUNCTIONS, ast.Module) is not scope:
            return loop is not None
        first = begin(loop)
    place: ast.AST = read
    for outer in ancestors(module, read):
        if isinstance(place, ast.stmt):
            block = block_of(module, place)
            before = block[bisect_right(block, first, key=begin) : bisect_left(block, begin(place), key=begin)]
            if any(item is not made and read.id in _surely_bound(item) for item in before):
                return False
        if outer is scope:
            break
        place = outer
    return True


def _surely_bound(statement: ast.stmt) -> frozenset[str]:
    """The names that a plain assignment binds."""
    return frozenset[str]().union(*(names_in(target) for target, _ in pairs_of(statement)))
