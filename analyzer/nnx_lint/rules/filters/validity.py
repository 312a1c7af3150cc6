"""Things given as filters that are none, or that mean something else than they say (NNX306, NNX308, NNX310)."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Fix, Span
from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal
from nnx_lint.model.classes import ClassBase, library_class
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import Called
from nnx_lint.model.modules import Env
from nnx_lint.model.states import GraphDefVal, StateVal
from nnx_lint.model.values import AliasVal, Array, ClassVal, Const, Ext, Obj, UnionTypeVal, Value
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.filters.expressions import External, is_literal, type_name
from nnx_lint.rules.filters.reading import FILTERING, Given, gives_filters, single_filters
from nnx_lint.rules.program import assigned_in, canonical_of
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.compact import for_both
from nnx_lint.syntax.walk import walk
from nnx_rules import api
from nnx_rules.filters import Misuse, OfType
from nnx_rules.rules import filters as rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


# -- what is no filter -----------------------------------------------------------------------------------------------


def misuse_of(value: Value) -> tuple[Misuse, str] | None:
    """Why a value is no filter, and what to write instead, where that is certain."""
    if isinstance(value, UnionTypeVal):
        return Misuse.UNION, f"({', '.join(_names(value))})"
    if isinstance(value, AliasVal):
        return Misuse.ALIAS, value.origin.cls.name
    if isinstance(value, Ext) and value.name == "typing.Any":
        return Misuse.TYPING_ANY, ""
    if isinstance(value, Obj):
        return (Misuse.INSTANCE, value.cls.name) if value.cls.is_variable else None
    if isinstance(value, Const):
        return None if is_literal(value.value) else (Misuse.OTHER, "")
    if isinstance(value, (DictVal, Array, GraphDefVal, StateVal)):
        return Misuse.OTHER, ""
    if isinstance(value, Seq) and value.type in {"set", "frozenset"}:
        return Misuse.OTHER, ""
    return None


def _names(union: UnionTypeVal) -> list[str]:
    names: list[str] = []
    for member in union.members:
        if isinstance(member, UnionTypeVal):
            names += _names(member)
        elif isinstance(member, (ClassVal, AliasVal)):
            names.append((member.cls if isinstance(member, ClassVal) else member.origin.cls).name)
    return names


@judges_calls(rules.INVALID_FILTER, *FILTERING, when=gives_filters)
def invalid_filter(event: Called, report: Reporter) -> None:
    for single in single_filters(event):
        for part in single.given.parts():
            found = misuse_of(part.value)
            if found is None:
                continue
            misuse, replacement = found
            value = f"`{part}`, {misuse.problem}," if misuse.problem else f"`{part}`"
            mend = misuse.mend.format(mend=f"`{replacement}`")
            report(part.module, part.node, fix=partial(_valid, part), value=value, mend=mend)


def _valid(part: Given) -> Fix | None:
    """The plain types in place of a union, an alias or an instance."""
    write = _VALID.get(type(part.node))
    text = write(part) if write is not None and part.in_place else None
    if text is None:
        return None
    return Fix(f"Write `{text}`", (Edit(part.module.source.span(part.node), text),))


def _union(part: Given) -> str | None:
    if not isinstance(part.value, UnionTypeVal):
        return None
    members: list[str] = []

    def collect(node: ast.expr) -> None:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            collect(node.left)
            collect(node.right)
        else:
            members.append(part.module.source.segment(node))

    collect(part.node)
    return f"({', '.join(members)})"


def _alias(part: Given) -> str | None:
    node = part.node
    if not isinstance(node, ast.Subscript):
        return None
    if isinstance(part.value, AliasVal):
        return part.module.source.segment(node.value)
    if isinstance(part.value, UnionTypeVal) and isinstance(node.slice, ast.Tuple):
        return f"({', '.join(part.module.source.segment(item) for item in node.slice.elts)})"
    return None


def _instance(part: Given) -> str | None:
    node = part.node
    if isinstance(part.value, Obj) and isinstance(node, ast.Call) and not isinstance(node.func, ast.Call):
        return part.module.source.segment(node.func)
    return None


_VALID: dict[type[ast.expr], Callable[[Given], str | None]] = for_both(
    {ast.BinOp: _union, ast.Subscript: _alias, ast.Call: _instance}
)


# -- types that are no types of leaves -------------------------------------------------------------------------------


@judges_calls(rules.MODULE_TYPE_FILTER, *FILTERING, when=gives_filters)
def module_type_filter(event: Called, report: Reporter) -> None:
    for single in single_filters(event):
        if not single.leaves:
            continue
        for part in single.given.parts():
            if isinstance(part.expr, OfType) and matches_no_leaf(part.expr.type):
                report(part.module, part.node, filter=part, kind=_kind(part.expr.type))


@judges_calls(rules.MODULE_TYPE_FILTER, *FILTERING, when=gives_filters)
def module_type_in_predicate(event: Called, report: Reporter) -> None:
    """A function that filters, and asks whether it gets a module."""
    for single in single_filters(event):
        for part in single.given.parts() if single.leaves else ():
            asked = _parameters(part.value)
            for node, cls in _types_asked(*asked) if asked is not None else ():
                text = asked[0].module.source.segment(node) if asked is not None else ""
                if matches_no_leaf(cls):
                    report(part.module, part.node, filter=text, kind=_kind(cls))


def _types_asked(func: FuncVal, bound: int) -> Iterator[tuple[ast.expr, ClassBase]]:
    """Where a filter asks of what type the value is, and for which class."""
    positional = syntax_parameters.positional(func.node.args)[bound:]
    name = positional[1].arg if len(positional) > 1 else None
    for node in walk(func.node) if name is not None and not assigned_in(func.node)[name] else ():
        asked = _type_asked(node, name) if isinstance(node, (ast.Call, ast.Compare)) and name is not None else None
        cls = _class_of(func.env, asked) if asked is not None and isinstance(func.env, Env) else None
        if isinstance(node, (ast.Call, ast.Compare)) and cls is not None:
            yield node, cls


def _type_asked(node: ast.Call | ast.Compare, name: str) -> ast.expr | None:
    """What ``isinstance(value, C)``, ``issubclass(value.type, C)`` or ``value.type is C`` asks for."""
    if isinstance(node, ast.Compare):
        plain = len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.Eq))
        return node.comparators[0] if plain and _is_type_of(node.left, name) else None
    if len(node.args) != 2:
        return None
    whole = is_name(node.func, "isinstance") and is_name(node.args[0], name)
    typed = is_name(node.func, "issubclass") and _is_type_of(node.args[0], name)
    return node.args[1] if whole or typed else None


def _is_type_of(node: ast.expr, name: str) -> bool:
    """Whether an expression is the type of what has a name: ``value.type``, ``type(value)``."""
    if isinstance(node, ast.Call):
        return is_name(node.func, "type") and len(node.args) == 1 and is_name(node.args[0], name)
    return isinstance(node, ast.Attribute) and node.attr == "type" and is_name(node.value, name)


def _class_of(env: Env, node: ast.expr) -> ClassBase | None:
    """The class that a name means, of the library or of the project."""
    found = env.lookup(node.id) if isinstance(node, ast.Name) else None
    if found is not None and isinstance(found[1], ClassVal):
        return found[1].cls
    canonical = canonical_of(env, node)
    return library_class(canonical) if canonical is not None else None


def matches_no_leaf(cls: object) -> bool:
    """Whether a type certainly is that of no leaf: a graph node, a filter class."""
    if isinstance(cls, ClassBase):
        return cls.is_pytree and not cls.is_variable
    return isinstance(cls, External) and (cls.name in api.FILTER_CLASSES or cls.name in api.FILTER_MAPPINGS)


def _kind(cls: object) -> str:
    name = type_name(cls)
    if isinstance(cls, External):
        return "it is the class of a filter and must be called to make one"
    return f"`{name}` is a class of graph nodes, and a filter meets the Variables that they hold"


# -- callables -------------------------------------------------------------------------------------------------------


@judges_calls(rules.PREDICATE_ARITY, *FILTERING, when=gives_filters)
def filter_predicate_arity(event: Called, report: Reporter) -> None:
    for single in single_filters(event):
        for part in single.given.parts():
            parameters = _parameters(part.value)
            if parameters is None:
                continue
            given = wrong_arity(parameters[0], parameters[1])
            if given is not None:
                report(part.module, part.node, fix=partial(_add_path, part), given=given)
            elif _takes_path_for_text(*parameters):
                report(part.module, part.node, given="the path for a text, and it is a tuple of keys")


def _parameters(value: Value) -> tuple[FuncVal, int] | None:
    """The function that is called, and how many of its positional parameters are bound already."""
    if isinstance(value, FuncVal):
        return value, 0
    if isinstance(value, BoundMethod) and isinstance(value.func, FuncVal):
        return value.func, 1
    if isinstance(value, PartialVal) and isinstance(value.func, FuncVal) and not value.keywords:
        return value.func, len(value.args)
    return None


def wrong_arity(func: FuncVal, bound: int) -> str | None:
    """What a function takes instead of a path and a value; ``None`` if it can be called with these two."""
    arguments = func.node.args
    if func.decorators:
        return None
    positional = syntax_parameters.positional(arguments)[bound:]
    required = len(positional) - len(arguments.defaults)
    keywords = [
        item.arg for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is None
    ]
    if keywords:
        return f"the keyword `{keywords[0]}`"
    if required > 2:
        return f"{required} arguments"
    if len(positional) < 2 and arguments.vararg is None:
        return f"only `{positional[0].arg}`" if positional else "no argument"
    return None


TEXT_METHODS = frozenset(
    {"endswith", "find", "format", "lower", "partition", "removeprefix", "replace", "split", "startswith", "strip"}
)
"""Methods of strings that tuples lack."""


def _takes_path_for_text(func: FuncVal, bound: int) -> bool:
    """Whether a filter asks the path for what only a string has, or compares it with one."""
    positional = syntax_parameters.positional(func.node.args)[bound:]
    name = positional[0].arg if positional else None
    nodes = list(walk(func.node))
    named = [node for node in nodes if is_name(node, name)]
    if not named or any(not isinstance(node.ctx, ast.Load) for node in named):
        return False
    if any(isinstance(node, ast.Attribute) and node.attr in TEXT_METHODS and node.value in named for node in nodes):
        return True
    return any(
        isinstance(node, ast.Compare)
        and node.left in named
        and isinstance(node.ops[0], (ast.Eq, ast.NotEq))
        and isinstance(node.comparators[0], ast.Constant)
        and isinstance(node.comparators[0].value, str)
        for node in nodes
    )


def _add_path(part: Given) -> Fix | None:
    """Give a lambda of one parameter the path as its first one."""
    node = part.node
    if not (part.in_place and isinstance(node, ast.Lambda) and isinstance(part.value, FuncVal)):
        return None
    arguments = node.args
    if len(arguments.args) != 1 or arguments.posonlyargs or arguments.kwonlyargs or arguments.kwarg:
        return None
    span = part.module.source.span(arguments.args[0])
    name = arguments.args[0].arg
    if name in AMBIGUOUS or arguments.defaults:
        return None
    if name in PATHS:
        return Fix("Take the value as well", (Edit(Span(span.end, span.end), ", _value"),))
    used = {item.id for item in walk(node.body) if isinstance(item, ast.Name)}
    path = "_path" if "path" in used else "path"
    return Fix("Take the path as well", (Edit(Span(span.start, span.start), f"{path}, "),))


PATHS = frozenset({"path", "key", "keys", "name"})
"""Names of a parameter that is meant to be the path."""

AMBIGUOUS = frozenset({"p", "k", "_", "_path"})
"""Names of a parameter that may be meant as the path, or as a Param."""
