"""Training steps that begin anew each time: an optimizer that is made in the compiled function, or in the loop that
takes the steps (NNX621).

What makes the optimizer and what updates it are followed to the function that both happen in: either may be done by a
function that this one calls. Then what repeats that is looked for, outwards: a loop around, a function that is
compiled, a loop that calls it.

Invariants: an optimizer that leaves the function or the round, or takes several steps in it, is meant to be made there;
so is one for a model that is made there. Where it takes all steps of an epoch, and another one those of the next, it is
not: stages and tasks may have an optimizer each, but epochs are one training.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.events import Called
from nnx_lint.model.expressions import text_of
from nnx_lint.model.leaves import same_object
from nnx_lint.model.states import OptStateVal, TransformationVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Obj
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.bindings import bound_to, pairs_of, value_of
from nnx_lint.rules.program import (
    FUNCTIONS,
    LOOPS,
    STATEMENT_LOOPS,
    assigned_in,
    attribute_reads,
    attributes_stored,
    canonical_of,
    enclosing,
    given,
    in_test,
    is_chosen,
    is_tried,
    keyword_node,
    names_of_parameters,
    own_nodes,
    reads_of,
    resolved,
    statement_of,
)
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name, names_in
from nnx_lint.syntax.walk import walk
from nnx_rules.api import OPTIMIZERS
from nnx_rules.rules import training as rules

if TYPE_CHECKING:
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Env, Module
    from nnx_lint.model.values import Value

COMPILING = frozenset({"jax.jit", "nnx.jit", "nnx.pmap", "jax.pmap"})
STATELESS = frozenset({"optax.sgd", "optax.sign_sgd"})
"""Optimizers that remember nothing between steps, without options that make them do so."""


class Optimizers:
    """The calls that made the optimizers of a program, and states of those of optax, by what they made, and whether
    they may not be run.
    """

    def __init__(self) -> None:
        self.made: dict[int, tuple[Value, Called, bool]] = {}

    def note(self, event: Called) -> None:
        self.made[id(event.result)] = event.result, event, event.frame.doubtful


class Place(NamedTuple):
    """A node in a function that is being executed."""

    frame: Frame
    node: ast.AST

    @property
    def scope(self) -> ast.AST:
        """The function, or the module."""
        return self.frame.func.node if self.frame.func is not None else self.frame.module.tree

    @property
    def loop(self) -> ast.AST | None:
        """The loop around the node, in its function."""
        found = enclosing(self.frame.module, self.node, *LOOPS, *FUNCTIONS)
        return None if isinstance(found, FUNCTIONS) else found


@judges_calls(rules.OPTIMIZER_IN_STEP, *OPTIMIZERS)
def note_optimizer(event: Called, report: Reporter) -> None:
    if isinstance(event.result, Obj) and not _remembers_nothing(event):
        report.memory(Optimizers).note(event)


@judges_calls(rules.OPTIMIZER_IN_STEP, ".init")
def note_state(event: Called, report: Reporter) -> None:
    if isinstance(event.result, OptStateVal) and event.result.keeps:
        report.memory(Optimizers).note(event)


@judges_calls(rules.OPTIMIZER_IN_STEP, ".update")
def optimizer_in_step(event: Called, report: Reporter) -> None:
    owner = present(event.callee.receiver) if isinstance(event.callee, BoundMethod) else UNKNOWN
    optimizer = given(event).get(1, "state") if isinstance(owner, TransformationVal) else owner
    while isinstance(optimizer, Obj) and optimizer.level and optimizer.template is not None:
        optimizer = optimizer.template  # as it was handed to the compiled function that updates it
    _, made, doubtful = report.memory(Optimizers).made.get(id(optimizer), (None, None, True))
    if made is None or in_test(event.frame):
        return
    makes, updates = _brought_together(made, event)
    if makes is None or updates is None or is_tried(makes.frame.module, makes.node):
        return
    handed = makes.frame is updates.frame and _is_handed(makes.node, updates.node)
    target = makes.node if handed and isinstance(makes.node, ast.Call) else _bound_by(makes)
    several = makes.loop is not updates.loop
    if target is None or (several and not _is_part_of(makes, updates)):
        return
    if not isinstance(target, ast.Call) and not _is_read_once(makes, updates, target):
        return
    model = _model(makes, made)
    named = value_of(makes.frame.module, model) if model is not None else None
    model = named if isinstance(named, (ast.Attribute, ast.Name)) else model
    if isinstance(target, ast.Attribute) and (doubtful or model is None or _is_set(makes.frame.module, model)):
        return  # it may be made in the first step only, or for each model
    placed = isinstance(made.result, Obj) and isinstance(model, ast.Attribute)
    if placed and isinstance(model, ast.Attribute) and model.attr in attributes_stored(makes.scope):
        return  # each step has a model of its own
    functional = isinstance(made.result, OptStateVal)
    when = _repeated(makes, updates, model, several=several, functional=functional) if model is not None else None
    if when is not None:
        report(makes.frame.module, makes.node, name=text_of(target), when=when)


def _chain(event: Called) -> list[Place]:
    """Where a call stands, and the calls that lead there, outermost first."""
    return [Place(event.frame, event.node), *(Place(*outer) for outer in event.frame.callers())][::-1]


def _brought_together(made: Called, update: Called) -> tuple[Place | None, Place | None]:
    """Where the innermost function that does both makes an optimizer and updates it, if neither is done in loops of
    functions that this one calls.
    """
    making, updating = _chain(made), _chain(update)
    updates = {id(place.frame): at for at, place in enumerate(updating)}
    for at in range(len(making) - 1, -1, -1):
        if (other := updates.get(id(making[at].frame))) is not None:
            below = [*making[at + 1 :], *updating[other + 1 :]]
            known = all(place.loop is None for place in below)
            return (making[at], updating[other]) if known else (None, None)
    return None, None


def _is_part_of(makes: Place, updates: Place) -> bool:
    """Whether a loop takes the steps of an optimizer that its function, or a round of a loop around, always makes."""
    module, inner = makes.frame.module, updates.loop
    within = inner is not None and enclosing(module, inner, *LOOPS, *FUNCTIONS)
    around = None if isinstance(within, FUNCTIONS) else within
    return within is not False and around is makes.loop and not is_chosen(module, makes.node)


def _repeated(makes: Place, updates: Place, model: ast.expr, *, several: bool, functional: bool = False) -> str | None:
    """What repeats the making of an optimizer for a model that was there before, in words; if it takes ``several``
    steps, that must be a loop over epochs, which makes the same one each time. Where parameters are ``functional``,
    what a step returns takes their place.
    """
    place, names = makes, _names_for(makes)
    while (root := _root(model)) is not None:
        if several and place.loop is not None and not _counts_epochs(place.loop, names - {root.id}):
            return None
        if (loop := place.loop) is not None:
            stepped = _stepped(place.frame.env, loop, root.id)
            if functional and not assigned_in(loop)[root.id]:
                return None  # each round begins with the same parameters
            step = statement_of(place.frame.module, updates.node) if several and place.frame is updates.frame else None
            if functional and place is not makes:
                step = statement_of(place.frame.module, place.node)
            stepped += assigned_in(step)[root.id] if isinstance(step, ast.Assign) and not stepped else 0
            changed = assigned_in(loop)[root.id] > stepped
            changed = changed or not isinstance(loop, STATEMENT_LOOPS) or _is_set(place.frame.module, model)
            tried = place is makes and _is_tried_out(makes.node, loop)
            return None if changed or tried else _when(makes)
        frame = place.frame
        if frame.func is None or in_test(frame) or root.id not in names_of_parameters(frame.func.node):
            return None
        # `optimizer = nnx.ModelAndOptimizer(optimizer.model, tx)` has read the model before
        own = place is makes and is_name(_bound_by(makes), root.id)
        if assigned_in(frame.func.node)[root.id] > own:
            return None
        scope = frame.scope[-1] if frame.scope else None
        if scope is not None and scope.frame is frame:
            return _when(makes) if scope.row.name in COMPILING and not several else None
        if frame.caller is None or not isinstance(frame.call, ast.Call):
            return None
        names = {each for name in names for each in names_in(_argument(frame, name) or ast.Name(name))}
        place, value = Place(frame.caller, frame.call), resolved(frame.env, root)
        found = _argument(frame, root.id) or _given(place, value if value is not None else UNKNOWN)
        if found is None:
            return None
        model = found
    return None


def _counts_epochs(loop: ast.AST, names: set[str]) -> bool:
    """Whether a loop goes over epochs, and binds none of these names."""
    said = f"{ast.unparse(loop.target)} {ast.unparse(loop.iter)}" if isinstance(loop, ast.For) else ""
    return "epoch" in said.lower() and names.isdisjoint(assigned_in(loop))


def _names_for(makes: Place) -> set[str]:
    """The names that say what a call makes, through what its function binds once."""
    found, todo = set[str](), [makes.node]
    for node in todo:
        for name in (part for part in walk(node) if isinstance(part, ast.Name) and part.id not in found):
            value = value_of(makes.frame.module, name)
            found |= set() if value is not None else {name.id}
            todo += [value] if value is not None and value not in todo else []
    return found


def _is_tried_out(call: ast.AST, loop: ast.AST) -> bool:
    """Whether each round of a loop has an optimizer of its own: the call names what the loop goes through."""
    targets = walk(loop.target) if isinstance(loop, (ast.For, ast.AsyncFor)) else ()
    rounds = {text_of(each) for each in targets if isinstance(each, (ast.Name, ast.Attribute))}
    given = [*call.args, *(each.value for each in call.keywords)] if isinstance(call, ast.Call) else []
    owner = [call.func.value] if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else []
    return any(isinstance(each, (ast.Name, ast.Attribute)) and text_of(each) in rounds for each in (*owner, *given))


def _stepped(env: Env, loop: ast.AST, name: str) -> int:
    """How often a loop binds a name to the parameters of that name after a step."""
    count = 0
    for node in walk(loop):
        for target, call in pairs_of(node):
            if isinstance(call, ast.Call) and canonical_of(env, call.func) == "optax.apply_updates":
                count += name in names_in(target)
    return count


def _when(makes: Place) -> str:
    """How a message says what repeats the making: the function that makes it, or the loop that it stands in."""
    func = makes.frame.func
    return f"`{func.name}` runs" if func is not None and makes.loop is None else "the loop goes round"


def _given(place: Place, value: Value) -> ast.expr | None:
    """The expression of an argument that is this value, or that the method which is called is one of."""
    call = place.node
    nodes = [*call.args, *(item.value for item in call.keywords)] if isinstance(call, ast.Call) else []
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        nodes.append(call.func.value)
    named = [node for node in nodes if isinstance(node, (ast.Name, ast.Attribute))]
    return next((node for node in named if same_object(resolved(place.frame.env, node) or UNKNOWN, value)), None)


def _model(makes: Place, made: Called) -> ast.expr | None:
    """How the function that an optimizer is made in names its model, or the parameters."""
    keyword = "params" if isinstance(made.result, OptStateVal) else "model"
    if makes.node is made.node:
        return given(made).node_of(0, keyword)
    node, frame = given(made).node_of(0, keyword), made.frame
    while frame is not makes.frame and frame.caller is not None and node is not None:
        root = _root(node)
        handed = _argument(frame, root.id) if root is not None else None
        own = root is not None and isinstance(handed, ast.Name) and handed.id == root.id  # `self.model` of both
        node, frame = handed if node is root else node if own else None, frame.caller
    model = given(made).get(0, keyword)
    return node if frame is makes.frame and node is not None else _given(makes, model) if model is not None else None


def _argument(frame: Frame, name: str) -> ast.expr | None:
    """What the call of a function gives for one of its parameters."""
    call, names = frame.call, syntax_parameters.positional_names(frame.func.node.args) if frame.func is not None else []
    if not isinstance(call, ast.Call) or name not in names or any(isinstance(item, ast.Starred) for item in call.args):
        return None
    place = names.index(name) - (frame.receiver is not None)
    if place < 0:
        return call.func.value if isinstance(call.func, ast.Attribute) else None
    return call.args[place] if place < len(call.args) else keyword_node(call, name)


def _root(model: ast.expr) -> ast.Name | None:
    while isinstance(model, ast.Attribute):
        model = model.value
    return model if isinstance(model, ast.Name) else None


def _is_set(module: Module, model: ast.expr) -> bool:
    """Whether a module assigns the attribute that a model is, other than where its owner is made."""
    if not isinstance(model, ast.Attribute):
        return False
    return attributes_stored(module.tree).count(model.attr) > 1


def _bound_by(makes: Place) -> ast.Name | ast.Attribute | None:
    """The only name that a statement binds to the optimizer, or the last one, where names are bound to names; or the
    attribute of an object.
    """
    bound = bound_to(makes.frame.module, makes.node)
    target = bound.target if bound is not None else None
    kept = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
    return target if isinstance(target, ast.Name) or (isinstance(target, ast.Attribute) and kept) else None


def _is_handed(node: ast.AST, call: ast.AST) -> bool:
    """Whether an expression is an argument of a call."""
    return isinstance(call, ast.Call) and any(
        item is node for item in (*call.args, *(each.value for each in call.keywords))
    )


def _is_read_once(makes: Place, updates: Place, target: ast.Name | ast.Attribute) -> bool:
    """Whether all that a function or a round of a loop does with an optimizer is to update it, once; what an update
    returns may take its name. What had the name before that, or before the loop, is another one.
    """
    module = makes.frame.module
    if isinstance(target, ast.Attribute):
        named = [
            node for node in own_nodes(makes.scope) if isinstance(node, ast.Attribute) and node.attr == target.attr
        ]
        read = attribute_reads(module.tree, target.attr)
        return len(named) == 2 and len(read) == 1 and any(node is read[0] for node in walk(updates.node))
    name, region = target.id, makes.loop or makes.scope
    nested = isinstance(enclosing(module, region, *LOOPS, *FUNCTIONS), LOOPS)
    first = getattr(region if makes.loop is not None else makes.node, "lineno", 0)
    reads = [node for node in reads_of(makes.scope, name) if nested or node.lineno >= first]
    statement = statement_of(updates.frame.module, updates.node)
    bound = assigned_in(region)[name] - (assigned_in(statement)[name] if statement is not None else 0)
    return bound == 1 and len(reads) == 1 and any(node is reads[0] for node in walk(updates.node))


def _remembers_nothing(event: Called) -> bool:
    node, tx = given(event).node_of(1, "tx"), given(event).get(1, "tx")
    node = (value_of(event.frame.module, node) or node) if node is not None else None
    if not isinstance(node, ast.Call):
        return isinstance(tx, TransformationVal) and tx.maker in STATELESS
    return canonical_of(event.frame.env, node.func) in STATELESS and len(node.args) + len(node.keywords) < 2
