"""What the interpreter knows of values: a program prints them, and says in a comment what each print should show.

A line ``print(x) # array`` holds if every time that the line is executed abstractly the value of ``x`` is an array.
The words: ``array``, ``numpy array``, ``number``, ``shape``, ``plain``, ``function``, ``?`` (unknown), ``None`` and
other literals, the name of a class for its instances; ``list[array]`` for a list of any number of arrays,
``list(array, 3)`` for one whose elements are known one by one; `` | `` between the options of a union, in
alphabetical order.
"""

import textwrap

from nnx_lint import rules
from nnx_lint.model.callables import BoundMethod, FuncVal, LibraryFunction, PartialVal, Transformed
from nnx_lint.model.containers import DictVal, Seq
from nnx_lint.model.events import Called, Event
from nnx_lint.model.interpreter import Interpreter
from nnx_lint.model.modules import Module, Project
from nnx_lint.model.unions import UnionVal
from nnx_lint.model.values import (
    NUMBER,
    SHAPE,
    Array,
    ClassVal,
    Const,
    HostArray,
    Obj,
    Other,
    Value,
)
from nnx_lint.source import SourceFile

HEAD = """\
import contextlib
import functools
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
"""


def shown(value: Value) -> str:
    """A value in the words above."""
    if isinstance(value, UnionVal):
        return " | ".join(sorted(shown(option) for option in value.options))
    if isinstance(value, Seq):
        items = ", ".join(dict.fromkeys(map(shown, value.items)) if not value.exact else map(shown, value.items))
        return f"{value.type}({items})" if value.exact else f"{value.type}[{items}]"
    if isinstance(value, DictVal):
        return f"dict[{', '.join(dict.fromkeys(shown(held) for _, held in value.items))}]"
    if isinstance(value, Const):
        return repr(value.value)
    if isinstance(value, Obj):
        return value.cls.name
    if isinstance(value, ClassVal):
        return f"type[{value.cls.name}]"
    for known, word in ((NUMBER, "number"), (SHAPE, "shape")):
        if value is known:
            return word
    words = {HostArray: "numpy array", Array: "array", Other: "plain"}
    functions = (FuncVal, BoundMethod, PartialVal, LibraryFunction, Transformed)
    return words.get(type(value)) or ("function" if isinstance(value, functions) else "?")


def run(program: str) -> tuple[Interpreter, Module, list[Event]]:
    """Execute a program abstractly, its functions included, and give what was published."""
    rules.load()
    source = SourceFile.from_text(HEAD + textwrap.dedent(program), "program.py")
    project = Project({source.path: source}, ["."])
    published: list[Event] = []
    project.listen = lambda: published.append
    module = project.module(source.path)
    assert module is not None
    interpreter = Interpreter(project, published.append, module)
    interpreter.check(module)
    return interpreter, module, published


def prints(program: str) -> tuple[dict[int, str], dict[int, str]]:
    """What each line with a print shows, and what its comment says that it should."""
    lines = (HEAD + textwrap.dedent(program)).splitlines()
    expected = {
        row: line.partition("  # ")[2] for row, line in enumerate(lines, 1) if line.strip().startswith("print(")
    }
    found: dict[int, set[str]] = {}
    for event in run(program)[2]:
        if isinstance(event, Called) and event.name == "print":
            value = event.args[0]
            assert value is not None
            found.setdefault(event.node.lineno, set()).add(shown(value))  # type: ignore[attr-defined]
    return {row: " and ".join(sorted(words)) for row, words in found.items()}, expected
