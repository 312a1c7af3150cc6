"""Instances of classes: what the constructor makes of them.

The *model* of a class is one abstract instance on which ``__init__`` ran with parameters of unknown values (or of
their annotated types). Every other instance takes its attributes from the model, at its own trace level.

Invariants: a class is modelled once; modelling a class that is being modelled (recursive structures) gives an
instance without attributes.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model import annotations as annotated
from nnx_lint.model import events, parameters, records
from nnx_lint.model.attributes import ANY_NAME, attribute_of, untagged
from nnx_lint.model.callables import FuncVal, LibraryFunction
from nnx_lint.model.classes import ClassBase, LibClass, UserClass, method_of
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.frames import Frame
from nnx_lint.model.later import forget_shapes
from nnx_lint.model.modules import Env
from nnx_lint.model.unions import options
from nnx_lint.model.values import UNKNOWN, Assignment, Attr, ClassVal, Const, FieldVal, Obj, TagVal, Value
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.dotted import last_name
from nnx_lint.syntax.walk import remembered, walk
from nnx_rules.attributes import decide

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.calls import Arguments
    from nnx_lint.model.fields import Field
    from nnx_lint.model.interpreter import Interpreter


def instance_of(interp: Interpreter, cls: ClassBase, level: int) -> Obj:
    """An instance of a class, of which only the class is known."""
    obj = Obj(cls, level)
    if isinstance(cls, UserClass):
        obj.template = model_of(interp, cls)
    elif isinstance(cls, LibClass):
        from nnx_lint.model.members import library_instance

        library_instance(obj, None)
    return obj


def model_of(interp: Interpreter, cls: ClassBase, *, fresh: bool = False) -> Obj:
    """The model of a class; with ``fresh`` an instance at level 0 that may be changed without changing the model."""
    if not isinstance(cls, UserClass):
        return instance_of(interp, cls, 0)
    model = interp.model(cls)
    if not fresh:
        return model
    obj = Obj(cls, model.level)
    obj.template = model
    return obj


def build_model(interp: Interpreter, cls: UserClass, obj: Obj, given: dict[str, Value] | None = None) -> None:
    """Run the constructor of a class on its model, or on another instance with the arguments that are ``given``."""
    frame = Frame(cls.module, cls.module.env)
    frame.initializing = obj
    obj.constructing = True
    found = cls.find("__init__")
    if cls.generated_init:
        dataclass_attributes(interp, frame, cls, obj, given)
        post = method_of(cls, "__post_init__") or method_of(cls, "__attrs_post_init__")
        if post is not None:
            _post_init(interp, frame, cls, obj, post[1])
    elif found is not None and isinstance(found[1], FuncVal):
        run_initializer(interp, frame, obj, found[1], given)
    elif found is not None or cls.replaced_init:
        obj.attrs[ANY_NAME] = Attr(UNKNOWN)
    prepares = None if cls.is_pytree else _preparing(cls)
    if prepares is not None:
        run_initializer(interp, frame, obj, prepares)
    obj.constructing = False
    forget_shapes(obj)
    made = events.Constructed if cls.is_pytree else events.PlainConstructed
    interp.publish(made(frame, cls.node, cls, obj))


def _preparing(cls: UserClass) -> FuncVal | None:
    """The method that makes what the tests of a class find on ``self``: the one of ``unittest``, or that of pytest."""
    found = method_of(cls, "setUp") or (method_of(cls, "setup_method") if cls.name.startswith("Test") else None)
    if found is None or found[1].name != "setUp":
        return found[1] if found is not None else None
    cases = (last_name(base).endswith("TestCase") for item in cls.lineage for base in item.node.bases)
    return found[1] if any(cases) else None


def run_initializer(
    interp: Interpreter, frame: Frame, obj: Obj, func: FuncVal, given: dict[str, Value] | None = None
) -> None:
    """Run a method of the constructor on an instance, as an entry if no arguments are given."""
    interp.entered.add(id(func.node))
    env = Env("function", func.env, func)  # type: ignore[arg-type]
    inner = Frame(func.module, env, func=func, caller=frame, call=None, level=0, cls=func.cls, receiver=obj)
    inner.initializing = obj
    if func.wraps is not None:
        parameters.bind(interp, inner, func, [obj], {"**": UNKNOWN, **(given or {})})
    elif given is None:
        parameters.bind_entry(interp, inner, func, obj)
    else:
        parameters.bind(interp, inner, func, *_in_place(func, obj, given))
    interp.body(inner, func)


def _in_place(func: FuncVal, obj: Obj, given: dict[str, Value]) -> tuple[list[Value | None], dict[str, Value]]:
    """Arguments by name, as a call gives them: with a rest of positional ones, all before it are positional, too."""
    arguments = func.node.args
    rest = given.get(arguments.vararg.arg) if arguments.vararg is not None else None
    if not isinstance(rest, Seq):
        return [obj], given
    names = syntax_parameters.positional_names(arguments)[1:]
    before = [given.get(name, UNKNOWN) for name in names]
    named = {name: value for name, value in given.items() if name not in names and value is not rest}
    return [obj, *before, *rest.items], named


def dataclass_attributes(
    interp: Interpreter, frame: Frame, cls: UserClass, obj: Obj, given: dict[str, Value] | None = None
) -> None:
    """The attributes that a generated ``__init__`` assigns: one for each field, of the annotated type if it is not
    among the arguments that are given.
    """
    for field in cls.all_fields():
        if field.init_only or field.stays_in_class:
            continue
        owner = _owner(cls, field)
        value = (given or {}).get(field.name)
        if value is None and (given is not None or field.init is not True):
            value = _default(interp, frame, field)
        if value is None and field.init is False:
            continue
        value = value or _annotated(interp, owner, field)
        declared = cls.declared_status(field.name)
        verdict = decide(declared, value.facts(), checked=cls.checked, declared=True)
        attr = obj.attrs[field.name] = Attr(value, declared)
        attr.assignments = (Assignment(value, verdict.status, owner.module, field.node, None, (), verdict.broken),)


def _owner(cls: UserClass, field: Field) -> UserClass:
    """The class whose body has the field."""
    owners = (item for item in cls.lineage if item.fields.get(field.name) is field)
    return next(owners, cls)


def _annotated(interp: Interpreter, owner: UserClass, field: Field) -> Value:
    return annotated.value_of(interp, Frame(owner.module, owner.env, cls=owner), field.annotation)


def _default(interp: Interpreter, frame: Frame, field: Field) -> Value | None:
    """What a field holds that nobody gave; ``None`` if it has no default that is known."""
    from nnx_lint.model.calls import Arguments, invoke

    if not isinstance(field.value, (FieldVal, TagVal)):
        return field.value
    factory = field.value.keywords.get("default_factory")
    if factory is not None:
        return invoke(interp, frame, factory, Arguments(field.node, [], {}, []), field.node, field.name)
    return field.value.keywords.get("default")


def _post_init(interp: Interpreter, frame: Frame, cls: UserClass, obj: Obj, func: FuncVal) -> None:
    """Run ``__post_init__`` with what the generated ``__init__`` only hands on."""
    handed = [field for field in cls.all_fields() if field.init_only]
    parameters = syntax_parameters.positional_names(func.node.args)[1:]
    values = [_annotated(interp, _owner(cls, field), field) for field in handed]
    given = dict(zip(parameters, values, strict=False)) if len(parameters) == len(handed) and handed else None
    run_initializer(interp, frame, obj, func, given)


def instantiate(interp: Interpreter, frame: Frame, cls: object, args: Arguments, node: ast.AST) -> Value:
    """Create an instance of a class."""
    from nnx_lint.model.members import construct_library, inherit

    if isinstance(cls, LibClass):
        return construct_library(interp, frame, cls, args, node)
    if not isinstance(cls, UserClass):
        return UNKNOWN
    if cls.record == records.TYPED_DICT and not args.positional:
        pairs = [(Const(name), value) for name, value in args.keywords.items() if name != "**"]
        return DictVal(pairs, frame.level, exact=not args.starred, node=node)
    if not cls.is_pytree and not cls.is_variable and cls.is_open:
        return UNKNOWN
    made = _made(interp, frame, cls, args, node)
    if made is not None:
        return made
    obj = instance_of(interp, cls, frame.level)
    obj.node = node
    obj.origin = (frame.module, node)
    obj.args = bound_arguments(cls, args)
    if cls.is_variable:
        obj.args = {"value": args.get(0, "value") or UNKNOWN}
        return obj
    _substitute(interp, obj, args)
    if cls.find("__init__") is None:
        inherit(frame, obj, args)
    initializer = method_of(cls, "__init__")
    if frame.scope and initializer is not None:
        interp.construct_under(frame, instance_of(interp, cls, frame.level), initializer[1], args)
    elif initializer is not None and not cls.is_pytree and _hands_over_model(args):
        interp.call_function(frame, initializer[1], args.positional, args.keywords, node, receiver=obj)
    return interp.constructed(obj)


def _hands_over_model(args: Arguments) -> bool:
    """Whether a call gives a model that was seen to be made: what a trainer does with it shows when that runs."""
    given = [*args.positional, *args.keywords.values()]
    return any(isinstance(value, Obj) and value.cls.derives_from("nnx.Module") and not value.assumed for value in given)


def _made(interp: Interpreter, frame: Frame, cls: UserClass, args: Arguments, node: ast.AST) -> Value | None:
    """What the class's own ``__new__`` makes instead of an instance of the class; ``None`` for an instance."""
    found = cls.find("__new__")
    if found is None:
        return None
    if not isinstance(found[1], FuncVal):
        return UNKNOWN
    made = interp.call_function(frame, found[1], args.positional, args.keywords, node, receiver=ClassVal(cls))
    own = [isinstance(item, Obj) and item.cls in cls.ancestors for item in options(made)]
    if all(own):
        return None
    return UNKNOWN if any(own) else made


