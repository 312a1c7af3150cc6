"""Fixes of captures: what a compiled function captured, or brought along, becomes its first parameter, and its calls
pass it.

The fix changes a definition and all of its calls, so it is made only where all of them are seen: the function has a
name that is used for nothing but calls, in the one file, and at each of them the captured name means what it means in
the function. It is safe where no other file can know the function: it is local, or the module itself calls it.

Invariants: names are judged by the scopes that the text shows; whoever binds one in between ends the matter. A
transform of ``jax`` forgets what happens to its arguments, so it becomes the one of ``nnx`` along the way.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.model.expressions import text_of
from nnx_lint.model.modules import Env
from nnx_lint.model.values import ClassVal, Obj, Value
from nnx_lint.rules.edits import (
    Function,
    append_argument,
    insert,
    prepend_argument,
    prepend_parameter,
    remove_statement,
    replace,
)
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    assigned_in,
    binds,
    block_of,
    call_of,
    defined_in,
    parameters_in,
    scopes_around,
    uses_in,
)
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax import parameters as syntax_parameters

if TYPE_CHECKING:
    from nnx_lint.model.callables import FuncVal, TransformVal
    from nnx_lint.model.classes import ClassBase
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Assignment

COMPILING = frozenset({"jax.jit", "nnx.jit"})
NAMED = frozenset({"static_argnames", "donate_argnames"})
"""Options of a transform that go by names: another first parameter does not concern them."""


class Compiled(NamedTuple):
    """A compiled function with the transform as it is written, its calls, and whether no other file can call it."""

    func: Function
    transform: ast.expr
    calls: list[ast.Call]
    closed: bool


def as_parameter(applied: TransformVal, func: FuncVal | None, name: str, module: Module) -> Fix | None:
    """Pass what a compiled function of a module captures by a name, or by an attribute of what it names."""
    root = re.split(r"[.(\[]", name, maxsplit=1)[0]
    if func is None or func.cls is not None or not isinstance(func.env, Env):
        return None
    if func.module is not module or applied.module is not module:
        return None
    found = func.env.lookup(root)
    value = found[1] if found is not None else func.defaults.get(root)
    if not isinstance(value, Obj) or not value.cls.tracked:
        return None  # what holds it is nothing that a transform takes
    if applied.row.name not in COMPILING or not applied.keywords.keys() <= NAMED:
        return None
    compiled = _compiled(module, applied.node, func.node)
    if compiled is None or not compiled.calls:
        return None
    default = _default_of(func.node, root)
    if default is not None:
        edits = _without_default(module, compiled, root, default)
    else:
        edits = _with_parameter(module, compiled, root)
    edits.append(_on_nnx(applied, compiled.transform, module))
    return _made(f"Pass `{root}` to the function", edits, closed=compiled.closed)


def _on_nnx(applied: TransformVal, transform: ast.expr, module: Module) -> tuple[Edit, ...] | None:
    """Make a transform that of ``nnx``."""
    name = spelled("nnx.jit", module)
    if applied.row.name == "nnx.jit":
        return ()
    return replace(module.source, transform, name) if name is not None else None


def _made(title: str, edits: list[tuple[Edit, ...] | None], *, closed: bool) -> Fix | None:
    """The fix of all edits, if each can be made."""
    if None in edits:
        return None
    applicability = Applicability.SAFE if closed else Applicability.UNSAFE
    return Fix(title, tuple(edit for each in edits for edit in each or ()), applicability)


# -- functions that bring an object along ------------------------------------------------------------------------------


def unbound(applied: TransformVal, func: Value, module: Module) -> Fix | None:
    """Transform the method of a class, and pass the instance where the result is called.

    ``func`` is what is transformed: an instance, or one of its methods.
    """
    node = applied.node
    if applied.row.name not in COMPILING or applied.keywords or applied.module is not module:
        return None
    if not isinstance(node, ast.Call) or len(node.args) != 1:
        return None
    given = node.args[0]
    instance, name = func, "__call__"
    if isinstance(func, BoundMethod):
        if not isinstance(given, ast.Attribute):
            return None
        instance, name, given = func.receiver, func.name, given.value
    text = module.source.segment(given)
    if not isinstance(instance, Obj) or not re.fullmatch(r"[\w.]+", text):
        return None
    called = _calls_of_result(module, node)
    if called is None or not _means_the_same(module, node, called[0], text.partition(".")[0]):
        return None
    cls = _class_name(instance, module)
    if cls is None:
        return None
    edits = [replace(module.source, node.args[0], f"{cls}.{name}"), _on_nnx(applied, node.func, module)]
    edits += [prepend_argument(module.source, call, text) for call in called[0]]
    return _made(f"Pass `{text}` to the function", edits, closed=called[1])


def _class_name(instance: Obj, module: Module) -> str | None:
    """How a module names the class of an instance."""
    cls = instance.cls
    if isinstance(cls, LibClass):
        return spelled(cls.canonical, module)
    found = module.env.lookup(cls.name) if not instance.assumed else None
    return cls.name if found is not None and isinstance(found[1], ClassVal) and found[1].cls is cls else None


def method_of_class(applied: TransformVal, place: Assignment, cls: ClassBase, module: Module) -> Fix | None:
    """Make what an instance keeps, one of its methods under a transform, a method of the class."""
    node, statement = applied.node, place.node
    if applied.row.name not in COMPILING or applied.keywords or not isinstance(cls, UserClass):
        return None
    if applied.module is not module or cls.module is not module or not isinstance(node, ast.Call):
        return None
    if not isinstance(statement, ast.Assign) or statement.value is not node or len(statement.targets) != 1:
        return None
    target, given = statement.targets[0], node.args[0] if len(node.args) == 1 else None
    if not isinstance(target, ast.Attribute) or not isinstance(given, ast.Attribute):
        return None
    method = next((item for item in cls.node.body if getattr(item, "name", None) == given.attr), None)
    instead, removed = (
        spelled("nnx.jit", module),
        remove_statement(module.source, block_of(module, statement), statement),
    )
    if not isinstance(method, ast.FunctionDef) or method.decorator_list or instead is None or removed is None:
        return None
    if target.attr in cls.methods or text_of(target.value) != text_of(given.value):
        return None
    end = module.source.span(method).end
    if module.source.text[end : end + 1] not in {"", "\n", "\r"}:
        return None
    indent = module.source.line_indent(method.lineno)
    added = insert(end, f"\n\n{indent}{target.attr} = {instead}({given.attr})")
    return Fix(f"Make `{target.attr}` a method of the class", (*removed, *added), Applicability.UNSAFE)


def kept_by_partial(applied: TransformVal, module: Module) -> Fix | None:
    """Compile first, and let ``nnx.cached_partial`` keep the objects."""
    node, source = applied.node, module.source
    given = node.args[0] if isinstance(node, ast.Call) and len(node.args) == 1 else None
    if applied.row.name not in COMPILING or applied.keywords or applied.module is not module:
        return None
    if not isinstance(given, ast.Call) or given.keywords or len(given.args) < 2:
        return None
    jit, partial = spelled("nnx.jit", module), spelled("nnx.cached_partial", module)
    if jit is None or partial is None or any(isinstance(item, ast.Starred) for item in given.args):
        return None
    kept = source.text[source.span(given.args[1]).start : source.span(given.args[-1]).end]
    text = f"{partial}({jit}({source.segment(given.args[0])}), {kept})"
    return Fix(f"Use `{partial}`", replace(source, node, text), Applicability.UNSAFE)


# -- the function and its calls ----------------------------------------------------------------------------------------


def _compiled(module: Module, node: ast.AST, func: Function) -> Compiled | None:
    """The function that a transform compiles, if all of its calls are seen."""
    transform = node.func if isinstance(node, ast.Call) else node
    if not isinstance(transform, (ast.Name, ast.Attribute)):
        return None
    if not isinstance(func, ast.Lambda) and node in func.decorator_list:
        called = _calls(module, func, func.name) if len(func.decorator_list) == 1 else None
    elif isinstance(node, ast.Call) and len(node.args) == 1 and _is_given_only(module, func, node.args[0]):
        called = _calls_of_result(module, node)
    else:
        called = None
    return Compiled(func, transform, *called) if called is not None else None


def _calls_of_result(module: Module, node: ast.Call) -> tuple[list[ast.Call], bool] | None:
    """The calls of what a call returns, at once or by the name that it is bound to, and whether these are all."""
    parent, call = next(ancestors(module, node), None), call_of(module, node)
    if isinstance(parent, ast.Expr):
        return [], True
    if call is not None:
        return [call], True
    target = parent.targets[0] if isinstance(parent, ast.Assign) and len(parent.targets) == 1 else None
    return _calls(module, parent, target.id) if isinstance(target, ast.Name) and parent is not None else None


def _is_given_only(module: Module, func: Function, given: ast.expr) -> bool:
    """Whether a function is used at one place only: as the lambda that it is, or by its name."""
    if isinstance(func, ast.Lambda):
        return given is func
    scope = scopes_around(module, func)[0]
    return not func.decorator_list and _bindings(scope, func.name) == 1 and _uses(scope, func.name) == [given]


def _calls(module: Module, statement: ast.AST, name: str) -> tuple[list[ast.Call], bool] | None:
    """The calls of what a statement binds to a name, if it is used for nothing else, and whether these are all."""
    scope = scopes_around(module, statement)[0]
    if isinstance(next(ancestors(module, statement), None), ast.ClassDef) or _bindings(scope, name) != 1:
        return None
    calls: list[ast.Call] = []
    for node in _uses(scope, name):
        call = next(ancestors(module, node), None)
        if not isinstance(call, ast.Call) or call.func is not node:
            return None
        calls.append(call)
    runs = any(scopes_around(module, call)[0] is scope for call in calls)
    return calls, runs or not isinstance(scope, ast.Module)


def _bindings(scope: ast.AST, name: str) -> int:
    """How often a name is bound in a scope or below it."""
    return defined_in(scope)[name] + assigned_in(scope)[name] + parameters_in(scope)[name]


def _uses(scope: ast.AST, name: str) -> list[ast.Name]:
    return uses_in(scope).get(name, [])


# -- what names mean ---------------------------------------------------------------------------------------------------


def _binder(module: Module, node: ast.AST, name: str) -> ast.AST | None:
    """The scope that gives a name its meaning at a node; ``None`` right in the body of a class."""
    if isinstance(next((outer for outer in ancestors(module, node) if isinstance(outer, _SCOPES)), None), ast.ClassDef):
        return None
    scopes = scopes_around(module, node)
    return next((scope for scope in scopes if binds(scope, name)), scopes[-1])


_SCOPES = (*FUNCTIONS, ast.ClassDef)


def _means_the_same(module: Module, place: ast.AST, calls: list[ast.Call], name: str) -> bool:
    """Whether a name means at some calls what it means at another place."""
    meant = _binder(module, place, name)
    return meant is not None and all(_binder(module, call, name) is meant for call in calls)


# -- edits -------------------------------------------------------------------------------------------------------------


def _with_parameter(module: Module, compiled: Compiled, name: str) -> list[tuple[Edit, ...] | None]:
    if binds(compiled.func, name) or not _means_the_same(module, compiled.func, compiled.calls, name):
        return [None]
    calls = (prepend_argument(module.source, call, name) for call in compiled.calls)
    return [prepend_parameter(module.source, compiled.func, name), *calls]


def _default_of(func: Function, name: str) -> ast.Name | None:
    """The name that is the default of a parameter, where the parameter can do without."""
    given = func.args
    named = dict(zip((item.arg for item in given.kwonlyargs), given.kw_defaults, strict=True))
    positional = syntax_parameters.positional_names(given)
    first = positional[len(positional) - len(given.defaults) :][:1]
    default = given.defaults[0] if name in first else named.get(name)
    return default if isinstance(default, ast.Name) else None


def _without_default(module: Module, compiled: Compiled, name: str, default: ast.Name) -> list[tuple[Edit, ...] | None]:
    source, func = module.source, compiled.func
    meant = _binder(module, func, default.id)
    if meant is None or _bindings(meant, default.id) > 1 + (name == default.id):
        return [None]
    if not _means_the_same(module, func, compiled.calls, default.id):
        return [None]
    positional = syntax_parameters.positional_names(func.args)
    place = positional.index(name) if name in positional else len(positional)
    start = source.text.rindex("=", 0, source.span(default).start)
    edits: list[tuple[Edit, ...] | None] = [(Edit(Span(start, source.span(default).end), ""),)]
    for call in compiled.calls:
        if any(isinstance(item, ast.Starred) for item in call.args) or any(item.arg is None for item in call.keywords):
            return [None]
        if len(call.args) <= place and name not in (item.arg for item in call.keywords):
            edits.append(append_argument(source, call, f"{name}={default.id}"))
    return edits
