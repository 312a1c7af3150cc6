"""Weights that are kept as bare arrays, or as Variables of no type of their own (NNX151).

An array that is an attribute of a module belongs to its state and is no Variable: ``nnx.grad`` and optimizers pass by,
as they do by an ``nnx.Variable``. Many arrays are meant so, such as tables of positions, statistics and masks.
Invariants: an array is taken for a weight only if an initializer or the stream of parameters made it, or if all numbers
are zero or equal and it is added or multiplied, which does nothing, or leaves nothing of the other operand; nothing
else assigns it, and no gradient is stopped at it. A program that says by other means than a type of Variable what it
trains may train arrays.
"""

from __future__ import annotations

import ast
import itertools
import re
from functools import partial
from typing import TYPE_CHECKING, TypeGuard

from nnx_lint.diagnostics import Edit, Fix
from nnx_lint.model.callables import FuncVal, LibraryFunction
from nnx_lint.model.classes import UserClass, library_class
from nnx_lint.model.events import AttributeSet
from nnx_lint.model.expressions import text_of
from nnx_lint.model.heirs import classes_in
from nnx_lint.model.values import Array, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.bindings import names_of_first, value_of
from nnx_lint.rules.edits import unsafe, wrap
from nnx_lint.rules.intermediates.sowing import is_module
from nnx_lint.rules.program import (
    FUNCTIONS,
    ancestors,
    attribute_reads,
    attributes_named,
    attributes_stored,
    calls_in,
    canonical_of,
    enclosing,
    reads_of,
)
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.rules import attributes as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value


VARIABLE_NAME = "nnx.Variable"
VARIABLE = library_class(VARIABLE_NAME)


class Drawn(set[ast.AST]):
    """The calls that have drawn the values of a weight."""


class Noise(set[ast.AST]):
    """The calls that have drawn numbers from the stream of parameters: a weight, or features that stay as they are."""


@judges_calls(rules.BARE_WEIGHT, LibraryFunction)
def weight_drawn(event: Called, report: Reporter) -> None:
    if not isinstance(event.callee, LibraryFunction):
        return
    if not event.callee.maker.endswith(CONSTANT):
        report.memory(Drawn).add(event.node)
    elif event.callee.maker.endswith(NOISE) and _draws_for_parameters(event.node):
        report.memory(Noise).add(event.node)


@judges_calls(rules.BARE_WEIGHT, "jax.random.normal", "jax.random.truncated_normal", "jax.random.uniform", FuncVal)
def numbers_drawn(event: Called, report: Reporter) -> None:
    """Numbers of JAX, or those of an initializer of the project."""
    if _draws_for_parameters(event.node):
        report.memory(Noise).add(event.node)


def _draws_for_parameters(node: ast.AST) -> bool:
    """Whether the key of a call comes straight from the stream of parameters."""
    key = node.args[0] if isinstance(node, ast.Call) and node.args else None
    return isinstance(key, ast.Call) and isinstance(key.func, ast.Attribute) and key.func.attr == "params"


NOISE = (".normal", ".uniform")

CONSTANT = (".constant", ".zeros_init", ".ones_init", ".normal", ".uniform", "initializers")
"""Initializers that may make anything: constants, and noise that features are projected on."""


@judges(rules.BARE_WEIGHT, AttributeSet)
def bare_weight(event: AttributeSet, report: Reporter) -> None:
    frame, node, cls = event.frame, event.value_node, event.obj.cls
    if node is None or frame.initializing is not event.obj or not isinstance(cls, UserClass):
        return
    plain = _in_plain_variable(event.value, node)
    if plain is None and not isinstance(event.value, Array):
        return
    if not _is_constructing(event):
        return
    made = value_of(frame.module, node) or node if plain is None else plain
    if not is_module(event.obj) or cls.is_variable or not _is_read(cls, event.name) or _is_changed(cls, event.name):
        return  # the class alone tells; only of the other arrays the rest of the file is asked
    if _trains_arrays(frame.module):
        return
    drawn = report.memory(Drawn) if plain is not None else report.memory(Drawn) | report.memory(Noise)
    if plain is not None and isinstance(node, ast.Call) and _trains_all(frame.module, node.func):
        return
    if any(call in drawn for call in walk(made)):
        what = "is drawn like a parameter"
    elif "mask" not in event.name and (done := _all_combined(cls, event.name, _neutral(event, made))) is not None:
        what = f"is {done} as it was made, and nothing changes it"
    else:
        return
    if _is_assigned_again(cls, event.name):
        return
    fix = partial(_as_param, event, node) if plain is None else partial(_of_param_type, event, node)
    held = "a bare array" if plain is None else "a plain `nnx.Variable`"
    report(frame.module, node, fix=fix, cls=cls.name, path=event.name, what=what, held=held)


SET_UP = re.compile(r"_|add|build|create|init|make|set_?up")
"""How methods are called, from the first letter on, that do a part of what a constructor does."""