def bound_arguments(cls: UserClass, args: Arguments) -> dict[str, Value] | None:
    """Constructor arguments by parameter name."""
    if args.starred:
        return None
    found = method_of(cls, "__init__")
    if found is not None:
        given = found[1].wrapped.node.args
        parameters = syntax_parameters.positional_names(given)[1:]
    elif (library := cls.made_as) is not None:
        parameters = list(library.spec.init) if library.spec is not None else []
    else:
        parameters = [field.name for field in cls.all_fields() if field.init is True and not field.keyword_only]
    bound = {name: value for name, value in zip(parameters, args.positional, strict=False) if value is not None}
    rest = found[1].wrapped.node.args.vararg if found is not None else None
    if rest is not None and len(args.positional) >= len(parameters):
        more = (value or UNKNOWN for value in args.positional[len(parameters) :])
        bound[rest.arg] = Seq("tuple", more)
    return {**bound, **args.keywords}


def _substitute(interp: Interpreter, obj: Obj, args: Arguments) -> None:
    """Give attributes that ``__init__`` takes unchanged from a parameter the value of the argument, or the function
    that is its default.
    """
    cls = obj.cls
    if not isinstance(cls, UserClass) or obj.args is None:
        return
    found = method_of(cls, "__init__")
    if found is None:
        kept = {field.name for field in cls.all_fields() if not field.init_only}
        for name, value in obj.args.items():
            if name in kept:
                obj.attrs[name] = _given(obj, name, value)
        return
    func = found[1].wrapped
    left_out = func.defaults if "**" not in obj.args else {}
    values = {name: value for name, value in left_out.items() if isinstance(value, FUNCTIONS)} | obj.args
    node = func.node
    if node.args.kwarg is not None and "**" not in obj.args:
        own = syntax_parameters.names(node.args)
        rest: list[tuple[Value, Value]] = [(Const(key), value) for key, value in obj.args.items() if key not in own]
        values[node.args.kwarg.arg] = DictVal(rest, obj.level)
    for target, taken in _assigned(node) if values else ():
        if (
            isinstance(target, ast.Attribute)
            and isinstance(target.value, ast.Name)
            and target.value.id == "self"
            and isinstance(taken, ast.Name)
            and taken.id in values
            and taken.id not in _converted(node)
        ):
            obj.attrs[target.attr] = _given(obj, target.attr, values[taken.id])


