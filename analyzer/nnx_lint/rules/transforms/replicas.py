"""Replicas that drift apart under ``shard_map`` (a part of NNX426): gradients that are not averaged over the devices,
and a loss of each part of the batch that is to come back as one.

Each device has a part of the batch, and so gradients of its own. What is made of them differs from device to device,
and a spec without the axis says that it is the same on all. JAX sees that itself, and adds gradients up, where it keeps
track of what varies; with ``check_vma=False`` it does not, and each device trains a model for itself.

Invariants: only gradients are followed, from the statement that takes them on, through what certainly keeps what is
different in them: optimizers, functions over trees that say no collective, arithmetic. A loss that says a collective
may have averaged already. A function with branches or loops is not judged. Where JAX keeps track, which refuses such a
result, only functions are judged that say no collective at all, and call nothing of which that is not known.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.containers import Seq
from nnx_lint.model.events import TransformApplied
from nnx_lint.model.meshes import SpecVal, names_in
from nnx_lint.model.values import Const, Obj, Value
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.bindings import pairs_of
from nnx_lint.rules.program import assigned_in, canonical_of, certain_block, in_test, resolved
from nnx_lint.rules.transforms.collectives import COLLECTIVES
from nnx_lint.syntax.binding import assigned_names
from nnx_lint.syntax.binding import names_in as names_standing_in
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.parameters import positional_names
from nnx_lint.syntax.walk import children, walk
from nnx_rules.rules import transforms as rules
from nnx_rules.transforms import DIFFERENTIATING, TREE_MAPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from nnx_lint.model.modules import Env, Module

MAPS = frozenset({"jax.shard_map", "jax.experimental.shard_map.shard_map", "nnx.shard_map"})

AVERAGING = COLLECTIVES.keys() - {"jax.lax.all_gather", "jax.lax.axis_index"}
"""Functions that make one value of those of all devices, or may; one that gathers gives back gradients for each."""

OWN = ("builtins.", "jax.", "nnx.", "flax.", "optax.", "functools.", "einops.")
"""Where functions come from that join nothing unless they are listed."""

OF_FORM = frozenset({"shape", "ndim", "dtype", "size", "len", "zeros_like", "ones_like", "full_like", "eval_shape"})
"""What asks for the shape of an array only."""

CHECKS = ("check_vma", "check_rep")
"""The options by which JAX keeps track of what varies, by their names over time."""


def runs_unchecked(event: TransformApplied) -> bool:
    """Whether a function runs on each device for itself, and nothing keeps track of what varies."""
    options = (event.applied.keywords.get(name) for name in CHECKS)
    unchecked = any(isinstance(each, Const) and each.value is False for each in options)
    return event.applied.row.name in MAPS and unchecked and isinstance(event.func, FuncVal)


def runs_checked(event: TransformApplied) -> bool:
    """Whether a function runs on each device for itself, and JAX keeps track of what varies."""
    options = (event.applied.keywords.get(name) for name in CHECKS)
    checked = all(each is None or (isinstance(each, Const) and each.value is True) for each in options)
    return event.applied.row.name in MAPS and checked and isinstance(event.func, FuncVal)


@judges(rules.VARYING_WITHOUT_AXIS, TransformApplied, when=runs_unchecked)
@judges(rules.VARYING_WITHOUT_AXIS, TransformApplied, when=runs_checked)
def replicas_drift_apart(event: TransformApplied, report: Reporter) -> None:
    func, keywords = event.func, event.applied.keywords
    if not isinstance(func, FuncVal) or not isinstance(func.node, ast.FunctionDef) or in_test(event.frame):
        return
    parameters = positional_names(func.node.args)
    given = _axes_of(keywords.get("in_specs"), len(parameters))
    if given is None or func.cls is not None:
        return
    specs = dict(zip(parameters, given, strict=True))
    axes = frozenset(axis for names in given for axis in names)
    kind = _Drift if runs_unchecked(event) else _Parts
    one = len(axes) == 1  # else a value may differ along one of them only
    found = kind(func, specs, axes).followed() if one or (axes and kind is _Drift) else None
    if found is None:
        return
    results, written = found
    returned = _axes_of(keywords.get("out_specs"), len(results))
    places = [(node, names) for node, names in zip(results, returned or (), strict=False) if node is not None]
    for node, names in [*places, *((node, frozenset[str]()) for node in written)]:
        missing = sorted(axes - names)
        if missing:
            shown = " and ".join(f"`{axis}`" for axis in missing)
            path = func.module.source.segment(node)
            report(func.module, node, transform=event.applied.text, axes=shown, path=path, spec="P()")
            return


def _axes_of(specs: Value | None, count: int) -> list[frozenset[str]] | None:
    """The axes that each of so many values is divided over; one spec is for all of them."""
    each = specs.items if isinstance(specs, Seq) and specs.exact else [specs] * count
    if len(each) != count:
        return None
    found: list[frozenset[str]] = []
    for spec in each:
        names = [names_in(entry) for entry in spec.entries] if isinstance(spec, SpecVal) else [None]
        if any(item is None for item in names):
            return None
        found.append(frozenset(axis for item in names for axis in item or ()))
    return found


def _one_by_one(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block, with those of the blocks in it that have to run in their place."""
    for statement in body:
        inner = certain_block(statement)
        yield from _one_by_one(inner) if inner is not None else (statement,)


