"""Random streams as arguments: what a layer needs (NNX515, NNX516, NNX517), what streams are made from (NNX503), what
is no key (NNX514), and wrong calls of methods and functions of streams (NNX525, NNX526, NNX528).
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from nnx_lint.diagnostics import Applicability, Edit, Fix, Span
from nnx_lint.model.callables import BoundMethod, FuncVal, LibraryFunction, Transformed
from nnx_lint.model.classes import ClassBase, LibClass, UserClass, method_of
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import Called
from nnx_lint.model.expressions import text_of
from nnx_lint.model.forms import literal
from nnx_lint.model.naming import value_at
from nnx_lint.model.unions import options
from nnx_lint.model.uses import RNGS
from nnx_lint.model.values import (
    Array,
    ClassVal,
    Const,
    NumpyInteger,
    Obj,
    Other,
    ParameterNumber,
    ParameterVal,
    Value,
)
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.edits import append_argument, insert, remove_argument, replace, unsafe, wrap
from nnx_lint.rules.program import calls_in, canonical_of, given, keyword_node, reads_of
from nnx_lint.rules.randomness.membership import KEYS
from nnx_lint.rules.randomness.reading import (
    STREAM,
    drawn_from_parameter,
    is_rngs,
    stands_for_rngs,
    stream_name,
    streams_parameter,
)
from nnx_lint.rules.repeating import argument
from nnx_lint.rules.spelling import spelled
from nnx_lint.syntax import parameters as syntax_parameters
from nnx_lint.syntax.binding import is_name
from nnx_rules.rules import rngs as rules
from nnx_rules.signatures import SIGNATURES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_lint.model.frames import Frame

TAKING_RNGS = tuple(name for name, item in SIGNATURES.items() if "rngs" in item.keywords)
MAKING = ("class", *TAKING_RNGS)
"""Subjects of calls that may need random streams."""


# -- what a layer needs ------------------------------------------------------------------------------------------------


class Needed(NamedTuple):
    """How a class takes random streams: the name of the parameter, and those that can be given by position."""

    name: str
    positional: tuple[str, ...]
    required: bool


def taken_by(cls: ClassBase) -> Needed | None:
    """How a class takes its random streams, or ``None`` if it takes none, or that is not known."""
    if isinstance(cls, UserClass):
        if cls.is_open or cls.opaque or cls.remade or cls.replaced_init or cls.find("__new__") is not None:
            return None
        if method_of(cls, "__init__") is not None:
            return _of_initializer(cls)
        if cls.generated_init or cls.find("__init__") is not None:
            return None
    library = cls.library
    signature = SIGNATURES.get(library.canonical) if library is not None else None
    if signature is None or "rngs" not in signature.keywords:
        return None
    return Needed("rngs", signature.positional, "rngs" in signature.required)


def handing_on(cls: ClassBase) -> tuple[LibClass, ast.Call] | None:
    """The base, one of the library, to which the constructor of a class hands on all keywords that it does not take
    itself, and the call that does so.
    """
    found = method_of(cls, "__init__") if isinstance(cls, UserClass) else None
    rest = found[1].node.args.kwarg if found is not None and found[0] is cls else None
    if rest is None or found is None or found[1].wrapped is not found[1] or not isinstance(cls, UserClass):
        return None
    base = cls.ancestors[1] if len(cls.ancestors) > 1 and len(cls.node.bases) == 1 else None
    if not isinstance(base, LibClass) or len(reads_of(found[1].node, rest.arg)) != 1:
        return None
    for call in calls_in(found[1].node):
        above = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "__init__" else None
        handed = any(item.arg is None and is_name(item.value, rest.arg) for item in call.keywords)
        if handed and isinstance(above, ast.Call) and is_name(above.func, "super") and not above.args:
            return base, call
    return None


def draws(cls: ClassBase) -> bool:
    """Whether a class certainly needs the random streams that it takes."""
    if not isinstance(cls, UserClass) or (streams_parameter(cls) is None and handing_on(cls) is not None):
        return True
    return method_of(cls, "__init__") is None or bool(drawn_from_parameter(cls))


def _of_initializer(cls: UserClass) -> Needed | None:
    parameter = streams_parameter(cls)
    found = method_of(cls, "__init__")
    above = handing_on(cls) if parameter is None else None
    if above is not None and found is not None:
        base, call = above
        needed = taken_by(base)
        starred = any(isinstance(item, ast.Starred) for item in call.args) or found[1].node.args.vararg is not None
        if needed is None or needed.name in needed.positional or starred or keyword_node(call, needed.name) is not None:
            return None
        return needed._replace(positional=tuple(syntax_parameters.positional_names(found[1].node.args)[1:]))
    if parameter is None or found is None or found[1].wrapped is not found[1]:
        return None
    arguments = found[1].node.args
    names = syntax_parameters.positional_names(arguments)[1:]
    if arguments.vararg is not None:
        return None
    return Needed(parameter.arg, tuple(names), parameter.arg not in found[1].defaults)


def constructed(event: Called) -> ClassBase | None:
    """The class that a call constructs."""
    callee = event.callee
    while not isinstance(callee, ClassVal):
        callee = getattr(callee, "func", None)  # type: ignore[assignment]
        if callee is None:
            return None
    return callee.cls


@judges_calls(rules.MISSING_RNGS, *MAKING)
def missing_rngs(event: Called, report: Reporter) -> None:
    cls = constructed(event)
    args = given(event)
    if cls is None or "rngs" in args.keywords or args.starred:
        return
    needed = taken_by(cls)
    if needed is None or not needed.required or needed.name in args.keywords:
        return
    place = needed.positional.index(needed.name) if needed.name in needed.positional else None
    if place is not None and len(args.positional) > place:
        return
    if any(map(stands_for_rngs, args.positional)) or not draws(cls):  # given in the wrong place, or not needed
        return
    name = streams_in_scope(event.frame)
    fix = _added(event, needed.name, name) if name is not None else None
    shown = name or f"{spelled('nnx.Rngs', event.frame.module, event.frame.env) or 'nnx.Rngs'}(0)"
    report(event.frame.module, event.node, fix=fix, cls=cls.name, parameter=needed.name, mend=shown)


def streams_in_scope(frame: Frame) -> str | None:
    """The name by which the running function can reach random streams."""
    names = [name for name, value in frame.env.names.items() if is_rngs(value)]
    return names[0] if len(names) == 1 else "rngs" if "rngs" in names else None


def _added(event: Called, parameter: str, name: str) -> Fix | None:
    call = event.node
    if not isinstance(call, ast.Call):
        return None
    return Fix(f"Pass `{name}`", append_argument(event.frame.module.source, call, f"{parameter}={name}"))


@judges_calls(rules.POSITIONAL_RNGS, *MAKING)
def positional_rngs(event: Called, report: Reporter) -> None:
    cls, args = constructed(event), given(event)
    if cls is None or None in event.args or not any(map(stands_for_rngs, args.positional)):
        return
    needed = taken_by(cls)
    if needed is None or needed.name in needed.positional or needed.name in args.keywords:
        return
    for place, value in enumerate(args.positional):
        if not stands_for_rngs(value) or not (draws(cls) or _is_of_plain(cls, needed.positional[place:])):
            continue
        node = args.nodes[place]
        taken = f", which is its `{needed.positional[place]}`" if place < len(needed.positional) else ""
        text = text_of(node)
        fix = _named(event, place, needed.name)
        report(event.frame.module, node, fix=fix, cls=cls.name, value=text, number=place + 1, taken=taken)
        return


def _is_of_plain(cls: ClassBase, names: Sequence[str]) -> bool:
    """Whether the first of these parameters of a constructor has a number, a string or a truth value as its default."""
    found = method_of(cls, "__init__")
    default = found[1].defaults.get(names[0]) if found is not None and names else None
    return isinstance(default, Const) and isinstance(default.value, (bool, int, float, str))


def _named(event: Called, place: int, name: str) -> Fix | None:
    if len(event.nodes) != len(event.args) or place != len(event.nodes) - 1:
        return None
    source, given = event.frame.module.source, event.nodes[place]
    start = source.span(given).start
    before = source.text[source.span(event.nodes[place - 1]).end : start] if place else ""
    if isinstance(given, (ast.Starred, ast.NamedExpr)) or "(" in before:
        return None
    return Fix(f"Write `{name}=`", insert(start, f"{name}="))


@judges_calls(rules.SEED_AS_RNGS, *MAKING)
def seed_as_rngs(event: Called, report: Reporter) -> None:
    cls, args = constructed(event), given(event)
    needed = taken_by(cls) if cls is not None and not is_rngs(args.keywords.get("rngs")) else None
    if cls is None or needed is None:
        return
    place = needed.positional.index(needed.name) if needed.name in needed.positional else len(args.positional)
    value = args.get(place, needed.name)
    written = args.node_of(place, needed.name)
    spread = written is None or isinstance(written, ast.Starred)
    node = event.node if spread or written is None else written
    if value is None or is_rngs(value) or not draws(cls):
        return
    if stream_name(value) is not None and isinstance(cls, LibClass) and needed.required:
        owner = text_of(node.value) if isinstance(node, ast.Attribute) else "rngs"
        what = "one random stream"
        report(event.frame.module, node, cls=cls.name, parameter=needed.name, value=what, mend=owner)
        return
    func = event.frame.func
    default = func.defaults.get(value.name) if func is not None and isinstance(value, ParameterVal) else None
    if isinstance(default, Const) and _is_seed(default, required=False):
        value = default  # what it is wherever nobody gives it
    if not all(_is_seed(each, required=needed.required) for each in options(value)):
        return
    value = options(value)[0]
    frame = event.frame
    if isinstance(value, Array) and isinstance(node, ast.Name) and is_parameter(frame, node.id):
        origin, told = _handed_over(frame, node), report.memory(Told)
        if origin is None or origin[1] in told:
            return  # only an annotation says that it is a key
        frame, written = origin
        node = written
        told.add(written)
    module = frame.module
    name = spelled("nnx.Rngs", module, frame.env)
    made = None if value.describe() == "None" or isinstance(value, ClassVal) else name
    fix = None
    if made is not None and written is not None and not spread:
        fix = Fix(f"Make an `{made}` of it", wrap(module.source, written, made))
    report(
        module,
        node,
        fix=fix,
        cls=cls.name,
        parameter=needed.name,
        value=value.describe(),
        mend=f"{name or 'nnx.Rngs'}({'0' if made is None or spread else text_of(node)})",
    )


class Told(set[ast.expr]):
    """The arguments that were reported already: a function may hand one to many layers."""


def _handed_over(frame: Frame, node: ast.expr) -> tuple[Frame, ast.expr] | None:
    """Where the callers of a function give it an array for a parameter."""
    while isinstance(node, ast.Name) and is_parameter(frame, node.id) and frame.caller is not None:
        given = argument(frame, node.id)
        if given is None:
            return None
        frame, node = frame.caller, given
    if isinstance(node, ast.Name) and is_parameter(frame, node.id):
        return None
    drawn = isinstance(node, ast.Call) and canonical_of(frame.env, node.func) in KEYS
    return (frame, node) if drawn or isinstance(value_at(frame, node), Array) else None


def is_parameter(frame: Frame, name: str) -> bool:
    """Whether a name is a parameter of the running function."""
    given = frame.func.node.args if frame.func is not None else None
    return given is not None and any(item.arg == name for item in (*given.posonlyargs, *given.args, *given.kwonlyargs))


def _is_seed(value: Value, *, required: bool) -> bool:
    if isinstance(value, Const):
        return (value.value is None and required) or (
            isinstance(value.value, int) and not isinstance(value.value, bool)
        )
    return isinstance(value, (Array, DictVal, ParameterNumber)) or (isinstance(value, ClassVal) and value.cls is RNGS)


# -- what streams are made from ----------------------------------------------------------------------------------------

NUMPY_INTEGERS = frozenset(f"numpy.{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


@judges_calls(rules.RNG_ARGUMENT, "nnx.Rngs")
def bad_seed(event: Called, report: Reporter) -> None:
    named = [(value, keyword_node(event.node, name)) for name, value in event.keywords.items()]
    flax = event.frame.module.provider != "nnxkit"
    for value, node in [*zip(event.args, event.nodes, strict=False), *named]:
        if value is None:
            continue
        what = _no_seed(value)
        numpy = canonical_of(event.frame.env, node.func) if isinstance(node, ast.Call) else None
        if what is None and flax and (numpy in NUMPY_INTEGERS or isinstance(value, NumpyInteger)):
            what = "a numpy integer"
        dtype = literal(value).dtype if flax and isinstance(value, Array) else None
        if what is None and dtype is not None and dtype.startswith("int"):
            what = f"an array of {dtype}"
        if what is not None:
            written = node is not None and not isinstance(node, ast.Starred)
            fix = _as_integer(event, value, node) if node is not None and written and dtype is None else None
            report(event.frame.module, node if node is not None and written else event.node, fix=fix, given=what)


def _as_integer(event: Called, value: Value, node: ast.expr) -> Fix | None:
    """Make a number an integer: a numpy integer is one, and of another number something is cut off."""
    made = isinstance(node, ast.Call)
    fraction = isinstance(value, Other) and value.what == "a float"
    number = made or fraction or (isinstance(value, Const) and isinstance(value.value, float))
    if not number or is_rngs(value) or event.frame.env.lookup("int") is not None:
        return None
    safe = made and not isinstance(value, (Const, Other))
    applicability = Applicability.SAFE if safe else Applicability.UNSAFE
    return Fix("Make it an integer", wrap(event.frame.module.source, node, "int"), applicability)


def _no_seed(value: Value) -> str | None:
    if isinstance(value, Const) and isinstance(value.value, (float, str)):
        return value.describe()
    if isinstance(value, Other) and value.what in {"a float", "a string"}:
        return value.what
    if is_rngs(value):
        return "an nnx.Rngs"
    return value.describe() if isinstance(value, Seq) and value.type in {"list", "tuple"} else None


# -- keys --------------------------------------------------------------------------------------------------------------

NO_KEY_FIRST = frozenset({"key", "PRNGKey", "default_prng_impl", "key_impl", "wrap_key_data", "key_data"})
"""Functions of ``jax.random`` whose first argument is no key."""


CONSTANT = frozenset({"constant", "ones", "ones_init", "zeros", "zeros_init"})
"""Initializers that do nothing with the key that they are given."""


def needs_key(event: Called) -> bool:
    """Whether a function is called whose first argument is a random key."""
    callee = event.callee
    if isinstance(callee, LibraryFunction):
        return callee.maker.rpartition(".")[2] not in CONSTANT
    subject = event.subject
    return subject is not None and subject.startswith("jax.random.") and subject[11:] not in NO_KEY_FIRST


@judges_calls(rules.RNGS_AS_KEY, LibraryFunction, "jax.random.*", when=needs_key)
def rngs_as_key(event: Called, report: Reporter) -> None:
    args = given(event)
    value, node = args.get(0, "key"), args.node_of(0, "key")
    if value is None or node is None or isinstance(node, ast.Starred):
        return
    what = "an nnx.Rngs" if is_rngs(value) else None
    if stream_name(value) is not None or (
        isinstance(value, Obj) and STREAM is not None and STREAM in value.cls.ancestors
    ):
        what = "a random stream"
    if what is None or node is event.node:
        return
    end = event.frame.module.source.span(node).end
    fix = Fix("Draw a key", insert(end, "()")) if isinstance(node, (ast.Name, ast.Attribute)) else None
    function = event.name or "the initializer"
    report(event.frame.module, node, fix=fix, name=text_of(node), value=what, function=function)


# -- methods and functions of streams ----------------------------------------------------------------------------------


TAKEN = {"fork": "split", "split": "k"}
"""The one argument of a method that makes streams of others."""


@judges_calls(rules.FORK_ARGUMENTS, ".fork", ".split")
def fork_arguments(event: Called, report: Reporter) -> None:
    call = event.node
    if not is_rngs(event.owner) or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return
    if isinstance(event.callee, BoundMethod) and event.callee.func is not None:
        return  # a class of one's own that takes other arguments
    method = call.func.attr
    named = [item for item in call.keywords if item.arg not in {TAKEN[method], None}]
    placed = method == "fork" and len(call.args) == 1 and not call.keywords
    if placed and not isinstance(call.args[0], ast.Starred):
        count, taken = call.args[0], "argument by position"
    elif named:
        count, taken = named[0].value, f"`{named[0].arg}`"
    else:
        return
    source = event.frame.module.source
    written = f".split({source.segment(count)})"
    span = Span(source.span(call.func.value).end, source.span(call).end)
    fix = Fix("Use `split`", (Edit(span, written),)) if len(call.args) + len(call.keywords) == 1 else None
    mend = f"{text_of(call.func.value)}{written}"
    report(event.frame.module, call, fix=fix, method=method, taken=taken, mend=mend)


NO_METHODS = (".next", ".next_key", ".next_rng", ".new_key", ".get_key", ".make_key", ".make_rng")
"""What people ask of a stream to get its next key."""


@judges_calls(rules.STREAM_NEXT, *NO_METHODS)
def stream_next(event: Called, report: Reporter) -> None:
    owner, call = event.owner, event.node
    is_stream = isinstance(owner, Obj) and STREAM is not None and STREAM in owner.cls.ancestors
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or event.keywords:
        return
    source = event.frame.module.source
    if event.args:
        _asked_by_name(event, call, call.func, report)
        return
    if not is_stream and stream_name(owner) is None:
        return
    start, end = source.span(call.func.value).end, source.span(call.func).end
    fix = Fix("Call the stream", (Edit(Span(start, end), ""),))
    report(event.frame.module, call, fix=fix, method=call.func.attr, mend=f"{source.segment(call.func.value)}()")


def _asked_by_name(event: Called, call: ast.Call, func: ast.Attribute, report: Reporter) -> None:
    """``rngs.make_rng("noise")``, as linen has it: a stream called ``make_rng``, which takes no argument."""
    name = event.args[0] if len(event.args) == 1 else None
    own = isinstance(event.callee, BoundMethod) and event.callee.func is not None
    if not is_rngs(event.owner) or own or not isinstance(name, Const) or not isinstance(name.value, str):
        return
    rngs, item = event.frame.module.source.segment(func.value), event.frame.module.source.segment(call.args[0])
    mend = f"{rngs}.{name.value}()" if name.value.isidentifier() else f"{rngs}[{item}]()"
    fix = Fix("Call the stream", replace(event.frame.module.source, call, mend))
    report(event.frame.module, call, fix=fix, method=func.attr, mend=mend)


@judges_calls(rules.STREAM_NEXT, "builtins.next")
def stream_as_iterator(event: Called, report: Reporter) -> None:
    value, node = (event.args[0], event.nodes[0]) if event.args and event.nodes else (None, None)
    is_stream = isinstance(value, Obj) and STREAM is not None and STREAM in value.cls.ancestors
    if node is None or len(event.args) > 1 or not (is_stream or stream_name(value) is not None):
        return
    mend = f"{event.frame.module.source.segment(node)}()"
    plain = isinstance(node, (ast.Name, ast.Attribute))
    fix = Fix("Call the stream", replace(event.frame.module.source, event.node, mend)) if plain else None
    report(event.frame.module, event.node, fix=fix, method="__next__", mend=mend)


@judges_calls(rules.SPLIT_ARGUMENTS, "nnx.split_rngs")
def split_rngs_arguments(event: Called, report: Reporter) -> None:
    if "**" in event.keywords:
        return
    splits, squeeze = event.keywords.get("splits"), event.keywords.get("squeeze")
    if splits is None:
        report(event.frame.module, event.node, problem="is called without `splits`", mend="pass `splits=n`")
    elif event.args and isinstance(event.args[0], (FuncVal, Transformed, BoundMethod)):
        name = text_of(event.nodes[0])
        mend = f"it makes a decorator, which takes the function: `nnx.split_rngs(splits=...)({name})`"
        report(event.frame.module, event.node, problem="gets a function instead of streams", mend=mend)
    elif isinstance(squeeze, Const) and squeeze.value is True and isinstance(splits, Const) and splits.value != 1:
        problem = f"with `squeeze=True` makes one key, not {splits.value}"
        fix = partial(_without_squeeze, event)
        report(event.frame.module, event.node, fix=fix, problem=problem, mend="pass `splits=1`, or leave out `squeeze`")


def _without_squeeze(event: Called) -> Fix | None:
    """Keep the number of keys, which somebody has thought about."""
    call, node = event.node, keyword_node(event.node, "squeeze")
    if not isinstance(call, ast.Call) or node is None:
        return None
    return unsafe("Leave out `squeeze`", remove_argument(event.frame.module.source, call, node))