def _assigned(function: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """What the statements of a function assign, each target with its value: ``self.a, self.b = a, b`` has two."""
    for statement in getattr(function, "body", ()):
        if isinstance(statement, ast.AnnAssign):
            yield statement.target, statement.value
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                yield from zip(target.elts, value.elts, strict=True)
            else:
                yield target, value


FUNCTIONS = (FuncVal, LibraryFunction)
"""What a parameter has as its default for good: a number or ``None`` may be meant to be set later."""


@remembered
def _converted(function: ast.AST) -> frozenset[str]:
    """The names that a function binds to something else than what it was given: not by a default for ``None``."""
    found: set[str] = set()
    for statement in getattr(function, "body", ()):
        tested = statement.test if isinstance(statement, ast.If) else None
        absent: ast.AST | None = None
        if isinstance(tested, ast.Compare) and isinstance(tested.ops[0], ast.Is):
            absent = tested.left
        elif isinstance(tested, ast.UnaryOp) and isinstance(tested.op, ast.Not):
            absent = tested.operand
        names = {node.id for node in walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        value = statement.value if isinstance(statement, ast.Assign) else None
        if isinstance(value, (ast.BoolOp, ast.IfExp)):  # ``x = x or ...``, ``x = x if x is not None else ...``
            names -= {node.id for node in walk(value) if isinstance(node, ast.Name)}
        found |= names - ({absent.id} if isinstance(absent, ast.Name) else set())
    return frozenset(found)


def _given(obj: Obj, name: str, value: Value) -> Attr:
    known = attribute_of(obj, name)
    attr = Attr(untagged(value), known.declared if known is not None else None)
    attr.assignments = known.assignments if known is not None else ()
    return attr
