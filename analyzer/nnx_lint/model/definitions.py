"""Definitions: what ``def`` and ``class`` statements bind, decorators included.

Invariants: a decorator that is not known makes a function unknown, but its body is still seen on its own; a class keeps
what its body says whatever decorates it, and notes that something unknown may have changed what its instances are to
JAX.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import annotations as annotated
from nnx_lint.model import events, records
from nnx_lint.model.callables import BoundMethod, FuncVal, PartialVal, Transformed
from nnx_lint.model.classes import ClassBase, UserClass, method_of
from nnx_lint.model.deferred import settled
from nnx_lint.model.fields import Field, specified_status
from nnx_lint.model.foreign import RETURNING
from nnx_lint.model.frames import Frame
from nnx_lint.model.modules import Env
from nnx_lint.model.unions import join
from nnx_lint.model.values import UNKNOWN, AliasVal, ClassVal, Const, Ext, FieldVal, Obj, TagVal, Value
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_rules.attributes import Declaration, declare

if TYPE_CHECKING:
    from nnx_lint.model.interpreter import Interpreter

# -- functions
# -----------------------------------------------------------------------------------------------------------------


def define_function(interp: Interpreter, frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Value:
    """Execute a ``def``: defaults and decorators now, the body later."""
    owner = frame.cls if frame.env.kind == "class" else None
    func = FuncVal(node, frame.module, type_scope(frame, node), owner)
    bind_defaults(interp, frame, func)
    interp.defined(func, frame)
    return decorate(interp, frame, func, node)


def is_declaration(func: FuncVal) -> bool:
    """Whether a function only says what it takes and returns: in a stub, a protocol, an abstract class."""
    node = func.node
    if isinstance(node, ast.Lambda):
        return False
    first = node.body[0].value if isinstance(node.body[0], ast.Expr) else None
    described = isinstance(first, ast.Constant) and isinstance(first.value, str)
    body = node.body[1:] if described else node.body
    if not body or isinstance(body[0], ast.Pass):
        structural = isinstance(func.cls, UserClass) and func.cls.structural
        return structural or not ABSTRACT.isdisjoint(func.decorators)
    return len(body) == 1 and isinstance(body[0], ast.Expr) and annotated.is_ellipsis(body[0].value)


ABSTRACT = frozenset({"abc.abstractmethod", "abc.abstractproperty"})


def type_scope(frame: Frame, node: ast.AST) -> Env:
    """The scope in which a definition stands: that of its own type parameters, if it has any."""
    parameters = getattr(node, "type_params", ())
    if not parameters:
        return frame.env
    scope = Env("types", frame.env)
    scope.names.update((item.name, UNKNOWN) for item in parameters)
    return scope


def bind_defaults(interp: Interpreter, frame: Frame, func: FuncVal) -> None:
    """Evaluate the defaults of parameters, and note what the names around a function stand for."""
    from nnx_lint.model.expressions import evaluate

    func.seen = dict(frame.env.names) if frame.func is not None else {}
    arguments = func.node.args
    parameters = syntax_parameters.positional(arguments)
    for parameter, default in zip(
        parameters[len(parameters) - len(arguments.defaults) :], arguments.defaults, strict=True
    ):
        func.defaults[parameter.arg] = evaluate(interp, frame, default)
    for parameter, keyword_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if keyword_default is not None:
            func.defaults[parameter.arg] = evaluate(interp, frame, keyword_default)


def rebound(func: FuncVal) -> dict[str, Value]:
    """The names around a function that have come to stand for something of another kind since it was defined. Who calls
    it may have done so before that, and after.
    """
    seen, func.seen = func.seen, {}
    scope = func.env.names if isinstance(func.env, Env) and func.env.kind == "function" else {}
    if isinstance(func.node, ast.Lambda) or not any(isinstance(part, ast.Nonlocal) for part in func.node.body):
        pairs = ((name, value, scope.get(name, value)) for name, value in seen.items())
        return {name: join(settled(old), settled(new)) for name, old, new in pairs if type(old) is not type(new)}
    return {}


KNOWN_DECORATORS = frozenset(
    {"property", "staticmethod", "classmethod", "functools.cached_property", "functools.cache", "functools.lru_cache"}
    | {"abc.abstractmethod", "abc.abstractproperty", "contextlib.contextmanager", "contextlib.asynccontextmanager"}
    | {"typing.override", "typing.overload", "typing.final"}
)
"""Decorators, with arguments or without, that leave the function what it is, but for what they are looked up for."""

TRANSPARENT = frozenset(
    {"jax.named_call", "jax.named_scope", "jax.default_matmul_precision", "jax.profiler.annotate_function"}
    | {"pydantic.computed_field", "typing.no_type_check", "warnings.deprecated"}
)
"""Decorators that change nothing that matters here, with or without arguments."""

STARTING = frozenset({"click.argument", "click.command", "click.option", "click.pass_context", "hydra.main"})
"""Decorators of a function that the program begins with: it is called without arguments, and gets what the command line
or a file says."""

TRANSPARENT_PACKAGES = frozenset({"beartype", "jaxtyping", "typeguard"})
"""Packages whose decorators are of that kind."""


def decorate(interp: Interpreter, frame: Frame, func: FuncVal, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Value:
    """Apply decorators, innermost first; those of the project are executed. One that is not known makes the function
    unknown, but its body is still seen on its own.
    """
    from nnx_lint.model.calls import apply_decorator
    from nnx_lint.model.expressions import evaluate

    value: Value = func
    names: list[str] = []
    for decorator in reversed(node.decorator_list):
        head = evaluate(interp, frame, decorator.func if isinstance(decorator, ast.Call) else decorator)
        name = head.name.removeprefix("builtins.") if isinstance(head, Ext) else ""
        if name in TRANSPARENT or name.partition(".")[0] in TRANSPARENT_PACKAGES:
            continue
        if name in STARTING:
            given = value.keywords if isinstance(value, PartialVal) else {"**": UNKNOWN}
            option = evaluate(interp, frame, decorator) if name == "click.option" else UNKNOWN
            told = {key: attr.value for key, attr in option.attrs.items()} if isinstance(option, Obj) else {}
            value = PartialVal(value.func if isinstance(value, PartialVal) else value, [], given | told)
            continue
        if name in KNOWN_DECORATORS:
            names.append(name)
            func.decorators = tuple(names)
            continue
        callee = evaluate(interp, frame, decorator) if isinstance(decorator, ast.Call) else head
        if isinstance(callee, BoundMethod) and isinstance(callee.receiver, FuncVal):
            value = callee.receiver.as_property(func if callee.name == "setter" else callee.receiver.setter)
        else:
            value = apply_decorator(interp, frame, callee, value, decorator)
    for changed in (func, value):
        if isinstance(changed, FuncVal) and not changed.is_property:
            changed.decorators = tuple(names)
    return value


# -- classes
# -------------------------------------------------------------------------------------------------------------------


def define_class(interp: Interpreter, frame: Frame, node: ast.ClassDef) -> Value:
    """Execute a class statement."""
    from nnx_lint.model.expressions import evaluate

    outer, frame.env = frame.env, type_scope(frame, node)
    try:
        cls = _class_with_bases(interp, frame, node)
    finally:
        frame.env = outer
    body = Frame(frame.module, cls.env, caller=None, level=frame.level, scope=frame.scope, cls=cls)
    own = decorators(interp, frame, cls, node)
    interp.block(body, node.body)
    collect_body(interp, body, cls, node)
    hook = next((found for base in cls.ancestors[1:] if (found := method_of(base, "__init_subclass__"))), None)
    if hook is not None:
        told = {each.arg: evaluate(interp, frame, each.value) for each in node.keywords if each.arg not in NOT_TOLD}
        interp.call_function(frame, hook[1], [], {key: told[key] for key in told if key}, node, receiver=ClassVal(cls))
    for decorator, where in reversed(own):
        result = interp.call_function(frame, decorator, [ClassVal(cls)], {}, where)
        cls.unknown_decorators |= not (isinstance(result, ClassVal) and result.cls is cls)
    if cls.is_pytree:
        interp.defined_class(cls)
    interp.publish(events.ClassDefined(frame, node, cls))
    return ClassVal(cls)


NOT_TOLD = frozenset({"metaclass", None})
"""Keywords of a class that its `__init_subclass__` does not get by their names."""


def _class_with_bases(interp: Interpreter, frame: Frame, node: ast.ClassDef) -> UserClass:
    from nnx_lint.model.expressions import evaluate

    bases: list[ClassBase] = []
    forms: set[str] = set()
    base_of_library = ""
    unresolved = frame.module.stub  # what the class really does is written elsewhere
    for base in node.bases:
        value = evaluate(interp, frame, base.value if isinstance(base, ast.Starred) else base)
        value = value.origin if isinstance(value, AliasVal) else value
        head = evaluate(interp, frame, base.value) if isinstance(base, ast.Subscript) else value
        if isinstance(value, ClassVal):
            bases.append(value.cls)
        elif isinstance(head, Ext) and head.name in HARMLESS_BASES | FIELD_BASES | records.MAKING:
            forms.add(head.name)
        else:
            forms |= {head.name} & records.BASES if isinstance(head, Ext) else set()
            unresolved = True
            base_of_library = head.name if isinstance(head, Ext) and head.name in RETURNING else base_of_library
    cls = UserClass(node, frame.module, tuple(bases), unresolved, Env("class", frame.env))
    cls.structural = "typing.Protocol" in forms
    inherited = (base.foreign for base in bases if isinstance(base, UserClass))
    cls.foreign = base_of_library or next(filter(None, inherited), "")
    made = (base.record for base in bases if isinstance(base, UserClass) and base.record in records.BASES)
    cls.record = next(iter(forms & records.BASES), "") or next(made, "")
    cls.named_tuple = "typing.NamedTuple" in forms or any(base.named_tuple for base in bases)
    cls.made_dataclass = not FIELD_BASES.isdisjoint(forms) or any(
        isinstance(base, UserClass) and base.made_by_base for base in bases
    )
    cls.made_by_base = cls.made_dataclass
    cls.registered_container = cls.named_tuple or cls.made_by_base
    takes_keywords = any(method_of(base, "__init_subclass__") for base in bases)
    for keyword in node.keywords:
        held = evaluate(interp, frame, keyword.value)
        if keyword.arg == "pytree" and isinstance(held, Const):
            cls.pytree_keyword = bool(held.value)
        elif keyword.arg == "metaclass":
            cls.dynamic |= not (isinstance(held, Ext) and held.name == "abc.ABCMeta")
        elif keyword.arg in {"pytree", None} or not takes_keywords:
            cls.dynamic = True
    return cls


def named_tuple(frame: Frame, name: str, names: list[str], call: ast.Call, defaults: int = 0) -> ClassVal:
    """The class that ``namedtuple("Name", ...)`` makes: that of a class statement with these fields, of which the last
    ones have defaults.
    """
    node = ast.copy_location(ast.ClassDef(name, [], [], [], []), call)
    cls = UserClass(node, frame.module, (), False, Env("class", frame.env))
    cls.registered_container = cls.named_tuple = True
    for place, item in enumerate(names):
        annotation = ast.copy_location(ast.Constant(...), call)
        target = ast.copy_location(ast.Name(item, ast.Store()), call)
        statement = ast.copy_location(ast.AnnAssign(target, annotation, None, 1), call)
        cls.fields[item] = Field(item, annotation, statement, None)
        cls.fields[item].has_default = place >= len(names) - defaults
    return ClassVal(cls)


ASKING_BASES = ("Callable", "Collection", "Container", "Hashable", "Iterable", "Iterator", "Sized")
"""Classes of ``collections.abc`` that ask for methods with underscores around their names, and bring no others."""

HARMLESS_BASES = frozenset(
    {"typing.Generic", "typing.Protocol", "abc.ABC", "builtins.object", "typing.NamedTuple"}
    | {f"{module}.{name}" for module in ("collections.abc", "typing") for name in ASKING_BASES}
)
"""Bases that add nothing to what we track."""

FIELD_BASES = frozenset({"flax.struct.PyTreeNode"})
"""Bases that make each class below them a dataclass and a JAX container."""

REGISTERING = frozenset(
    {
        "flax.struct.dataclass",
        "jax.tree_util.register_pytree_node_class",
        "jax.tree_util.register_dataclass",
        "jax.tree_util.register_pytree_with_keys_class",
        "jax.tree_util.register_static",
        "chex.dataclass",
    }
)
"""Decorators that make a class a JAX container."""


def decorators(interp: Interpreter, frame: Frame, cls: UserClass, node: ast.ClassDef) -> list[tuple[FuncVal, ast.expr]]:
    """Note what decorates a class. Gives the decorators of the project, which are called when the body has run."""
    from nnx_lint.model.expressions import evaluate

    own: list[tuple[FuncVal, ast.expr]] = []
    for decorator in node.decorator_list:
        value = evaluate(interp, frame, decorator.func if isinstance(decorator, ast.Call) else decorator)
        if isinstance(decorator, ast.Call) and not isinstance(value, Ext):
            value = evaluate(interp, frame, decorator)
        if isinstance(value, PartialVal) and isinstance(value.func, Ext) and not value.args:
            cls.preset.update(value.keywords)
            value = value.func
        if isinstance(value, Ext):
            name = value.name
            if name == "functools.partial" and isinstance(decorator, ast.Call) and decorator.args:
                inner = evaluate(interp, frame, decorator.args[0])
                name = inner.name if isinstance(inner, Ext) else name
            cls.decorators[name] = decorator
            given = decorator.keywords if isinstance(decorator, ast.Call) else []
            cls.record = cls.record or records.maker(name, {item.arg: item.value for item in given if item.arg})
            cls.registered_container = cls.registered_container or name in REGISTERING
            cls.registered_data = cls.registered_data or name == "nnx.register_data_type"
        elif isinstance(value, FuncVal):
            own.append((value, decorator))
        else:
            cls.unknown_decorators = True
    return own


def collect_body(interp: Interpreter, body: Frame, cls: UserClass, node: ast.ClassDef) -> None:
    """Sort the names of a class body into methods, fields and class-level values."""
    assigned: dict[str, ast.AST] = {}
    own: list[Declaration] = []
    keyword_only = cls.option("kw_only") is True
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            assigned.update((target.id, statement) for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, ast.ClassDef):
            assigned[statement.name] = statement
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            if statement.value is not None:
                assigned[name] = statement
            kind = annotated.special_form(interp, body, statement.annotation)
            if kind == "dataclasses.KW_ONLY":
                keyword_only = True
            if kind in {"typing.ClassVar", "dataclasses.KW_ONLY"}:
                continue
            value = body.env.names.get(name) if statement.value is not None else None
            field = cls.fields[name] = Field(name, statement.annotation, statement, value)
            field.init_only = kind == "dataclasses.InitVar"
            field.keyword_only = keyword_only
            status = annotated.declared_status(interp, body, statement.annotation)
            if status is not None:
                own.append(Declaration(name, status, "annotation"))
            if isinstance(value, (TagVal, FieldVal)):
                field.specify(value.keywords)
            elif isinstance(statement.value, ast.Call):
                field.specify_as_written(statement.value)
    for name, made in body.env.names.items():
        value = UNKNOWN if _is_descriptor(made) else made
        if name in cls.fields or isinstance(value, ClassVal):
            if name in assigned:
                cls.attributes[name] = (value, assigned[name])
        elif isinstance(value, (FuncVal, Transformed)) or name not in assigned:
            cls.methods[name] = value
        else:
            cls.attributes[name] = (value, assigned[name])
    for name, (value, _) in cls.attributes.items():
        status = specified_status(value)
        if status is not None:
            own.append(Declaration(name, status, "field"))
    inherited = [item.declared for item in cls.ancestors[1:] if isinstance(item, UserClass)]
    declared = declare(inherited, own)
    cls.declared, cls.conflicts = dict(declared.statuses), declared.conflicts
    if cls.record:
        records.settle(cls)


def _is_descriptor(value: Value) -> bool:
    """Whether an object in the body of a class says itself what the name gives: ``def __get__(self, obj, owner)``."""
    return isinstance(value, Obj) and isinstance(value.cls, UserClass) and value.cls.find("__get__") is not None
