"""What a function itself says of parameters that nobody annotated, by what it does with them.

A parameter is ``nnx.Rngs`` if it is handed to a layer as its streams, to one of the library or to one whose constructor
does so in turn, or to a function that does. It is ``nnx.Optimizer`` if it takes the step, and ``nnx.Module`` if that is
for it: ``optimizer.update(model, grads)`` as a statement, with the gradients that the function computed. A module is
also what NNX differentiates, or makes an optimizer for, and what is called besides. So is what a function hands to
another one that takes a step with it, and what a constructor keeps for methods of its class that do. A State is what
is merged; what comes out of that has names, and is known by what the function does with these. A number is what is
handed to a layer as one of its sizes, or counted to by a loop, as it is or in a sum or a product; and what a
constructor divides into whole parts.

Invariants: only such uses count as nothing else could take part in; a parameter that the function binds anew is left
out; what is read off a function holds none of its syntax.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from nnx_lint.model import expressions
from nnx_lint.model.callables import FuncVal, Transformed
from nnx_lint.model.classes import LibClass, UserClass, library_class, method_of
from nnx_lint.model.containers import Seq
from nnx_lint.model.frames import Frame
from nnx_lint.model.values import UNKNOWN, ClassVal, Const, Ext, Obj, Value
from nnx_lint.relevance import UPDATING
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name
from nnx_lint.syntax.walk import walk
from nnx_rules.layers import counts
from nnx_rules.transforms import COMPILING_ONLY, DIFFERENTIATING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nnx_lint.model.interpreter import Interpreter

    Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

RNGS = library_class("nnx.Rngs") or LibClass("nnx.Rngs", (), None)
OPTIMIZER = library_class("nnx.Optimizer") or LibClass("nnx.Optimizer", (), None)
OPTIMIZERS = OPTIMIZER, library_class("nnx.ModelAndOptimizer")
MODULE = library_class("nnx.Module") or LibClass("nnx.Module", (), None)
STATE = LibClass("nnx.State", (), None)
COUNT = LibClass("builtins.int", (), None)


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
        merging = func.module.mentions("nnx.merge(")
        nodes = walk(func.node) if names or merging else []
        bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        stands = {name: name for name in names - bound}
        if merging:
            stands |= {name: name for name in _merged_names(nodes) - names}
            known.update(dict.fromkeys(_merged_first(nodes, names & bound), STATE))
        around = () if isinstance(func.node, ast.Lambda) else func.node.decorator_list
        constructs = func.name == "__init__" and isinstance(func.cls, UserClass)
        seen = _Reading(interp, frame, _named_in(nodes), stands, names | bound, calls, around, constructs)
        seen.read(nodes, known)
        if constructs and isinstance(func.cls, UserClass) and func.module.mentions(*STEPPING):
            _read_methods(seen, func.cls, known)
    return known


STEPPING = "value_and_grad", "nnx.grad"
"""What stands in the text of a class that takes steps."""


def _read_methods(constructor: _Reading, cls: UserClass, known: dict[str, LibClass]) -> None:
    """What the methods of a class do with the parameters that its constructor keeps, each in one attribute."""
    kept = {
        text: values[0].id
        for text, values in constructor.named.assigned.items()
        if "." in text and len(values) == 1 and isinstance(values[0], ast.Name) and values[0].id in constructor.names
    }
    methods = [node for node in cls.node.body if isinstance(node, ast.FunctionDef) and node.name != "__init__"]
    for method in methods if kept else ():
        nodes = walk(method)
        inner = _named_in(nodes)
        stands = {text: name for text, name in kept.items() if text not in inner.assigned}
        both = _Named(inner.functions, {**constructor.named.assigned, **inner.assigned})
        bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        own = bound | set(syntax_parameters.names(method.args))
        constructor._replace(named=both, names=stands, own=own).read(nodes, known)


def _merged_names(nodes: list[ast.AST]) -> set[str]:
    """The names that a function binds once, to what it merges: ``model, optimizer = nnx.merge(graphdef, state)``."""
    targets = [node.targets[0] for node in nodes if isinstance(node, ast.Assign) and is_merge(node.value)]
    parts = [item for each in targets for item in (each.elts if isinstance(each, ast.Tuple) else [each])]
    stored = [node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
    return {item.id for item in parts if isinstance(item, ast.Name) and stored.count(item.id) == 1}


def _merged_first(nodes: list[ast.AST], names: set[str]) -> set[str]:
    """The parameters that a function merges before it binds them anew: ``state = nnx.state(model)``."""
    stored = [node for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
    given = [item for node in nodes if is_merge(node) for item in node.args[1:] if isinstance(item, ast.Name)]
    first = {name: min(node.lineno for node in stored if node.id == name) for name in names}
    return {item.id for item in given if item.id in names and item.lineno < first[item.id]}


def is_merge(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether an expression says that it merges something, by its text."""
    return isinstance(node, ast.Call) and _text(node.func) == "nnx.merge" and len(node.args) > 1


