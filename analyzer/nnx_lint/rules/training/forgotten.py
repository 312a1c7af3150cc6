"""Training steps that compute gradients and forget the optimizer (NNX624).

A step that takes an optimizer is there to update with it. Where it computes gradients, nothing but their norm is asked
for, and it never says the optimizer's name, the update was left out: everything runs, and nothing is trained.

Invariants: the optimizer is a parameter of the function, an attribute of one or of its receiver, or has a name that is
bound around the call and that nobody reads; the gradients have a name, and go nowhere from there.
"""

from __future__ import annotations

import ast
import itertools
import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from nnx_lint.model.arrays import OPTAX_NUMBERS
from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import Transformed
from nnx_lint.model.events import Called
from nnx_lint.model.leaves import same_object
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Obj, ParameterVal
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import bound_to
from nnx_lint.rules.program import FUNCTIONS, ancestors, attribute_reads, canonical_of, in_test, reads_of, statement_of
from nnx_lint.syntax.binding import assigned_names, names_in, occurrences
from nnx_lint.syntax.parameters import names as names_of
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.api import OPTIMIZERS
from nnx_rules.rules import training as rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Env, Module
    from nnx_lint.model.values import Value

    Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module


@judges_calls(rules.GRADIENTS_NOT_APPLIED, Transformed)
def gradients_not_applied(event: Called, report: Reporter) -> None:
    frame, callee = event.frame, event.callee
    func = frame.func.node if frame.func is not None else frame.module.source.tree
    if not isinstance(callee, Transformed) or isinstance(func, ast.Lambda):
        return
    row = callee.applied.row.name
    if row not in GRADIENTS or "**" in callee.applied.keywords or in_test(frame):
        return
    found = _gradients(frame, event.node, pair=row.endswith("value_and_grad"), aux="has_aux" in callee.applied.keywords)
    name, statement = found or ("_", None)
    if name.startswith("_"):
        return
    if not all(_is_asked_size(frame, read) for read in _reads(func, name, statement)):
        return
    model = event.args[0] if event.args and "argnums" not in callee.applied.keywords else None
    optimizer = next((of for of, value in _optimizers(frame, func) if _may_be_for(value, model)), None)
    if optimizer is not None:
        report(frame.module, event.node, name=name, optimizer=optimizer)


def _may_be_for(optimizer: Value, model: Value | None) -> bool:
    """Whether an optimizer may be that of a model: it is not known to be of another one."""
    of = present((optimizer.args or {}).get("model", UNKNOWN)) if isinstance(optimizer, Obj) else UNKNOWN
    return not isinstance(of, Obj) or not isinstance(model, Obj) or same_object(of, model)


GRADIENTS = frozenset({"nnx.grad", "nnx.value_and_grad"})


def _gradients(frame: Frame, call: ast.AST, *, pair: bool, aux: bool) -> tuple[str, ast.stmt | None] | None:
    """The name that the gradients get which a call returns, and the statement that gives it to them."""
    bound = bound_to(frame.module, call)
    target, binding = (bound.target, bound.statement) if bound is not None else (None, None)
    scope = frame.func.node if frame.func is not None else frame.module.tree
    if isinstance(target, ast.Name) and (pair or aux) and len(reads := reads_of(scope, target.id)) == 1:
        passed = statement_of(frame.module, reads[0])  # results = grad_fn(model); loss, grads = results
        if isinstance(passed, ast.Assign) and passed.value is reads[0]:
            target, binding = passed.targets[0], passed
    if pair or aux:
        both = target.elts if isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == 2 else [None, None]
        target = both[1] if pair else both[0]
    return (target.id, binding) if isinstance(target, ast.Name) else None


def _reads(func: Scope, name: str, statement: ast.stmt | None) -> list[ast.Name]:
    """The reads of a name that may be of what a statement binds it to: those before the next one that binds it."""
    if statement not in func.body or name in _read_inside(func):
        return reads_of(func, name)
    found: list[ast.Name] = []
    numbers = _naming(func).get(name, [])
    for number in numbers[bisect_right(numbers, func.body.index(statement)) :]:
        each = func.body[number]
        named = occurrences(each, name)
        found += [part for part in named if isinstance(part.ctx, ast.Load)]
        if isinstance(each, ast.Assign) and any(isinstance(part.ctx, ast.Store) for part in named):
            break
    return found


@remembered
def _read_inside(func: Scope) -> frozenset[str]:
    """The names that are read in functions inside of one."""
    inside = [part for part in walk(func) if isinstance(part, FUNCTIONS) and part is not func]
    names = (node for part in inside for node in walk(part) if isinstance(node, ast.Name))
    return frozenset(node.id for node in names if isinstance(node.ctx, ast.Load))


