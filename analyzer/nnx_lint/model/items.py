"""Items: what is put into containers, under a key or at a place, and taken out of them.

Invariants: what is put into a place of a list that is not known may be anywhere in it; a plain element is told from one
that is marked as data only in a list that holds what it was made of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnx_lint.model import configs, entries, events
from nnx_lint.model.attributes import attribute_of, bypass, mutate, variable_value
from nnx_lint.model.containers import DictVal, Fill, Seq
from nnx_lint.model.heap import touch
from nnx_lint.model.unions import UnionVal, present
from nnx_lint.model.values import (
    UNKNOWN,
    Array,
    Const,
    Cut,
    NamespaceVal,
    Obj,
    Value,
)
from nnx_lint.syntax.walk import walk

if TYPE_CHECKING:
    import ast

    from nnx_lint.model.frames import Frame
    from nnx_lint.model.interpreter import Interpreter


def set_item(
    interp: Interpreter, frame: Frame, container: Value, text: str, key: Value, value: Value, node: ast.AST
) -> None:
    """Execute ``container[key] = value``."""
    target = present(container)
    if isinstance(target, UnionVal):
        mutate(interp, frame, target, text, "`[...] =`", "write", node)
    if isinstance(target, Obj):
        if target.cls.is_variable:
            effect = "untracked" if isinstance(variable_value(target), (DictVal, Seq)) else "write"
            interp.publish(events.VariableWritten(frame, node, target, text, key, value))
            mutate(interp, frame, target, text, "`[...] =`", effect, node)
        elif target.cls.derives_from("nnx.List") or target.cls.derives_from("nnx.Dict"):
            mutate(interp, frame, target, text, "`[...] =`", "write", node)
            interp.publish(events.ItemSet(frame, node, target, key, value, _replaced(target, key)))
            _set_element(frame, target, key, value, node)
        elif configs.is_config(target):
            bypass(interp, frame, target, key, value, node)
    elif isinstance(target, NamespaceVal):
        bypass(interp, frame, target.of, key, value, node)
    elif isinstance(target, Array):
        interp.publish(events.ArrayWritten(frame, node, target))
    elif isinstance(target, DictVal):
        touch(target)
        target.items.append((key, value))
        target.exact = target.exact and not frame.branches
        fill(interp, frame, target, value, "`[...] =`", node, text, add=False)
    elif isinstance(target, Seq):
        touch(target)
        target.sure.clear()
        several = (value.items if isinstance(value, Seq) else [UNKNOWN]) if isinstance(key, Cut) else [value]
        for each in several:
            fill(interp, frame, target, each, "`[...] =`", node, text)
        target.exact = False


def _replaced(container: Obj, key: Value) -> list[Value]:
    """What an item of an ``nnx.List`` may have been, with its mark as data; nothing where that is not known."""
    attr, given = container.attrs.get("[]"), (container.args or {}).get("it")
    held = attr.value if attr is not None else None
    if not isinstance(held, Seq) or not isinstance(given, Seq) or len(held.items) != len(given.items) or held.fills:
        return []
    index = key.value if isinstance(key, Const) else None
    if isinstance(index, int) and held.exact and -len(held.items) <= index < len(held.items):
        return [given.items[index]]
    return list(given.items)


def _set_element(frame: Frame, container: Obj, key: Value, value: Value, node: ast.AST) -> None:
    """Note ``container[key] = value`` on an ``nnx.List`` or ``nnx.Dict``."""
    if container.cls.derives_from("nnx.List"):
        forget_places(container, value)
    else:
        entries.put(frame, container, key, value, node)


def forget_places(container: Obj, *added: Value) -> None:
    """Elements of an ``nnx.List`` are replaced or removed: what is where is not known any more."""
    attr = attribute_of(container, "[]")
    if attr is not None and isinstance(attr.value, Seq):
        touch(attr.value)
        attr.value.items.extend(added)
        attr.value.exact = False
        attr.value.sure.clear()


def fill(
    interp: Interpreter,
    frame: Frame,
    container: Seq | DictVal,
    value: Value,
    action: str,
    node: ast.AST,
    text: str,
    *,
    add: bool = True,
    at_end: bool = False,
) -> None:
    """Put a value into a plain container."""
    touch(container)
    container.fills.append(Fill(frame.module, node, value))
    interp.publish(events.ContainerFilled(frame, node, container, value, action))
    if container.level < frame.level:
        interp.publish(events.Mutated(frame, node, container, text, action, "untracked"))
    if add and isinstance(container, Seq):
        added(interp, frame, container, value, at_end=at_end)


def added(interp: Interpreter, frame: Frame, container: Seq, value: Value, *, at_end: bool) -> None:
    """Note an element that is put into a sequence: its place is known if it goes to the end, and on every path."""
    touch(container)
    container.items.append(value)
    if at_end and not frame.doubtful and all(node in interp.loops for node, _ in frame.branches):
        container.sure.append(value)
    if container.exact:
        always = not frame.doubtful and all(node in interp.rolled for node, _ in _branches_since(frame, container))
        container.exact = at_end and always


def _branches_since(frame: Frame, container: Seq) -> tuple[tuple[int, int], ...]:
    """The branches that lead to the present statement; where the running function has made a container for itself, only
    those of its own: the loop that calls it makes another one in each round.
    """
    before, func = frame.caller.branches if frame.caller is not None else (), frame.func
    if not before or func is None or container.owner is not None or container.node is None:
        return frame.branches
    made = any(held is container for held in frame.env.names.values())
    made = made and any(part is container.node for part in walk(func.node))
    return frame.branches[len(before) :] if made else frame.branches


def taken(interp: Interpreter, frame: Frame, container: Seq, place: Value | None) -> Value | None:
    """What ``pop`` takes out of a list that the running function keeps under a name of its own: the way down a U-Net
    leaves what the way up takes. ``None`` where it is not known what the list holds, or whether anything is taken.
    """
    index = -1 if place is None else place.value if isinstance(place, Const) else None
    whole = container.exact and not container.shrunk and container.owner is None and not frame.doubtful
    if not whole or type(index) is not int or not -len(container.items) <= index < len(container.items):
        return None
    if not any(held is container for held in frame.env.names.values()):
        return None  # whoever else has it may take something, too
    if any(node not in interp.rolled for node, _ in _branches_since(frame, container)):
        return None
    touch(container)
    container.sure.clear()
    return container.items.pop(index)


def delete_item(interp: Interpreter, frame: Frame, container: Value, text: str, node: ast.AST) -> None:
    """Execute ``del container[key]``."""
    target = present(container)
    if isinstance(target, Obj):
        mutate(interp, frame, target, text, "`del [...]`", "untracked", node)
        forget_places(target)
    elif isinstance(target, (Seq, DictVal)):
        touch(target)
        target.exact = False
        target.shrunk = True