def merged(interp: Interpreter, frame: Frame, target: ast.expr, call: ast.Call) -> Value:
    """What a function that is given a GraphDef merges, by what it uses the names as that it gives to it."""
    module = frame.module
    known = uses_of(interp, Frame(module, module.env), frame.func) if frame.func is not None else {}
    if isinstance(target, ast.Tuple):
        parts = [merged(interp, frame, item, call) for item in target.elts]
        return Seq("tuple", parts, frame.level) if any(part is not UNKNOWN for part in parts) else UNKNOWN
    used = known.get(target.id) if isinstance(target, ast.Name) else None
    made = interp.instance(used, frame.level) if used not in (None, COUNT) else UNKNOWN
    if isinstance(made, Obj):
        made.origin = (module, call)
        given = [frame.env.names.get(item.id) for item in call.args[1:] if isinstance(item, ast.Name)]
        made.merged = () if call.keywords else tuple(given)
    return made


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
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for item, value in zip(target.elts, node.value.elts, strict=False):
                    named.assigned.setdefault(_text(item), []).append(value)
                continue
            last = target.elts[-1] if isinstance(target, ast.Tuple) and target.elts else target
            # Of several, the last one: values come before gradients, which may be of several models.
            for item in last.elts if isinstance(last, ast.Tuple) else [last]:
                if name := _text(item):
                    named.assigned.setdefault(name, []).append(node.value)
    return named