class _Drift:
    """What a function makes of gradients that each device has for itself, statement by statement."""

    def __init__(self, func: FuncVal, specs: Mapping[str, frozenset[str]], axes: frozenset[str]) -> None:
        self.module: Module = func.module
        self.func = func
        self.env: Env = func.module.env
        self.data = {name for name, own in specs.items() if own & axes}
        self.replicated = specs.keys() - self.data
        self.local: dict[str, ast.AST] = {}
        self.differs: set[str] = set()

    def followed(self) -> tuple[list[ast.expr | None], list[ast.expr]] | None:
        """For each result the expression, where it differs, and what is written into a replicated object."""
        written: list[ast.expr] = []
        body = self.func.node.body
        for statement in _one_by_one(body) if isinstance(body, list) else ():
            if isinstance(statement, ast.FunctionDef):
                self.local[statement.name] = statement
            elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
                self._assign(statement)
            elif isinstance(statement, ast.Return):
                value = statement.value
                elements = value.elts if isinstance(value, ast.Tuple) else [value]
                return [each if each is not None and self._is_different(each) else None for each in elements], written
            elif isinstance(statement, ast.Expr):
                written += self._written(statement.value)
            else:
                return None
        return [], written

    def _assign(self, statement: ast.Assign | ast.AnnAssign) -> None:
        for target, value in pairs_of(statement):
            gradients = self._gradients(target, value)
            if gradients is not None:
                self.differs -= {part.id for part in walk(target) if isinstance(part, ast.Name)}
                self.differs |= gradients
                continue
            names = assigned_names([statement])
            if isinstance(value, ast.Lambda) and isinstance(target, ast.Name):
                self.local[target.id] = value
            if self._is_different(value):
                self.differs |= names
            else:
                self.differs -= names
            if self._reads(value, self.data):
                self.data |= names

    def _gradients(self, target: ast.expr, value: ast.expr) -> set[str] | None:
        """The names that gradients of a part of the batch get, if that is what a statement computes."""
        taken = value.func if isinstance(value, ast.Call) else None
        name = canonical_of(self.env, taken.func) if isinstance(taken, ast.Call) else None
        if name not in DIFFERENTIATING or not isinstance(taken, ast.Call) or not taken.args:
            return None
        loss = taken.args[0]
        code = self.local.get(loss.id) if isinstance(loss, ast.Name) else loss
        known = resolved(self.env, loss) if code is None else None
        code = known.node if isinstance(known, FuncVal) else code
        if code is None or self._averages(code):
            return set()
        elements = target.elts if isinstance(target, ast.Tuple) else [target]
        place = 1 if name.endswith("value_and_grad") else 0
        own = elements[place] if len(elements) == 2 else target
        different = self._reads(code, self.data) or self._reads(value, self.data)
        return {own.id} if different and isinstance(own, ast.Name) else set()

    def _is_different(self, value: ast.expr) -> bool:
        """Whether an expression certainly keeps what is different in gradients."""
        if isinstance(value, ast.Name):
            return value.id in self.differs
        if isinstance(value, ast.BinOp):
            return self._is_different(value.left) or self._is_different(value.right)
        if not isinstance(value, ast.Call) or not any(map(self._is_different, value.args)):
            return False
        name = canonical_of(self.env, value.func) or ""
        if name in TREE_MAPS:
            code = self.local.get(value.args[0].id) if isinstance(value.args[0], ast.Name) else value.args[0]
            return isinstance(code, (ast.Lambda, ast.Attribute)) and not self._averages(code)
        method = value.func.attr if isinstance(value.func, ast.Attribute) else ""
        return name == "optax.apply_updates" or (not name and method == "update")

    def _written(self, call: ast.expr) -> list[ast.expr]:
        """The gradients that an optimizer is given which is the same on all devices."""
        func = call.func if isinstance(call, ast.Call) else None
        owner = func.value if isinstance(func, ast.Attribute) and func.attr == "update" else None
        if not isinstance(call, ast.Call) or not isinstance(owner, ast.Name) or owner.id not in self.replicated:
            return []
        return [each for each in call.args if self._is_different(each)]

    def _reads(self, code: ast.AST, names: Iterable[str]) -> bool:
        return not {*names}.isdisjoint(names_standing_in(code))

    def _averages(self, code: ast.AST, depth: int = 3) -> bool:
        """Whether a function, or one of the project that it calls, says a collective."""
        for node in walk(code):
            called = canonical_of(self.env, node) if isinstance(node, (ast.Name, ast.Attribute)) else None
            if called in AVERAGING:
                return True
            inner = resolved(self.env, node.func) if isinstance(node, ast.Call) and depth else None
            if isinstance(inner, FuncVal) and self._averages(inner.node, depth - 1):
                return True
        return False


