"""Seeds that the constructor of a layer writes down (NNX518): all its instances begin with the same numbers.

A layer that makes its key itself, ``jax.random.normal(jax.random.key(0), shape)``, is right as long as a model has one
of it. So is one that makes its streams of a number that it is given, such as ``config.seed``, as long as no other layer
is given the same.

Invariants: a model certainly holds two that are made with the same arguments, and the numbers are those of Params; a
projection that stays as it is drawn may be the same everywhere.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from nnx_lint.model.attributes import attribute_names, attribute_of
from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import UserClass
from nnx_lint.model.events import Constructed
from nnx_lint.model.leaves import PARAMETRIC
from nnx_lint.model.values import ClassVal, Obj
from nnx_lint.reporting import Reporter, judges, related
from nnx_lint.rules.bindings import keywords_of, names_of_first, value_of
from nnx_lint.rules.program import (
    FUNCTIONS,
    LOOPS,
    STATEMENT_LOOPS,
    ancestors,
    assigned_in,
    canonical_of,
    enclosing,
    parameters_in,
    resolved,
)
from nnx_lint.rules.randomness.fixed import is_said
from nnx_lint.rules.randomness.reading import elements
from nnx_lint.rules.randomness.reuse import KEY_MAKERS, TWINS
from nnx_lint.rules.repeating import COMPREHENSIONS
from nnx_lint.syntax.binding import assigned_names, names_in
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.walk import dumped, walk
from nnx_rules.rules import rngs as rules
from nnx_rules.streams import SAMPLERS

if TYPE_CHECKING:
    from nnx_lint.model.modules import Module


@judges(rules.SAME_SEED, Constructed)
def seed_of_constructor(event: Constructed, report: Reporter) -> None:
    """Several layers of a model whose class makes its numbers from a seed of its own."""
    first: dict[tuple[UserClass, str], tuple[str, ast.AST]] = {}
    for name in attribute_names(event.obj):
        attr = attribute_of(event.obj, name)
        if attr is None or not attr.assignments or attr.assignments[-1].branches:
            continue
        for layer in elements(attr.value):
            module, node = layer.origin or (event.frame.module, None)
            if not isinstance(node, ast.Call) or not isinstance(layer.cls, UserClass):
                continue
            made = " ".join(map(dumped, (*node.args, *node.keywords)))
            known = first.setdefault((layer.cls, made), (name, node))
            twins = TWINS.isdisjoint(known[0].split("_")) is not TWINS.isdisjoint(name.split("_"))
            several = _made_in_rounds(module, node) or (known[1] is not node and not twins)
            found = _written_below(layer, given=_is_given_the_same(module, node)) if several else None
            if found is not None:
                cls, path, seed = found
                also = (related(module, node, f"this `{layer.cls.name}` is one of them"),)
                other = f"and `{event.cls.name}` holds several `{layer.cls.name}`"
                report(cls.module, seed, related=also, path=path, seed=ast.unparse(seed), other=other)
                return


def _is_given_the_same(module: Module, node: ast.Call) -> bool:
    """Whether the arguments of a call are the same each time that it, or one that is written like it, runs."""
    given = [*node.args, *(item.value for item in node.keywords)]
    if not isinstance(node.func, (ast.Attribute, ast.Name)):
        return False  # a partial brings more along
    if any(isinstance(part, ast.Call) for item in given for part in walk(item)):
        return False
    scope = enclosing(module, node, *FUNCTIONS)
    loop = enclosing(module, node, *LOOPS, *FUNCTIONS, ast.ClassDef)
    again = assigned_names([loop]) if isinstance(loop, STATEMENT_LOOPS) else frozenset[str]()
    names = {name for item in given for name in names_in(item)}
    return scope is not None and names.isdisjoint(again) and all(assigned_in(scope)[name] <= 1 for name in names)


def _written_below(layer: Obj, depth: int = 3, *, given: bool = False) -> tuple[UserClass, str, ast.Call] | None:
    """The class, the attribute and the seed of a layer, or of a part of it, that is made of a seed of its own, or of
    one that it is ``given``.
    """
    found = _written(layer, given=given) if isinstance(layer.cls, UserClass) else None
    if found is not None and isinstance(layer.cls, UserClass):
        return layer.cls, f"{layer.cls.name}.{found[0]}", found[1]
    for name in attribute_names(layer) if depth and isinstance(layer.cls, UserClass) else ():
        attr = attribute_of(layer, name)
        if attr is None or not attr.assignments or attr.assignments[-1].branches:
            continue
        below = (_written_below(part, depth - 1) for part in elements(attr.value))
        first = next((each for each in below if each is not None), None)
        if first is not None:
            return first
    return None


def _made_in_rounds(module: Module, node: ast.Call) -> bool:
    """Whether a loop makes the same thing again and again."""
    loop = enclosing(module, node, *LOOPS, *FUNCTIONS, ast.ClassDef)
    if isinstance(loop, COMPREHENSIONS):
        targets = [each.target for each in loop.generators]
    else:
        targets = [loop.target] if isinstance(loop, ast.For) else []
    return bool(targets) and names_in(node).isdisjoint(name for each in targets for name in names_in(each))


def _written(layer: Obj, *, given: bool) -> tuple[str, ast.Call] | None:
    """The attribute that a constructor, or what it calls, makes of a seed that it writes down, or is ``given``, and the
    call that has the seed.
    """
    found = layer.cls.find("__init__") if isinstance(layer.cls, UserClass) else None
    init = found[1].node if found is not None and isinstance(found[1], FuncVal) else None
    for name in attribute_names(layer):
        attr = attribute_of(layer, name)
        place = attr.assignments[-1] if attr is not None and attr.assignments else None
        if place is None or place.value_node is None or place.branches:
            continue
        module, value = place.module, place.value_node
        own = init is not None and enclosing(module, value, *FUNCTIONS) is init
        named = (value_of(module, part) for part in walk(value) if isinstance(part, ast.Name))
        for node in (inner for part in (value, *filter(None, named)) for inner in walk(part)):
            seed = _seed_of(module, node) if isinstance(node, ast.Call) else None
            if seed is None or not (_is_literal(module, seed) or (given and own and init and _is_given(init, seed))):
                continue
            if _is_trained(module, node) or _is_param(module, value):
                return name, seed
    return None


def _is_param(module: Module, node: ast.AST) -> bool:
    found = resolved(module.env, node.func) if isinstance(node, ast.Call) else None
    return isinstance(found, ClassVal) and found.cls.derives_from("nnx.Param")


def _is_literal(module: Module, seed: ast.Call) -> bool:
    return len(seed.args) == 1 and is_said(module, module.env, seed.args[0]) and not seed.keywords


def _is_given(init: ast.AST, seed: ast.Call) -> bool:
    """Whether a seed is what a constructor gets for a parameter, or an attribute of that, ``config.seed``."""
    numbers = [*seed.args, *(item.value for item in seed.keywords)]
    if not all(isinstance(item, (ast.Constant, ast.Name, ast.Attribute)) for item in numbers):
        return False
    roots = {root_of(item) or "" for item in numbers if not isinstance(item, ast.Constant)}
    own = names_of_first(init) if isinstance(init, FUNCTIONS) else frozenset[str]()
    # Streams go on with each draw: what is made of them differs.
    kept = (root not in own and parameters_in(init)[root] == 1 and not assigned_in(init)[root] for root in roots)
    return bool(roots) and all(kept) and not any(DRAWN.search(root) for root in roots)


DRAWN = re.compile("rng|stream", re.IGNORECASE)
"""In the name of a parameter: it is a source of random numbers."""


def _seed_of(module: Module, call: ast.Call) -> ast.Call | None:
    """The key or the streams, made just for that, that a call draws from."""
    name = _made_as(module, call) or ""
    if name.removeprefix("jax.random.") in SAMPLERS:
        given, makers = call.args[0] if call.args else None, KEY_MAKERS
    elif name.removeprefix("nnx.") in PARAMETRIC:
        options = keywords_of(module, call) or {}
        given = options.get("rngs") if not any(key.endswith("_init") for key in options) else None
        makers = frozenset({"nnx.Rngs"})
    else:
        return None
    made = (value_of(module, given) or given) if given is not None else None
    if not isinstance(made, ast.Call) or canonical_of(module.env, made.func) not in makers:
        return None
    return made


def _made_as(module: Module, call: ast.Call) -> str | None:
    """What a call calls, as the library has it: also a class of the project that is a layer by another name."""
    found = resolved(module.env, call.func)
    layer = found.cls.works_as if isinstance(found, ClassVal) and isinstance(found.cls, UserClass) else None
    return layer.canonical if layer is not None else canonical_of(module.env, call.func)


def _is_trained(module: Module, call: ast.AST) -> bool:
    """Whether what a call makes is a layer, or the value of a Param."""
    name = _made_as(module, call) if isinstance(call, ast.Call) else None
    if (name or "").removeprefix("nnx.") in PARAMETRIC:
        return True
    outers = (outer for outer in ancestors(module, call) if isinstance(outer, ast.Call))
    return any(_is_param(module, outer) for outer in outers)