def _text(node: ast.AST) -> str:
    """A name, or an attribute of one."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


class _Reading(NamedTuple):
    """A function that is read: its names, the parameters in question by what stands for them, all names that are its
    own, how many calls have led to it, its decorators, and whether it is a constructor.
    """

    interp: Interpreter
    frame: Frame
    named: _Named
    names: Mapping[str, str]
    own: set[str]
    calls: int
    around: Sequence[ast.expr] = ()
    constructs: bool = False

    def read(self, nodes: list[ast.AST], known: dict[str, LibClass]) -> None:
        """Note what the nodes of a function say of the parameters."""
        called: set[str] = set()
        trained: set[str] = set()
        for node in nodes if self.names else ():
            if isinstance(node, ast.Call):
                called.add(_text(node.func))
                known.update(self.handed_on(node))
                known.update(self.made_with(node))
                trained |= self.trained(node, called)
                known.update(dict.fromkeys(self.states(node), STATE))
            elif isinstance(node, (ast.Assign, ast.Expr)):
                known.update(self.step(node))
            elif self.constructs and isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
                known.update(dict.fromkeys(self._factors(node), COUNT))
        known.update({name: MODULE for text, name in self.names.items() if text in trained and text in called})

    def meaning(self, node: ast.expr) -> Value:
        """What a name means outside of the function, or an attribute of one."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in self.own:
            return UNKNOWN
        return expressions.evaluate(self.interp, self.frame, node)

    def made_with(self, node: ast.Call) -> dict[str, LibClass]:
        """The parameters that a call hands to a layer as its streams or as its sizes, or to a loop as its end."""
        if is_name(node.func, "range"):
            return dict.fromkeys((name for item in node.args for name in self._factors(item)), COUNT)
        keywords = {item.arg: item.value for item in node.keywords if item.arg is not None}
        if not any(self._factors(item) for item in (*node.args, *keywords.values())):
            return {}
        if (local := self._local(node.func)) is not None:
            taken, parameters = dict.fromkeys(self._taken(local), RNGS), syntax_parameters.positional_names(local.args)
        else:
            callee = self.meaning(node.func)
            while isinstance(callee, Transformed):
                callee = callee.func
            if isinstance(callee, ClassVal) and isinstance(callee.cls, LibClass):
                taken = {"rngs": RNGS, **dict.fromkeys(counts(callee.cls.canonical), COUNT)}
                parameters = [*callee.cls.spec.init] if callee.cls.spec is not None else []
            else:
                found = method_of(callee.cls, "__init__") if isinstance(callee, ClassVal) else None
                func = found[1] if found is not None else callee
                if not isinstance(func, FuncVal) or func.wraps is not None:
                    return {}
                inner = self._uses_of(func)
                taken = {name: cls for name, cls in inner.items() if cls is RNGS or cls is COUNT}
                parameters = syntax_parameters.positional_names(func.node.args)[found is not None :]
        handed = {**dict(zip(parameters, node.args, strict=False)), **keywords}
        made: dict[str, LibClass] = {}
        for parameter, cls in taken.items():
            given = handed.get(parameter)
            if given is not None:
                names = self._factors(given) if cls is COUNT else {self._name(given)} - {""}
                made.update(dict.fromkeys(names, cls))
        return made

    def _factors(self, node: ast.expr) -> set[str]:
        """The parameters that an expression is a sum or product of; a single one, too."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.FloorDiv, ast.Mult, ast.Sub)):
            return self._factors(node.left) | self._factors(node.right)
        return {self._name(node)} - {""}

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
        stands = {name: name for name in names - bound}
        inner = _Reading(self.interp, self.frame, _named_in(nodes), stands, self.own | names | bound, self.calls)
        made = [inner.made_with(node) for node in nodes if isinstance(node, ast.Call)]
        return {name for each in made for name, cls in each.items() if cls is RNGS}

    def _uses_of(self, func: FuncVal) -> dict[str, LibClass]:
        """The same of a function that this one calls."""
        return uses_of(self.interp, Frame(func.module, func.module.env), func, self.calls + 1)

    def _name(self, node: ast.expr) -> str:
        return self.names.get(_text(node), "")

    def handed_on(self, call: ast.Call) -> dict[str, LibClass]:
        """The parameters that a call hands to a function of the project that takes a step with them."""
        plain = [self._name(item) for item in call.args]
        keywords = {item.arg: self._name(item.value) for item in call.keywords if item.arg is not None}
        func = self._callee(call.func) if any((*plain, *keywords.values())) else UNKNOWN
        while isinstance(func, Transformed):
            func = func.func
        if not isinstance(func, FuncVal) or func.wraps is not None:
            return {}
        inner = self._uses_of(func)
        parameters = syntax_parameters.positional_names(func.node.args)
        handed = {**dict(zip(parameters, plain, strict=False)), **keywords}
        stepping = {parameter: cls for parameter, cls in inner.items() if cls is not RNGS and cls is not COUNT}
        return {name: stepping[parameter] for parameter, name in handed.items() if name and parameter in stepping}

    def _callee(self, func: ast.expr) -> Value:
        """What a call calls, also by the name of what was compiled in this function: ``step = nnx.jit(train_step)``."""
        made = self.named.assigned.get(_text(func), [])
        compiled = made[0] if len(made) == 1 and isinstance(made[0], ast.Call) and len(made[0].args) == 1 else None
        if isinstance(compiled, ast.Call) and isinstance(known := self.meaning(compiled.func), Ext):
            return self.meaning(compiled.args[0]) if known.name in COMPILING_ONLY else UNKNOWN
        return self.meaning(func)

    def step(self, statement: ast.Assign | ast.Expr) -> dict[str, LibClass]:
        """The parameters that a statement steps, and steps for, with gradients that the function computes; also where
        the two arguments are exchanged, or a compiled function gives what it calls an optimizer the gradients alone.
        """
        call = statement.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "update":
            return {}
        optimizer, given = self._name(call.func.value), [_text(item) for item in call.args]
        if not optimizer or not given or len(given) > 2 or not all(given):
            return {}
        of = [self._gradients(text) for text in given]
        own = self.frame.module.project.heirs.possible(UPDATING)  # such an optimizer may take anything
        if len(given) == 1:
            named = "opt" in optimizer.lower() and isinstance(statement, ast.Expr)
            # It was merged, if it was assigned; and a file that makes optimizers tells which kind it has.
            is_node = optimizer in self.named.assigned or self.frame.module.mentions("nnx.Optimizer(")
            is_node = is_node or self._is_compiled()
            return {optimizer: OPTIMIZER} if of[0] and named and not own and is_node else {}
        one, other = given
        if isinstance(statement, ast.Assign):  # `updates, state = tx.update(grads, state)`
            return {optimizer: OPTIMIZER} if one in of[1] else {}
        if not of[1] and (own or other not in of[0]):
            return {}
        model = self.names.get(one if of[1] else other)
        return {optimizer: OPTIMIZER, **({model: MODULE} if model else {})}

    def _gradients(self, text: str, depth: int = 3) -> set[str]:
        """With respect to what the gradients in a name are, also clipped or summed ones."""
        found: set[str] = set()
        for value in self.named.assigned.get(text, ()):
            found |= self._differentiated(value)
            if depth and not found and isinstance(value, (ast.Call, ast.IfExp)):
                inner = {node.id for node in walk(value) if isinstance(node, ast.Name)} - {text}
                found.update(*(self._gradients(each, depth - 1) for each in inner if each in self.named.assigned))
        return found

    def states(self, call: ast.Call) -> set[str]:
        """The parameters that a call merges."""
        return {name for item in call.args[1:] if (name := self._name(item))} if is_merge(call) else set()

    def _is_compiled(self) -> bool:
        """Whether NNX compiles the function, so that what it gets are objects of NNX, or data."""
        made = (self.meaning(item.func if isinstance(item, ast.Call) else item) for item in self.around)
        return any(isinstance(item, Ext) and item.name == "nnx.jit" for item in made)

    def trained(self, call: ast.Call, called: set[str]) -> set[str]:
        """What a call makes an optimizer for, or differentiates by NNX; a parameter that the function calls which is
        differentiated is noted as called, for what is differentiated.
        """
        given = [_text(item) for item in call.args]
        if not any(text in self.names for text in given):
            return set()
        made = self.meaning(call.func)
        if isinstance(made, ClassVal) and made.cls in OPTIMIZERS:
            return {given[0]}
        derivative = self._derivative(call.func)
        if derivative is None or not derivative.row.startswith("nnx."):
            return set()
        found = {place: text for place, text in enumerate(given) if place in derivative.places}
        if derivative.inside is not None:
            parameters = syntax_parameters.positional_names(derivative.inside.args)
            names = {_text(node.func) for node in walk(derivative.inside) if isinstance(node, ast.Call)}
            called |= {text for place, text in found.items() if not names.isdisjoint(parameters[place : place + 1])}
        return set(found.values())

    def _differentiated(self, value: ast.expr) -> set[str]:
        """With respect to what an expression computes gradients, if it does."""
        made = self._derivative(value.func) if isinstance(value, ast.Call) and value.args else None
        if made is None or not isinstance(value, ast.Call):
            return set()
        return {_text(item) for place, item in enumerate(value.args) if place in made.places} - {""}

    def _derivative(self, func: ast.expr) -> _Derivative | None:
        """What an expression differentiates that is called for gradients."""
        text = _text(func)
        defined = self.named.functions.get(text, [])
        if len(defined) == 1 and len(defined[0].decorator_list) == 1:
            around = defined[0].decorator_list[0]
            return self._made_by(around, around if isinstance(around, ast.Call) else None, defined[0])
        made = next(iter(self.named.assigned.get(text, ())), func)
        if isinstance(made, ast.Call):
            return self._made_by(made.func, made, self._defined(made.args[0]) if made.args else None)
        known = self.meaning(made)
        if isinstance(known, Transformed) and known.applied.row.name in DIFFERENTIATING:
            inside = known.func.node if isinstance(known.func, FuncVal) else None
            return _Derivative(known.applied.row.name, _places(known.applied.keywords.get("argnums")), inside)
        return None

    def _made_by(self, transform: ast.expr, options: ast.Call | None, inside: Function | None) -> _Derivative | None:
        """The derivative of a function by what makes it, where that differentiates."""
        while isinstance(transform, ast.Call):  # @functools.partial(nnx.value_and_grad, has_aux=True)
            transform = transform.args[0] if transform.args else transform.func
        made = self.meaning(transform)
        if not isinstance(made, Ext) or made.name not in DIFFERENTIATING:
            return None
        given = [item.value for item in options.keywords if item.arg == "argnums"] if options is not None else []
        return _Derivative(made.name, _written_places(given[0]) if given else FIRST, inside)

    def _defined(self, node: ast.expr) -> Function | None:
        """The function that an expression stands for, where the project defines it."""
        defined = self.named.functions.get(_text(node), [])
        if isinstance(node, ast.Lambda) or len(defined) == 1:
            return node if isinstance(node, ast.Lambda) else defined[0]
        found = self.meaning(node)
        return found.node if isinstance(found, FuncVal) else None


class _Derivative(NamedTuple):
    """What gives gradients: the transform, by which arguments it differentiates, and the function, if it is known."""

    row: str
    places: frozenset[int]
    inside: Function | None


FIRST = frozenset({0})


def _places(argnums: Value | None) -> frozenset[int]:
    """The positions that a value of ``argnums`` names, as far as they are known."""
    if argnums is None:
        return FIRST
    parts = argnums.items if isinstance(argnums, Seq) else [argnums]
    return frozenset(part.value for part in parts if isinstance(part, Const) and type(part.value) is int)


def _written_places(argnums: ast.expr) -> frozenset[int]:
    """The same of an expression: ``1``, ``(0, 1)``, ``nnx.DiffState(0, nnx.Param)``."""
    parts = argnums.elts if isinstance(argnums, (ast.Tuple, ast.List)) else [argnums]
    inner = [part.args[0] if isinstance(part, ast.Call) and part.args else part for part in parts]
    return frozenset(part.value for part in inner if isinstance(part, ast.Constant) and type(part.value) is int)