class _Parts(_Drift):
    """What a function without a collective computes of the part of the data that a device has."""

    def __init__(self, func: FuncVal, specs: Mapping[str, frozenset[str]], axes: frozenset[str]) -> None:
        super().__init__(func, specs, axes)
        self.differs = {*self.data}

    def followed(self) -> tuple[list[ast.expr | None], list[ast.expr]] | None:
        return super().followed() if not self._averages(self.func.node) and self._is_known(self.func.node) else None

    def _is_known(self, code: ast.AST) -> bool:
        """Whether all that a function calls is known not to join what the devices have."""
        names = {*assigned_in(code), *(part.name for part in walk(code) if isinstance(part, ast.FunctionDef))}
        for call in walk(code):
            func = call.func if isinstance(call, ast.Call) else None
            if isinstance(func, ast.Name) and func.id not in names:
                known = resolved(self.env, func)
                if not isinstance(known, (FuncVal, Obj)) and not (canonical_of(self.env, func) or "").startswith(OWN):
                    return False
            elif isinstance(func, ast.Attribute) and not (canonical_of(self.env, func) or OWN[0]).startswith(OWN):
                return False
        return True

    def _gradients(self, target: ast.expr, value: ast.expr) -> set[str] | None:
        """JAX adds up the gradients of what is the same on all devices; the value of the function is that of a part."""
        taken = value.func if isinstance(value, ast.Call) else None
        name = canonical_of(self.env, taken.func) if isinstance(taken, ast.Call) else None
        if name not in DIFFERENTIATING:
            return None
        elements = target.elts if isinstance(target, ast.Tuple) else []
        first = elements[0] if len(elements) == 2 and name.endswith("value_and_grad") else None
        return {first.id} if isinstance(first, ast.Name) and self._is_different(value) else set()

    def _is_different(self, value: ast.expr) -> bool:
        """Whether an expression is computed of data that is different on each device, and not of its shape alone."""
        todo: list[ast.AST] = [value]
        seen = set[str]()
        for node in todo:
            if isinstance(node, ast.Attribute) and node.attr in OF_FORM:
                continue
            if isinstance(node, ast.Call) and last_name(node.func) in OF_FORM:
                continue
            if isinstance(node, ast.Name) and node.id in self.differs:
                return True
            if isinstance(node, ast.Name) and node.id in self.local and node.id not in seen:
                seen.add(node.id)
                todo.append(self.local[node.id])
            todo.extend(children(node))
        return False
