"""What strict mypy asks of code on flax, and nobody can give: flax leaves it open.

Generic classes of flax are used without arguments everywhere, ``def f(state: nnx.State, scale: nnx.Param)``, and many
of its functions have no annotations. nnxkit says itself what follows here for flax: its type variables have the default
``Any``, and its functions are annotated.

Mypy can be told which packages may be called without annotations. It knows a method by the class of its object, so
methods that heirs inherit need annotations. ``__init__`` stays without them: they would change the types of attributes.
"""

from __future__ import annotations

from typing import Final

from mypy.nodes import FuncDef
from mypy.options import Options
from mypy.plugin import ClassDefContext
from mypy.types import CallableType

from nnx_mypy.library import POOLING, anything

PACKAGE: Final = "flax.nnx"


def loosen(context: ClassDefContext) -> None:
    """Let a generic class be used without arguments, and what methods without annotations it has be called."""
    for variable in context.cls.type_vars:
        if not variable.has_default():
            variable.default = anything()
    for method in context.cls.defs.body:
        if isinstance(method, FuncDef) and method.type is None and not method.name.startswith("__"):
            function = context.api.named_type("builtins.function")
            types = [anything() for _ in method.arguments]
            method.type = CallableType(types, method.arg_kinds, method.arg_names, anything(), function)


def let_call_untyped(options: Options) -> None:
    """Let functions without annotations be called.

    The list is another one afterwards, for the daemon compares the one it was given with that of the next call.
    """
    if PACKAGE not in options.untyped_calls_exclude:
        options.untyped_calls_exclude = [*options.untyped_calls_exclude, PACKAGE, POOLING]
