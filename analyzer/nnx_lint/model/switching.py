"""Switching layers to training or evaluation: what ``train()`` and ``eval()`` leave in a module.

Both set the :data:`~nnx_rules.modes.MODE_ATTRIBUTES` in every module below one that has them, those of the project's
own layers too.

Invariants: how the library's layers were constructed is in their arguments, so that for them the mode of the object is
enough; of attributes that a program assigned itself the value is what changes. A mode that is not known leaves flags
that are not known.
"""

from __future__ import annotations

from typing import TypeGuard

from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.heap import touch
from nnx_lint.model.unions import options
from nnx_lint.model.values import UNKNOWN, Const, Obj, Value
from nnx_rules.modes import MODE_ATTRIBUTES


def set_training(value: Value, mode: bool | None) -> None:
    """Switch the layers in a value to training, to evaluation, or to a mode that is not known."""
    for option in options(value):
        if isinstance(option, Obj) and option.training is not mode:
            touch(option)
            option.training = mode
            for name, attr in option.attrs.items():
                attr.value = switched(name, attr.value, mode)
        elif isinstance(option, (Seq, DictVal)):
            for member in option.items:
                set_training(member[1] if isinstance(member, tuple) else member, mode)


def switched(name: str, value: Value, mode: bool | None) -> Value:
    """What is in an attribute of a module after the module was switched."""
    if name in MODE_ATTRIBUTES:
        return UNKNOWN if mode is None else Const(not mode)
    set_training(value, mode)
    return value


def is_any_module(value: Value | None) -> TypeGuard[Obj]:
    """Whether a value is a module that somebody gave, and of which nothing else is known."""
    return isinstance(value, Obj) and value.assumed and value.cls is value.cls.library and value.cls.name == "Module"
