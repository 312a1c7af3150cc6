"""Instances of classes that lack what a base declares (NNX873).

The metaclass of modules is that of abstract classes, so a method that is declared by ``abc.abstractmethod`` has to be
there before an instance can be made; mostly it is there under a slightly different name. A method that does nothing but
raise ``NotImplementedError`` declares one as well, which shows where it is called. Invariants: all bases are known, and
no class of the library among them stands before the one that declares the method; what is called is a method of an
object whose very class is known, on every way through the program.
"""

from __future__ import annotations

import ast
import difflib
from typing import TYPE_CHECKING

from nnx_lint.model.callables import FuncVal
from nnx_lint.model.classes import LibClass, UserClass
from nnx_lint.model.definitions import ABSTRACT
from nnx_lint.model.events import NotImplementedMet
from nnx_lint.model.values import ClassVal, Obj
from nnx_lint.reporting import Reporter, judges, judges_calls
from nnx_lint.rules.program import in_test, is_tried, own_statements
from nnx_rules.rules import construction as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called

PLAIN = frozenset({"nnx.Module", "nnx.Object", "nnx.Pytree"})
"""Classes of the library that implement nothing which a project declares."""


@judges_calls(rules.ABSTRACT_METHOD_MISSING, "class")
def unfinished(event: Called, report: Reporter) -> None:
    cls = event.callee.cls if isinstance(event.callee, ClassVal) else None
    if not isinstance(cls, UserClass) or not cls.is_pytree or cls.is_open or cls.opaque or cls.remade:
        return
    found = _missing(cls)
    if found is None or in_test(event.frame) or is_tried(event.frame.module, event.node):
        return
    base, name = found
    own = [each for item in cls.lineage if item is not base for each in item.methods]
    close = difflib.get_close_matches(name, own, 1)
    mend = f"give `{cls.name}` a method `{name}`" + (f": it has `{close[0]}`" if close else "")
    if cls is base:
        mend = f"make an instance of a class below `{cls.name}` that has `{name}`"
    how = "declares as an abstract method: no instance of it can be made"
    report(event.frame.module, event.node, cls=cls.name, base=base.name, method=name, how=how, mend=mend)


@judges(rules.ABSTRACT_METHOD_MISSING, NotImplementedMet)
def declaration_called(event: NotImplementedMet, report: Reporter) -> None:
    """A method of a base runs that only raises, on an object of a class below."""
    frame, obj = event.frame, event.frame.receiver
    func, base, caller, call = frame.func, frame.cls, frame.caller, frame.call
    if func is None or base is None or caller is None or call is None or not isinstance(obj, Obj):
        return
    cls = obj.cls
    if not isinstance(cls, UserClass) or cls is base or obj.origin is None or obj.assumed or not _only_raises(func):
        return
    doubtful = caller.doubtful if isinstance(func.node, ast.FunctionDef) and _ends(func.node.body) else frame.doubtful
    if cls.is_open or cls.opaque or cls.remade or doubtful or func.name in obj.attrs:
        return
    if in_test(caller) or is_tried(caller.module, call):
        return
    own = [each for item in cls.lineage if item is not base for each in item.methods]
    close = difflib.get_close_matches(func.name, own, 1)
    mend = f"give `{cls.name}` a method `{func.name}`" + (f": it has `{close[0]}`" if close else "")
    how = "only declares: it raises `NotImplementedError` when it is called"
    report(caller.module, call, cls=cls.name, base=base.name, method=func.name, how=how, mend=mend)


def _only_raises(func: FuncVal) -> bool:
    """Whether a method does nothing but raise an error, with or without words about it."""
    statements = own_statements(func.node) if not isinstance(func.node, ast.Lambda) else []
    said = [each for each in statements if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    raises = any(isinstance(each, ast.Raise) for each in said)
    choices = (ast.If, ast.Match, ast.Pass, ast.Raise, ast.Try, ast.With, ast.match_case)
    return raises and all(isinstance(each, choices) for each in said)


def _ends(body: list[ast.stmt]) -> bool:
    """Whether a block that only raises does so in each case."""
    last = body[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and _ends(last.body) and _ends(last.orelse)
    return isinstance(last, ast.Raise) or (isinstance(last, ast.With) and _ends(last.body))


def _missing(cls: UserClass) -> tuple[UserClass, str] | None:
    """A method that is declared only, and the class that declares it."""
    if any(isinstance(item, LibClass) and item.canonical not in PLAIN for item in cls.ancestors):
        return None
    seen: set[str] = set()
    for item in cls.lineage:
        for name, method in item.methods.items():
            declared = isinstance(method, FuncVal) and not ABSTRACT.isdisjoint(method.decorators)
            if declared and name not in seen and name not in item.attributes:
                return item, name
        seen.update(item.methods, item.attributes, item.fields)
    return None
