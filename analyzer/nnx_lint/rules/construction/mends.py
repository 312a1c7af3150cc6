"""Fixes of classes and functions that make layers where they should not: in a forward pass, in the default of a
parameter, without the constructor of a base.

Invariant: an expression is moved only to a place where its names mean what they mean where it stands.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.rules.blocks import append_to_block, fresh, prepend_to_block
from nnx_lint.rules.edits import replace, unsafe
from nnx_lint.rules.program import FUNCTIONS, binds, enclosing
from nnx_lint.syntax.binding import names_in
from nnx_rules.signatures import SIGNATURES

if TYPE_CHECKING:
    from nnx_lint.diagnostics import Fix
    from nnx_lint.model.classes import ClassBase
    from nnx_lint.model.frames import Frame
    from nnx_lint.model.modules import Module


def in_constructor(frame: Frame, call: ast.AST, name: str) -> Fix | None:
    """Make a layer in the constructor of the class whose method makes it, and use it from there."""
    cls, method = (
        frame.func.cls if frame.func is not None else None,
        frame.func.node if frame.func is not None else None,
    )
    if not isinstance(cls, UserClass) or cls.module is not frame.module or not isinstance(call, ast.Call):
        return None
    source, text = frame.module.source, frame.module.source.segment(call)
    if method is None or not method.args.args or "\n" in text:
        return None
    given = cls.methods.get("__init__")
    init = given.node if isinstance(given, FuncVal) and given.node in cls.node.body else None
    receiver, attribute = method.args.args[0].arg, fresh(frame.module, name)
    used = names_in(call)
    local = {each for each in used if binds(method, each)} - {receiver}
    line = f"{receiver}.{attribute} = {text}"
    if isinstance(init, ast.FunctionDef):
        known = {item.arg for item in (*init.args.args, *init.args.kwonlyargs)}
        same = init.args.args and init.args.args[0].arg == receiver
        made = append_to_block(source, init.body, line) if same and local <= known else None
    elif (
        given is None and not local and not cls.is_dataclass and all(isinstance(b, LibClass) for b in cls.ancestors[1:])
    ):
        made = prepend_to_block(source, cls.node.body, f"def __init__({receiver}):\n\t{line}\n")
    else:
        return None
    if made is None:
        return None
    return unsafe("Make it in the constructor", (*made, *replace(source, call, f"{receiver}.{attribute}")))


def in_function(module: Module, default: ast.expr, name: str) -> Fix | None:
    """Make the default of a parameter anew in each call."""
    func, text = enclosing(module, default, *FUNCTIONS), module.source.segment(default)
    if not isinstance(func, (ast.FunctionDef, ast.AsyncFunctionDef)) or "\n" in text:
        return None
    names = names_in(default)
    made = prepend_to_block(module.source, func.body, f"if {name} is None:\n\t{name} = {text}")
    if made is None or any(binds(func, each) for each in names):
        return None
    return unsafe("Make one in each call", (*replace(module.source, default, "None"), *made))


def with_base_constructor(cls: UserClass, init: ast.AST, base: ClassBase, name: str) -> Fix | None:
    """Call the constructor of a base first, with the parameters that have the same names."""
    needed = _required(base, name)
    if needed is None or not isinstance(init, ast.FunctionDef):
        return None
    known = {item.arg for item in (*init.args.args, *init.args.kwonlyargs)}
    if not needed <= known:
        return None
    given = ", ".join(f"{parameter}={parameter}" for parameter in sorted(needed))
    text = f"super().{name}({given})"
    return unsafe(f"Call `{text}`", prepend_to_block(cls.module.source, init.body, text))


def _required(base: ClassBase, name: str) -> set[str] | None:
    """The parameters that a constructor needs; ``None`` where it takes some by position only, or is not known."""
    if isinstance(base, LibClass):
        signature = SIGNATURES.get(base.canonical)
        return set(signature.required) if signature is not None else None
    found = base.methods.get(name) if isinstance(base, UserClass) else None
    if not isinstance(found, FuncVal):
        return None
    arguments = found.node.args
    positional = [item.arg for item in arguments.args][1:]
    optional = len(arguments.defaults)
    named = [
        item.arg for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is None
    ]
    return {*positional[: len(positional) - optional], *named} if not arguments.posonlyargs else None
