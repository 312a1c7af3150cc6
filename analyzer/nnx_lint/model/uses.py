"""What a function itself says of parameters that nobody annotated, by what it does with them.

A parameter is ``nnx.Rngs`` if it is handed to a layer as its streams, to one of the library or to one whose constructor
does so in turn, or to a function that does. It is ``nnx.Optimizer`` if it takes the step, and ``nnx.Module`` if that is
for it: ``optimizer.update(model, grads)`` as a statement, with the gradients that the function computed of that model.
So is what a function hands to another one that takes a step with it.

Invariants: only such uses count as nothing else could take part in; a parameter that the function binds anew is left
out; what is read off a function holds none of its syntax.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model import expressions
from nnx_lint.model.callables import FuncVal, Transformed
from nnx_lint.model.classes import LibClass, library_class, method_of
from nnx_lint.model.frames import Frame
from nnx_lint.model.values import UNKNOWN, ClassVal, Ext, Value
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.walk import walk
from nnx_rules.transforms import DIFFERENTIATING

if TYPE_CHECKING:
    from nnx_lint.model.interpreter import Interpreter

RNGS = library_class("nnx.Rngs") or LibClass("nnx.Rngs", (), None)
OPTIMIZER = library_class("nnx.Optimizer") or LibClass("nnx.Optimizer", (), None)
MODULE = library_class("nnx.Module") or LibClass("nnx.Module", (), None)


MAX_CALLS = 24
"""How far what a function hands on is followed, from call to call: each evaluation reads what it calls anew."""


def uses_of(interp: Interpreter, frame: Frame, func: FuncVal, calls: int = 0) -> dict[str, LibClass]:
    """The parameters without an annotation that a function uses as instances of a library class; read once.

    ``calls`` counts those that have led here from the function that somebody asked about.
    """
    known = interp.uses.get(id(func.node))
    if known is None and calls == MAX_CALLS:
        return {}
    if known is None:
        known = interp.uses[id(func.node)] = {}
        given = func.node.args
        names = {item.arg for item in syntax_parameters.each(given) if syntax_parameters.said_of(item) is None}
        nodes = walk(func.node) if names else []
        bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        seen = _Reading(interp, frame, _named_in(nodes), names - bound, names | bound, calls)
        for node in nodes:
            if isinstance(node, ast.Call):
                known.update(seen.handed_on(node))
                known.update(dict.fromkeys(seen.streams(node), RNGS))
            elif isinstance(node, ast.Expr):
                known.update(seen.step(node.value))
    return known


class _Named(NamedTuple):
    """The functions that are defined in a function, and what is assigned there, by the name that is bound to them."""

    functions: dict[str, list[ast.FunctionDef]]
    assigned: dict[str, list[ast.expr]]


def _named_in(nodes: list[ast.AST]) -> _Named:
    """The same of all nodes of a function, itself the first of them."""
    named = _Named({}, {})
    for node in nodes[1:]:
        if isinstance(node, ast.FunctionDef):
            named.functions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Assign):
            target = node.targets[-1]
            last = target.elts[-1] if isinstance(target, ast.Tuple) and target.elts else target
            if isinstance(last, ast.Name):  # of several, the last one: values come before gradients
                named.assigned.setdefault(last.id, []).append(node.value)
    return named


class _Reading(NamedTuple):
    """A function that is read: its names, the parameters in question, all names that are its own, and how many calls
    have led to it.
    """

    interp: Interpreter
    frame: Frame
    named: _Named
    names: set[str]
    own: set[str]
    calls: int

    def meaning(self, node: ast.expr) -> Value:
        """What a name means outside of the function, or an attribute of one."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in self.own:
            return UNKNOWN
        return expressions.evaluate(self.interp, self.frame, node)

    def streams(self, node: ast.Call) -> set[str]:
        """The parameters that a call hands to a layer as its streams."""
        keywords = {item.arg: self._name(item.value) for item in node.keywords if item.arg is not None}
        plain = [self._name(item) for item in node.args]
        if not any((*keywords.values(), *plain)):
            return set()
        if (local := self._local(node.func)) is not None:
            taken, parameters = self._taken(local), syntax_parameters.positional_names(local.args)
        else:
            callee = self.meaning(node.func)
            while isinstance(callee, Transformed):
                callee = callee.func
            if isinstance(callee, ClassVal) and isinstance(callee.cls, LibClass):
                return {name for name in (keywords.get("rngs"),) if name}
            found = method_of(callee.cls, "__init__") if isinstance(callee, ClassVal) else None
            func = found[1] if found is not None else callee
            if not isinstance(func, FuncVal) or func.wraps is not None:
                return set()
            inner = self._uses_of(func)
            taken = {name for name, cls in inner.items() if cls is RNGS}
            parameters = syntax_parameters.positional_names(func.node.args)[found is not None :]
        handed = {**dict(zip(parameters, plain, strict=False)), **keywords}
        return {name for parameter, name in handed.items() if name and parameter in taken}

    def _local(self, node: ast.expr) -> ast.FunctionDef | None:
        """The function that a name of this one stands for, where it is defined in it, and once; under transforms, too,
        but not under decorators that may be anything.
        """
        if not isinstance(node, ast.Name) or node.id in self.own:
            return None
        found = self.named.functions.get(node.id, [])
        around = found[0].decorator_list if len(found) == 1 else []
        made = [self.meaning(item.func if isinstance(item, ast.Call) else item) for item in around]
        return found[0] if len(found) == 1 and all(isinstance(item, Ext) for item in made) else None

    def _taken(self, func: ast.FunctionDef) -> set[str]:
        """The parameters that a function which is defined in this one hands on as streams."""
        nodes = walk(func)
        bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        names = set(syntax_parameters.names(func.args))
        inner = _Reading(self.interp, self.frame, _named_in(nodes), names - bound, self.own | names | bound, self.calls)
        return {name for node in nodes if isinstance(node, ast.Call) for name in inner.streams(node)}

    def _uses_of(self, func: FuncVal) -> dict[str, LibClass]:
        """The same of a function that this one calls."""
        return uses_of(self.interp, Frame(func.module, func.module.env), func, self.calls + 1)

    def _name(self, node: ast.expr) -> str:
        return node.id if isinstance(node, ast.Name) and node.id in self.names else ""

    def handed_on(self, call: ast.Call) -> dict[str, LibClass]:
        """The parameters that a call hands to a function of the project that takes a step with them."""
        plain = [self._name(item) for item in call.args]
        keywords = {item.arg: self._name(item.value) for item in call.keywords if item.arg is not None}
        func = self.meaning(call.func) if any((*plain, *keywords.values())) else UNKNOWN
        while isinstance(func, Transformed):
            func = func.func
        if not isinstance(func, FuncVal) or func.wraps is not None:
            return {}
        inner = self._uses_of(func)
        parameters = syntax_parameters.positional_names(func.node.args)
        handed = {**dict(zip(parameters, plain, strict=False)), **keywords}
        stepping = {parameter: cls for parameter, cls in inner.items() if cls is not RNGS}
        return {name: stepping[parameter] for parameter, name in handed.items() if name and parameter in stepping}

    def step(self, call: ast.expr) -> dict[str, LibClass]:
        """The parameters that a statement steps, and steps for, with the gradients of that model."""
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "update":
            return {}
        optimizer, given = self._name(call.func.value), [item.id for item in call.args if isinstance(item, ast.Name)]
        if not optimizer or len(given) != 2 or len(call.args) != 2:
            return {}
        model, gradients = given
        if not any(self._differentiates(value, model) for value in self.named.assigned.get(gradients, ())):
            return {}
        return {optimizer: OPTIMIZER, **({model: MODULE} if model in self.names else {})}

    def _differentiates(self, value: ast.expr, model: str) -> bool:
        """Whether an expression computes gradients with respect to what a name stands for."""
        first = value.args[0] if isinstance(value, ast.Call) and value.args else None
        if not isinstance(value, ast.Call) or not isinstance(first, ast.Name) or first.id != model:
            return False
        func = value.func
        if isinstance(func, ast.Name):
            func = next(iter(self.named.assigned.get(func.id, ())), func)
        made = self.meaning(func.func if isinstance(func, ast.Call) else func)
        if isinstance(made, Transformed):
            return made.applied.row.name in DIFFERENTIATING
        return isinstance(made, Ext) and isinstance(func, ast.Call) and made.name in DIFFERENTIATING