def _is_constructing(event: AttributeSet) -> bool:
    """Whether a constructor sets an attribute, itself or by a function that nothing else calls."""
    frame: Frame | None = event.frame
    while frame is not None and frame.func is not None and frame.func.name != "__init__":
        tree, name = frame.module.tree, frame.func.name
        uses = len(attribute_reads(tree, name)) + len(reads_of(tree, name))
        if uses != 1 or (frame.func.cls is not None and not SET_UP.match(name)):
            return False
        frame = frame.caller
    return frame is not None and frame.func is not None and frame.receiver is event.obj


def _in_plain_variable(value: Value, node: ast.expr) -> ast.expr | None:
    """The array that a call puts into a Variable of no type of its own, and says nothing else about."""
    plain = isinstance(value, Obj) and value.cls is VARIABLE and isinstance(node, ast.Call)
    return node.args[0] if plain and isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords else None


def _as_param(event: AttributeSet, node: ast.expr) -> Fix | None:
    name, source = spelled("nnx.Param", event.frame.module, event.frame.env), event.frame.module.source
    return unsafe(f"Wrap the value in `{name}(...)`", wrap(source, node, name)) if name else None


def _of_param_type(event: AttributeSet, node: ast.expr) -> Fix | None:
    name, source = spelled("nnx.Param", event.frame.module, event.frame.env), event.frame.module.source
    if not name or not isinstance(node, ast.Call):
        return None
    return unsafe(f"Make it an `{name}`", (Edit(source.span(node.func), name),))


Operators = dict[type[ast.operator], str]

ZEROS: Operators = {ast.Add: "added", ast.Mult: "multiplied", ast.MatMult: "multiplied"}
ONES: Operators = {ast.Mult: "multiplied"}
"""What is done to an array in vain, if all of it is zero or one number: it gives the other operand, or zeros."""

MADE: dict[str, Operators] = {
    "jax.numpy.zeros": ZEROS,
    "jax.numpy.ones": ONES,
    "jax.numpy.full": ONES,
    **dict.fromkeys(("nnx.initializers.zeros", "jax.nn.initializers.zeros"), ZEROS),
    **dict.fromkeys(("nnx.initializers.ones", "jax.nn.initializers.ones"), ONES),
}


