"""Objects of libraries that know nothing of NNX: which classes make them, and which of their methods only return.

Invariants: of such an object only the class is known; a method that is listed leaves its object, and all that it is
given, as they were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model import datasets
from nnx_lint.model.arrays import array_call
from nnx_lint.model.callables import BoundMethod
from nnx_lint.model.containers import DictVal, Seq, give_away
from nnx_lint.model.operations import FUNCTIONS, with_form
from nnx_lint.model.states import ForeignVal, GradientVal, OptStateVal, RawTree, StateVal, TransformationVal
from nnx_lint.model.unions import present
from nnx_lint.model.values import UNKNOWN, Array, NumpyInteger, Value

if TYPE_CHECKING:
    from nnx_lint.model.calls import Arguments


TRANSFORMATIONS = frozenset({"optax.GradientTransformation", "optax.GradientTransformationExtraArgs"})
"""Types of what functions of optax make."""

_ORBAX = (
    "AsyncCheckpointer",
    "Checkpointer",
    "CheckpointManager",
    "PyTreeCheckpointer",
    "StandardCheckpointer",
)
_TRAIN_STATE = "flax.training.train_state.TrainState"

RETURNING: dict[str, dict[str, str]] = {
    **{f"orbax.checkpoint.{name}": {"restore": "what it has read"} for name in _ORBAX},
    **{name: {"apply_gradients": "a new state", "replace": "a new state"} for name in (_TRAIN_STATE, "nnx.TrainState")},
}
"""The methods that are called for what they return and nothing else, with what that is, by class."""

OF_TRANSFORMATIONS = {"init": "the first state", "update": "the updates and a new state"}

GENERATORS = frozenset({"numpy.random.Generator", "numpy.random.RandomState"})
"""Classes of numpy whose methods draw random numbers as its functions do."""

_MAKERS = {
    **{name: name for name in RETURNING if name.startswith("orbax.")},
    f"{_TRAIN_STATE}.create": _TRAIN_STATE,
    "numpy.random.default_rng": "numpy.random.Generator",
    "numpy.random.RandomState": "numpy.random.RandomState",
}
"""Functions and classes that make such objects, with the class."""

_ARGUMENTS = "orbax.checkpoint.args."

COMPOSITE = f"{_ARGUMENTS}Composite"
"""What has the parts of a checkpoint by name: how each is saved or restored, and after that, what was restored."""

_TREES = frozenset(f"{_ARGUMENTS}{kind}{what}" for kind in ("PyTree", "Standard") for what in ("Restore", "Save"))
"""What says to Orbax which tree it is to save, or what the one is like that it is to restore, by an ``item``."""

_SAME = frozenset({"apply_gradients", "replace"})
"""Methods that return another instance of the class."""


_NEUTRAL = frozenset({"directory", "logger", "metadata", "options"})
"""Arguments of a manager of checkpoints that do not say how something is saved."""


def made_by(name: str, args: Arguments) -> ForeignVal | None:
    """What a call of a library function or class of this name makes, with these arguments.

    Where one of several parts is restored by a handler that is not Orbax's own, it may be restored in place.
    """
    given = args.keywords
    if name == COMPOSITE and not all(map(is_of_orbax, given.values())):
        return None
    cls = name if name.startswith(_ARGUMENTS) else _MAKERS.get(name)
    plain = len(args.positional) <= 1 and not args.starred and given.keys() <= _NEUTRAL
    held = given if cls in {_TRAIN_STATE, COMPOSITE} else None
    if name in _TREES:
        item = args.get(0, "item")
        held = {"item": item} if item is not None else None
    return ForeignVal(cls, held, plain=plain) if cls is not None else None


def is_of_orbax(value: Value | None) -> bool:
    """Whether a value says to Orbax what is to be saved or restored, and how."""
    return isinstance(value, ForeignVal) and value.name.startswith(_ARGUMENTS)


def annotated(name: str) -> Value | None:
    """What is annotated with a type of this name."""
    if name in TRANSFORMATIONS:
        return TransformationVal()
    return ForeignVal(name) if name in RETURNING else None


def member(owner: ForeignVal | TransformationVal, name: str) -> Value | None:
    """A method of such an object, where it is one that only returns something, or what a record holds."""
    if isinstance(owner, ForeignVal) and name in owner.held:
        return owner.held[name]
    drawn = f"numpy.random.{_plain(name)}" in FUNCTIONS or name == "shuffle"
    draws = isinstance(owner, ForeignVal) and owner.name in GENERATORS and drawn
    scales = isinstance(owner, ForeignVal) and owner.name in datasets.SCALERS and name in datasets.SCALING
    saves = isinstance(owner, ForeignVal) and owner.name.startswith("orbax.") and name == "save"
    return BoundMethod(owner, name) if draws or saves or scales or name in methods_of(owner) else None


def _plain(name: str) -> str:
    """What a function of numpy is called that does the same as a method of a generator."""
    return "randint" if name == "integers" else name


def methods_of(owner: Value) -> dict[str, str]:
    """The methods of a value that only return something, with what that is."""
    if isinstance(owner, ForeignVal):
        return RETURNING.get(owner.name, {})
    return OF_TRANSFORMATIONS if isinstance(owner, TransformationVal) and not owner.schedule else {}


def _updates(grads: Value | None, level: int) -> Value:
    """What a transformation makes of gradients: a tree of the same structure."""
    if isinstance(grads, StateVal):
        return grads.again(level)
    return GradientVal(grads.of, grads.like) if isinstance(grads, GradientVal) else UNKNOWN


def result_of(method: BoundMethod, args: Arguments, level: int) -> Value | None:
    """What a method returns, where that is such an object again."""
    if isinstance(method.receiver, TransformationVal):
        before = args.get(1, "state")
        of = args.get(0, "params") if method.name == "init" else getattr(before, "of", None)
        state = OptStateVal(of or UNKNOWN, keeps=method.receiver.keeps)
        return state if method.name == "init" else Seq("tuple", [_updates(args.get(0, "updates"), level), state], level)
    if isinstance(method.receiver, ForeignVal) and method.receiver.name in GENERATORS:
        if method.name == "shuffle":
            give_away(args.positional)
            return UNKNOWN
        canonical = f"numpy.random.{_plain(method.name)}"
        if method.name == "integers" and not args.starred and args.get(2, "size") is None and len(args.keywords) < 2:
            return NumpyInteger()
        return with_form(canonical, args, array_call(canonical, args, level), level)
    if method.name == "restore":
        return _restored(args, level)
    if method.name in datasets.SCALING:
        return datasets.scaled(method, args, level)
    if not isinstance(method.receiver, ForeignVal) or method.name not in _SAME:
        return None
    held, params = method.receiver.held, method.receiver.held.get("params")
    if args.starred or "**" in args.keywords:
        return ForeignVal(method.receiver.name)
    fresh = {"params": StateVal(params.of, level, params.wanted)} if isinstance(params, StateVal) else {}
    return ForeignVal(method.receiver.name, {**held, **fresh, **args.keywords})


def _restored(args: Arguments, level: int) -> Value | None:
    """What Orbax restores: a State of new arrays, where it is told the State that this is to be like."""
    told = args.keywords.get("args")
    if isinstance(told, ForeignVal) and told.name == COMPOSITE:
        return ForeignVal(COMPOSITE, {name: _restored_part(part, level) for name, part in told.held.items()})
    like = told.held.get("item") if isinstance(told, ForeignVal) else args.get(1, "target") or args.keywords.get("item")
    if like is None and len(args.positional) == 1 and args.keywords.keys() <= {"args"}:
        return RawTree(args.node) if told is None or isinstance(told, ForeignVal) else None
    return None if args.starred or like is None else _read_like(present(like), level)


def _restored_part(told: Value, level: int) -> Value:
    like = told.held.get("item") if isinstance(told, ForeignVal) else None
    return (_read_like(present(like), level) if like is not None else None) or UNKNOWN


def _read_like(like: Value, level: int) -> Value | None:
    """A tree of new arrays; of a dict, with what is known of its entries."""
    if isinstance(like, DictVal) and like.exact and not like.shrunk:
        entries = [(key, _read_like(present(held), level) or UNKNOWN) for key, held in like.items]
        return DictVal(entries, level, node=like.node)
    if not isinstance(like, StateVal):
        return None
    restored = like.again(level)
    restored.made = Array(level)
    return restored
