"""What instances of library classes hold, from the table in :mod:`nnx_rules.api` and the constructor arguments.

Invariants: an attribute is given only where the arguments make it certain; :func:`is_settled` says whether that is all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model.classes import LibClass, library_class
from nnx_lint.model.values import NONE, Array, Attr, Const, Obj, ParameterVal, Value

if TYPE_CHECKING:
    from nnx_rules import api


def library_instance(obj: Obj, args: dict[str, Value] | None) -> None:
    """Give an instance of a library class what it holds for these constructor arguments."""
    cls = obj.cls
    if not isinstance(cls, LibClass) or cls.spec is None:
        return
    for member in cls.spec.members or ():
        if is_present(member, args):
            _add(obj, member)


def _add(obj: Obj, member: api.Member) -> None:
    *folders, name = member.path
    holder = obj
    for folder in folders:
        attr = holder.attrs.get(folder)
        if attr is None or not isinstance(attr.value, Obj):
            return
        holder = attr.value
    kind = library_class(member.holds)
    if kind is None:
        return
    given: dict[str, Value] = {key: Const(value) for key, value in member.options}
    held = Obj(kind, obj.level, {"value": Array(obj.level)} if kind.is_variable else given)
    holder.attrs[name] = Attr(held)
    library_instance(held, given)


def is_present(member: api.Member, args: dict[str, Value] | None) -> bool | None:
    """Whether an instance made with these arguments holds a member; ``None`` where that is not known."""
    truth: bool | None = True
    if member.unless is not None:
        truth = _both(truth, _differs(args, *member.unless))
    if member.given is not None:
        truth = _both(truth, _is_given(args, member.given))
    return truth


def _both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return True if left and right else None


def _differs(args: dict[str, Value] | None, name: str, excluded: object) -> bool | None:
    if args is None or "**" in args:
        return None
    value = args.get(name)
    if value is None:
        return True
    return value.value != excluded if isinstance(value, Const) else None


def _is_given(args: dict[str, Value] | None, name: str) -> bool | None:
    if args is None or "**" in args:
        return None
    value = args.get(name, NONE)
    if isinstance(value, Const):
        return bool(value.value)
    # A parameter without a default is given something by every caller; what switches a member off is a literal.
    certain = isinstance(value, Obj) or (isinstance(value, ParameterVal) and value.required and name == "rngs")
    return True if certain else None


def is_settled(obj: Obj) -> bool:
    """Whether the known attributes of an instance of a library class certainly are all that hold something."""
    spec = obj.cls.spec if isinstance(obj.cls, LibClass) else None
    if spec is None or spec.members is None or spec.more:
        return False
    return all(is_present(member, obj.args) is not None for member in spec.members)