@remembered
def _naming(func: Scope) -> dict[str, list[int]]:
    """The numbers of the statements of a function that say each name."""
    found: dict[str, list[int]] = {}
    for number, statement in enumerate(func.body):
        for name in names_in(statement):
            found.setdefault(name, []).append(number)
    return found


def _is_asked_size(frame: Frame, read: ast.Name) -> bool:
    """Whether gradients are only asked how large they are, as a whole or leaf by leaf."""
    outers = ancestors(frame.module, read)
    call: ast.AST | None = next(outers, None)
    inside: ast.expr = read
    name = canonical_of(frame.env, call.func) if isinstance(call, ast.Call) and inside in call.args else None
    if name == "nnx.state" and isinstance(call, ast.Call):
        inside, call = call, next(outers, None)
        name = canonical_of(frame.env, call.func) if isinstance(call, ast.Call) and inside in call.args else None
    if name in LEAVES:  # a list of them is nothing to update with, unless a tree is made of it again
        return not frame.module.mentions("unflatten")
    return name is not None and name.startswith("optax.") and name.removeprefix("optax.") in OPTAX_NUMBERS


LEAVES = frozenset({"jax.tree.leaves", "jax.tree_util.tree_leaves", "jax.tree_leaves"})
"""Functions that give the leaves of a tree in a list."""


def _optimizers(frame: Frame, func: Scope) -> Iterator[tuple[str, Value]]:
    """The optimizers that a function is given, that its receiver or an argument has, or that are made around it, and
    that it has not a word for; what it calls one and never reads is one, whatever it gets.
    """
    parameters = names_of(func.args) if not isinstance(func, ast.Module) else []
    measures = isinstance(func, ast.FunctionDef) and _MEASURING.search(func.name) is not None
    for name in parameters:
        value = frame.env.names.get(name, UNKNOWN)
        given = _optimizer(value)
        if given is not None and _is_only_handed_on(frame.module, func, name):
            yield name, given
        elif isinstance(value, ParameterVal) and not measures and _NAMED.search(name) and not reads_of(func, name):
            yield name, value
    said = {node.attr for node in walk(func) if isinstance(node, ast.Attribute)}
    for owner, held in _attributes(frame, parameters):
        name = owner.rpartition(".")[2]
        if name not in said and not _is_updated_elsewhere(frame, name):
            yield owner, held
    env: Env | None = frame.env
    while env is not None:
        scope = env.func.node if env.func is not None else frame.module.tree
        for name in sorted(assigned_names(scope.body)) if isinstance(scope.body, list) else ():
            found = env.lookup(name)
            made = _optimizer(found[1]) if found is not None else None
            if made is not None and _is_only_handed_on(frame.module, scope, name):
                yield name, made
        env = env.parent


_NAMED = re.compile(r"(?:^|_)opt(?:im|imizer)?$")
_MEASURING = re.compile(r"norm|eval|valid|test|stat|metric|log|inspect|grad|loss")
"""What is in the names of functions that only look at gradients, and take what a training step takes."""


def _is_only_handed_on(module: Module, scope: ast.AST, name: str) -> bool:
    """Whether all that a function does with an optimizer is to return it, or to ask for the model that it keeps."""
    return all(_is_returned(module, read) for read in reads_of(scope, name))


def _is_returned(module: Module, read: ast.Name) -> bool:
    outers = itertools.dropwhile(lambda outer: isinstance(outer, ast.Tuple), ancestors(module, read))
    outer = next(outers, None)
    return isinstance(outer, ast.Return) or (isinstance(outer, ast.Attribute) and outer.attr == "model")


def _attributes(frame: Frame, parameters: Sequence[str]) -> Iterator[tuple[str, Value]]:
    """The optimizers in attributes of the receiver of a function, and of what it is given."""
    owners = {"self": frame.receiver, **{name: frame.env.names.get(name) for name in parameters}}
    for owner, value in owners.items():
        for name in attribute_names(value) if isinstance(value, Obj) else ():
            attr = attribute_of(value, name) if isinstance(value, Obj) else None
            held = _optimizer(attr.value) if attr is not None else None
            if held is not None:
                yield f"{owner}.{name}", held
            elif attr is not None and isinstance(attr.value, ParameterVal) and _NAMED.search(name):
                yield f"{owner}.{name}", attr.value


def _is_updated_elsewhere(frame: Frame, name: str) -> bool:
    """Whether an optimizer in an attribute of this name is used in another place, so that this one need not train."""
    uses = (next(ancestors(frame.module, read), None) for read in attribute_reads(frame.module.tree, name))
    return any(isinstance(use, ast.Attribute) and use.attr == "update" for use in uses)


def _optimizer(value: Value | None) -> Obj | None:
    """A value, if it certainly is an optimizer."""
    held = present(value) if value is not None else None
    known = isinstance(held, Obj) and any(map(held.cls.derives_from, OPTIMIZERS))
    return held if known and isinstance(held, Obj) else None
