"""Functions that are differentiated with respect to a parameter that they do not use (NNX222).

What such a function computes does not depend on the parameter, so all gradients are zero. It is a slip where the
function uses the captured object that the caller passes.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING, Any

from nnx_lint.diagnostics import Edit, Fix
from nnx_lint.model.callables import BoundMethod, FuncVal
from nnx_lint.model.crossing import literal_positions
from nnx_lint.model.events import Ran, RanInside
from nnx_lint.model.expressions import text_of
from nnx_lint.model.library import FilterVal
from nnx_lint.model.states import StateVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import Const, Obj, Value
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.autodiff.apart import sources_of_loss
from nnx_lint.rules.autodiff.gradients import of_one_number
from nnx_lint.rules.bindings import bound_to, values_in
from nnx_lint.rules.callees import called_value
from nnx_lint.rules.program import FUNCTIONS, ancestors, assigned_in, canonical_of, own_nodes, parameters_in
from nnx_lint.rules.traces.captures import holds
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.dotted import root_of
from nnx_lint.syntax.places import begin
from nnx_lint.syntax.walk import dumped, walk
from nnx_rules.api import OPTIMIZERS
from nnx_rules.rules import updates as rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Env


@judges(rules.GRADIENT_OF_CAPTURE, Ran, RanInside, when=of_one_number)
def gradient_of_capture(event: Ran, report: Reporter) -> None:
    scope, call = event.scope, event.node
    inner = scope.frame
    if inner is None or inner.func is None or scope.lifts or not isinstance(call, ast.Call):
        return
    func, bound = inner.func, [value for value, how in scope.held if how == "bound"]
    if scope.held and (len(scope.held) != 1 or bound != [inner.receiver]):
        return
    parameters = syntax_parameters.positional_names(func.node.args)
    receiver = parameters.pop(0) if bound and parameters else None
    names = names_read(func)
    for position in positions(scope.applied.keywords.get("argnums")):
        if position >= min(len(parameters), len(call.args), len(event.args)):
            continue
        parameter, given = parameters[position], call.args[position]
        used = not all(_is_for_nothing(inner.env, func, place) for place in names.get(parameter, ()))
        split = _split_before(event.frame, func, names, given) if not bound else None
        if split is not None and used:
            sources = sources_of_loss(func.node, inner.env)
            used = parameter in sources or split not in sources
        if used or parameter.startswith("_"):
            continue
        if isinstance(given, ast.Attribute):
            places = _read_instead(event.frame, func, given, (receiver, bound[0]) if receiver and bound else None)
            how = "is captured" if places else "comes by another parameter"
            places = places or _read_of_other(func, given, call, parameters)
            if places:
                report(
                    func.module,
                    places[0],
                    fix=partial(renamed, func, places, parameter),
                    name=ast.unparse(places[0]),
                    how=how,
                    parameter=parameter,
                    transform=scope.text,
                    mend=f"use `{parameter}` instead of `{ast.unparse(places[0])}`",
                )
            else:
                _read_further_in(event, report, position, parameter)
            continue
        name = None if bound else captured_instead(event.frame, func, given, event.args[position])
        if split is not None:
            mend = f"merge `{parameter}` inside of the function, and use that instead of `{split}`"
            slots: dict[str, Any] = {"parameter": parameter, "transform": scope.text, "mend": mend}
            report(func.module, names[split][0], name=split, how="is captured", **slots)
        elif name is not None and name not in parameters and name in names:
            report(
                func.module,
                names[name][0],
                fix=partial(renamed, func, names[name], parameter),
                name=name,
                how="is captured",
                parameter=parameter,
                transform=scope.text,
                mend=f"use `{parameter}` instead of `{name}`",
            )
        elif (name := _computed_before(event, func, names, position)) is not None:
            mend = f"compute `{name}` of `{parameter}`, inside of the function"
            place = names[name][0]
            slots = {"parameter": parameter, "transform": scope.text, "mend": mend}
            report(func.module, place, name=name, how="is captured", **slots)
        elif not bound and (
            (name := _captured_like_it(func, names, event.args[position])) is not None
            or (name := _annotated_like_it(func, names, parameter)) is not None
        ):
            mend = f"use `{parameter}` where the loss is to depend on it"
            slots = {"parameter": parameter, "transform": scope.text, "mend": mend}
            report(func.module, names[name][0], name=name, how="is captured", **slots)
        elif (name := _merged_before(event, parameters, position)) is not None and name in names:
            mend = f"merge `{parameter}` inside of the function, and use that instead of `{name}`"
            slots = {"parameter": parameter, "transform": scope.text, "mend": mend}
            report(func.module, names[name][0], name=name, how="comes by another parameter", **slots)
        else:
            _read_further_in(event, report, position, parameter)


def _read_further_in(event: Ran, report: Reporter, position: int, parameter: str) -> None:
    """A function that is called reads what the caller passes for a parameter, and reaches it in another way."""
    scope, given = event.scope, event.args[position]
    read = next((each for each in scope.reads if each[2] is given), None)
    if read is None and isinstance(given, Obj):  # it may be a part of what the function reads
        read = next((each for each in scope.reads if holds(each[2], given)), None)
    if read is not None:
        name = text_of(read[1])
        mend = f"use `{parameter}` instead of `{name}`, and hand it on to what the function calls"
        slots: dict[str, Any] = {"parameter": parameter, "transform": scope.text, "mend": mend}
        report(read[0].module, read[1], name=name, how="is captured", **slots)


def _is_for_nothing(env: Env, func: FuncVal, place: ast.Name) -> bool:
    """Whether a name is read only to merge it, or to hand it to a function, which then does nothing with it."""
    if _is_merged_for_nothing(func, place):
        return True
    call = next(ancestors(func.module, place), None)
    callee = called_value(env, call.func) if isinstance(call, ast.Call) and place in call.args else None
    if isinstance(callee, BoundMethod):
        callee = callee.func
    if not isinstance(call, ast.Call) or not isinstance(callee, FuncVal) or callee.decorators:
        return False
    names = syntax_parameters.positional_names(callee.node.args)[int(callee.cls is not None) :]
    index = call.args.index(place)
    certain = not any(isinstance(item, ast.Starred) for item in call.args[:index]) and index < len(names)
    return certain and names[index] not in names_read(callee)


def _captured_like_it(func: FuncVal, names: Mapping[str, object], given: Value | None) -> str | None:
    """A name for another object of the class of the one that a function is given: its target, or its copy."""
    value = present(given) if given is not None else None
    own = {*assigned_in(func.node), *parameters_in(func.node)}
    if not isinstance(value, Obj) or not value.cls.tracked:
        return None
    held = ((name, _captured(func, name)) for name in names if name not in own)
    objects = ((name, each[1]) for name, each in held if each is not None)
    return next((name for name, each in objects if isinstance(each, Obj) and each.cls is value.cls), None)


def _annotated_like_it(func: FuncVal, names: Mapping[str, object], parameter: str) -> str | None:
    """A name for what a function around this one gets as a module of the same annotation as the parameter has."""
    own = next((each for each in func.node.args.args if each.arg == parameter), None)
    around = next((each for each in ancestors(func.module, func.node) if isinstance(each, FUNCTIONS)), None)
    if own is None or own.annotation is None or around is None or parameter in names:
        return None
    kind, taken = dumped(own.annotation), {*assigned_in(func.node), *parameters_in(func.node)}
    alike = (each.arg for each in around.args.args if each.annotation is not None and dumped(each.annotation) == kind)
    return next((name for name in alike if name in names and name not in taken), None)


def _merged_before(event: Ran, parameters: Sequence[str], position: int) -> str | None:
    """The parameter that is given an object which the caller has merged, of a State that is given for another one."""
    state = event.args[position]
    of = present(state.of) if isinstance(state, StateVal) else None
    for parameter, given in zip(parameters, event.args, strict=False):
        value = present(given) if given is not None else None
        if isinstance(of, Obj) and isinstance(value, Obj) and value.merged and value.cls is of.cls:
            return parameter
    return None


def _is_merged_for_nothing(func: FuncVal, place: ast.Name) -> bool:
    """Whether a name is read for an object that is merged of it, which the function never uses."""
    call = next(ancestors(func.module, place), None)
    taken = bound_to(func.module, call) if isinstance(call, ast.Call) else None
    if taken is None or not isinstance(call, ast.Call) or not isinstance(taken.target, ast.Name):
        return False
    merged = canonical_of(func.module.env, call.func) == "nnx.merge"
    return merged and taken.target.id not in names_read(func)


def _read_of_other(
    func: FuncVal, given: ast.Attribute, call: ast.Call, parameters: Sequence[str]
) -> list[ast.Attribute]:
    """Where a function reads what its caller gives for a parameter as an attribute of another argument."""
    if not isinstance(given.value, ast.Name):
        return []
    owners = {
        parameter
        for parameter, value in zip(parameters, call.args, strict=False)
        if isinstance(value, ast.Name) and value.id == given.value.id and not assigned_in(func.node)[parameter]
    }
    named = (node for node in walk(func.node) if isinstance(node, ast.Attribute) and node.attr == given.attr)
    return [node for node in named if isinstance(node.value, ast.Name) and node.value.id in owners]


def positions(argnums: Value | None) -> tuple[int, ...]:
    """The positions with respect to which a function is differentiated, as far as they are known."""
    if isinstance(argnums, FilterVal) and argnums.name == "nnx.DiffState":
        argnums = argnums.args.get(0, "argnum") or Const(None)
    return tuple(item for item in literal_positions(argnums, default=(0,)) or () if item >= 0)


def names_read(func: FuncVal) -> dict[str, list[ast.Name]]:
    """The names that a function reads, with the places, in order."""
    found: dict[str, list[ast.Name]] = {}
    node = func.node
    for statement in [node.body] if isinstance(node, ast.Lambda) else node.body:
        for part in walk(statement):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                found.setdefault(part.id, []).append(part)
    return {name: sorted(places, key=begin) for name, places in found.items()}


def captured_instead(frame: Frame, func: FuncVal, given: ast.expr, value: Value | None) -> str | None:
    """The name by which a function captures what its caller passes to it."""
    if isinstance(given, ast.Name):
        theirs, ours = frame.env.lookup(given.id), _captured(func, given.id)
        if theirs is not None and ours is not None and theirs[0] is ours[0]:
            return given.id
    if not isinstance(value, Obj):
        return None
    return next((name for name in names_read(func) if (found := _captured(func, name)) and found[1] is value), None)


def _computed_before(event: Ran, func: FuncVal, names: Mapping[str, object], position: int) -> str | None:
    """A name that a function captures, for something that its caller computed of what it then passes to it."""
    assert isinstance(event.node, ast.Call)
    given, value = event.node.args[position], event.args[position]
    found = _bound_to_call(event.frame, func, names, given.id) if isinstance(given, ast.Name) else None
    if found is not None or not isinstance(value, StateVal):
        return found
    own = {*assigned_in(func.node), *parameters_in(func.node)}
    held = ((name, _captured(func, name)) for name in names if name not in own)
    return next((name for name, each in held if each is not None and _has_state(each[1], value)), None)


def _split_before(frame: Frame, func: FuncVal, names: Mapping[str, object], given: ast.expr) -> str | None:
    """The model that a function captures, and that its caller has split into what it then passes to it."""
    scope = frame.func.node if frame.func is not None else frame.module.tree
    values = values_in(scope).get(given.id, []) if isinstance(given, ast.Name) else []
    call = values[0] if len(values) == 1 else None
    of = call.args[0] if isinstance(call, ast.Call) and call.args else None
    if not isinstance(call, ast.Call) or not isinstance(of, ast.Name):
        return None
    if canonical_of(frame.env, call.func) != "nnx.split":
        return None
    captured = of.id in names and not assigned_in(func.node)[of.id] and not parameters_in(func.node)[of.id]
    return of.id if captured else None


def _has_state(model: Value, state: StateVal) -> bool:
    """Whether a State is that of a model, or of the one which a model was merged like."""
    of = present(state.of)
    return isinstance(model, Obj) and (of is model or of is model.template)


def _bound_to_call(frame: Frame, func: FuncVal, names: Mapping[str, object], given: str) -> str | None:
    """A name that a function captures, and that its caller bound to what a call made of what it has the name for."""
    scope = frame.func.node if frame.func is not None else frame.module.tree
    own = assigned_in(func.node).keys() | parameters_in(func.node).keys()
    for item in own_nodes(scope):
        call = item.value if isinstance(item, ast.Assign) else None
        if not isinstance(item, ast.Assign) or not isinstance(call, ast.Call):
            continue
        roots = {root_of(part) for part in (call.func, *call.args, *(each.value for each in call.keywords))}
        bound = [part.id for target in item.targets for part in walk(target) if isinstance(part, ast.Name)]
        known = given in roots and canonical_of(frame.env, call.func) not in OF_STRUCTURE
        ours = [(name, _captured(func, name), frame.env.lookup(name)) for name in bound if name in names]
        for name, held, theirs in ours if known else ():
            once = assigned_in(scope)[name] == 1 and name not in own
            if once and held is not None and theirs is not None and held[0] is theirs[0]:
                return name
    return None


OF_STRUCTURE = frozenset({"nnx.graphdef", *OPTIMIZERS, "builtins.len", "builtins.type"})
"""What asks a model for something that does not depend on its parameters."""


def _captured(func: FuncVal, name: str) -> tuple[object, Value] | None:
    from nnx_lint.model.modules import Env

    return func.env.lookup(name) if isinstance(func.env, Env) else None


def _read_instead(
    frame: Frame, func: FuncVal, given: ast.Attribute, bound: tuple[str, Value] | None
) -> list[ast.Attribute]:
    """Where a function reads the attribute that its caller passes to it, ``self.model``, of one captured object, or of
    the one that it is ``bound`` to as a method.
    """
    root: ast.expr = given
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return []
    theirs, ours = frame.env.lookup(root.id), _captured(func, root.id)
    if bound is not None:
        ours = (None, bound[1]) if bound[0] == root.id else None
    elif root.id in set(syntax_parameters.names(func.node.args)):
        return []
    if theirs is None or ours is None or theirs[1] is not ours[1] or not isinstance(ours[1], Obj):
        return []
    text = ast.dump(given)
    found = [node for node in walk(func.node) if isinstance(node, ast.Attribute) and ast.dump(node) == text]
    return sorted(found, key=begin)


def renamed(func: FuncVal, places: Sequence[ast.expr], parameter: str) -> Fix:
    """Use the parameter."""
    source = func.module.source
    return Fix(f"Use `{parameter}`", tuple(Edit(source.span(place), parameter) for place in places))