def _neutral(event: AttributeSet, node: ast.expr) -> Operators:
    """The operators to which an array says nothing: all zeros are added, all of one number multiplied."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return ONES if any(_neutral(event, side) is ONES for side in (node.left, node.right)) else {}
    if not isinstance(node, ast.Call):
        return {}
    made = node.func.func if isinstance(node.func, ast.Call) else node.func  # an initializer that a call makes
    name = canonical_of(event.frame.env, made)
    return MADE.get(name.removesuffix("_init"), {}) if name is not None else {}


def _trains_arrays(module: Module) -> bool:
    """Whether a program chooses what to train by a function or by everything, and so arrays as well as Variables."""
    return any(name in WIDE or module.has(name, _functions) for name in module.all_of(_trained))


WIDE = frozenset({"...", "lambda"})
"""What takes arrays as well, or may do so; no function is called that."""


@remembered
def _trained(statement: ast.AST) -> frozenset[str]:
    """The names of what a statement says that is to be trained, and the :data:`WIDE` ones."""
    found: set[str] = set()
    for call in (node for node in walk(statement) if isinstance(node, ast.Call)):
        ending = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        filters = [item.value for item in call.keywords if item.arg == "wrt"]
        for item in [*filters, *call.args[1:2]] if ending == "DiffState" else filters:
            if isinstance(item, ast.Name):
                found.add(item.id)
            elif isinstance(item, ast.Lambda) or (isinstance(item, ast.Constant) and item.value in {..., True}):
                found.add("lambda" if isinstance(item, ast.Lambda) else "...")
    return frozenset(found)


@remembered
def _functions(statement: ast.AST) -> frozenset[str]:
    return frozenset(node.name for node in walk(statement) if isinstance(node, ast.FunctionDef))


def _trains_all(module: Module, variable: ast.expr) -> bool:
    """Whether a program trains Variables of all types; ``variable`` is how it calls these."""
    return module.has(text_of(variable), _by_keyword)


@remembered
def _by_keyword(statement: ast.AST) -> frozenset[str]:
    """The names, dotted ones too, that calls get by keyword."""
    calls = (node for node in walk(statement) if isinstance(node, ast.Call))
    named = (item.value for call in calls for item in call.keywords)
    return frozenset(text_of(value) for value in named if isinstance(value, (ast.Name, ast.Attribute)))


@remembered
def _set_by_name(tree: ast.AST) -> list[str]:
    """The attributes that ``setattr`` sets."""
    calls = (node for node in walk(tree) if isinstance(node, ast.Call) and len(node.args) == 3)
    named = (call.args[1] for call in calls if is_name(call.func, "setattr"))
    return [name.value for name in named if isinstance(name, ast.Constant) and isinstance(name.value, str)]


# -- attributes of other classes ---------------------------------------------------------------------------------------


def _of_class(cls: UserClass, name: str) -> list[ast.Attribute]:
    """Where a file names an attribute that may be the one of a class: not of ``self`` in a class that has nothing to do
    with it.
    """
    others = [each for each in classes_in(cls.module.tree) if each.name not in _kin(cls.module.tree, cls.name)]
    apart = {id(node) for each in others for node in _of_self(each)}
    return [node for node in attributes_named(cls.module.tree).get(name, ()) if id(node) not in apart]


def _kin(tree: ast.AST, name: str) -> set[str]:
    """The classes of a file whose methods may get an instance of a class as their object."""
    bases = {each.name: {ast.unparse(base).rpartition(".")[2] for base in each.bases} for each in classes_in(tree)}
    found = {name}
    for each in bases:
        above, todo = set[str](), [each]
        while todo:
            above.add(last := todo.pop())
            todo += bases.get(last, set()) - above
        if name in above:
            found |= above
    return found


@remembered
def _of_self(cls: ast.ClassDef) -> list[ast.Attribute]:
    """The attributes of their objects that the methods of a class name."""
    found: list[ast.Attribute] = []
    for method in cls.body:
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
            own = names_of_first(method)
            nodes = (node for node in walk(method) if isinstance(node, ast.Attribute))
            found += [node for node in nodes if isinstance(node.value, ast.Name) and node.value.id in own]
    return found


# -- what is done to an attribute --------------------------------------------------------------------------------------


def _all_combined(cls: UserClass, name: str, operators: Operators) -> str | None:
    """What is done to each attribute of this name in a file, if it is nothing but these."""
    reads = [node for node in _of_class(cls, name) if isinstance(node.ctx, ast.Load)] if operators else []
    if any(_is_of_samples(cls.module, read) for read in reads):
        return None
    found = [_combined(cls.module, read) for read in reads]
    done = [operators.get(type(operator)) if operator is not None else None for operator in found]
    return done[0] if done and None not in done else None


def _combined(module: Module, node: ast.AST) -> ast.operator | None:
    """The operator that an array, or the value of a Variable, is an operand of."""
    parent = next(ancestors(module, node), None)
    if _is_part(parent, node):
        return _combined(module, parent)
    return parent.op if isinstance(parent, ast.BinOp) else None


def _is_of_samples(module: Module, read: ast.AST) -> bool:
    """Whether a function draws random numbers, so that the array may be the mean or the deviation of a distribution,
    which is the standard one: ``self.mean + self.scale * jax.random.normal(key, shape)``.
    """
    func = enclosing(module, read, *FUNCTIONS)
    named = (canonical_of(module.env, call.func) or "" for call in calls_in(func)) if func is not None else ()
    return any(name.startswith("jax.random.") for name in named)


def _is_part(parent: ast.AST | None, node: ast.AST) -> TypeGuard[ast.Subscript | ast.Attribute]:
    """Whether an expression takes the value of a Variable, or an item of an array."""
    return (isinstance(parent, ast.Subscript) and parent.value is node) or (
        isinstance(parent, ast.Attribute) and parent.attr == "value"
    )


def _is_assigned_again(cls: UserClass, name: str) -> bool:
    """Whether an attribute is assigned more than once, or the value of the Variable that it holds is set: by the file
    of a class, or by a class above or below it in another one.
    """
    named, heirs = _of_class(cls, name), cls.module.project.heirs.mentioning(cls.name, name)
    elsewhere = [*(item.node for item in cls.lineage if item.module is not cls.module), *heirs]
    stores = [node for node in named if not isinstance(node.ctx, ast.Load)]
    count = len(stores) + sum(attributes_stored(node).count(name) for node in elsewhere)
    return count > 1 or name in _set_by_name(cls.module.tree) or any(_is_set(cls.module, node) for node in named)


def _is_changed(cls: UserClass, name: str) -> bool:
    """Whether a class itself assigns an attribute more than once, or sets the value of the Variable that it holds."""
    named = attributes_named(cls.node).get(name, ())
    count = sum(not isinstance(node.ctx, ast.Load) for node in named)
    return count > 1 or any(_is_set(cls.module, node) for node in named)


def _is_set(module: Module, read: ast.AST) -> bool:
    parent = next(ancestors(module, read), None)
    if isinstance(parent, ast.Attribute) and parent.attr == "set_value":
        return True
    return _is_part(parent, read) and not isinstance(parent.ctx, ast.Load)


def _is_read(cls: UserClass, name: str) -> bool:
    """Whether a class, or one above it, computes with an attribute, and lets gradients reach it."""
    reads = [(item.module, read) for item in cls.lineage for read in attribute_reads(item.node, name)]
    return bool(reads) and not any(_is_fixed(module, read) for module, read in reads)


def _is_fixed(module: Module, read: ast.AST) -> bool:
    """Whether an array is meant to stay as it is: no gradient passes, or it makes random features."""
    calls = itertools.takewhile(lambda node: not isinstance(node, ast.stmt), ancestors(module, read))
    named = (getattr(call.func, "attr", getattr(call.func, "id", "")) for call in calls if isinstance(call, ast.Call))
    return any(name in FIXING for name in named)


FIXING = frozenset({"cos", "sign", "sin", "stop_gradient"})
"""Functions of what is multiplied with numbers that are drawn once, and of gradients that end there."""
