"""Errors that are meant, and code for several versions: what says so, and what does not."""

from __future__ import annotations

import textwrap

import pytest

from nnx_lint import engine
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile

DEFAULTS = Options.everywhere(selected=lambda rule: rule.default)
HEAD = """
import contextlib
import unittest
import flax
import optax
import pytest
from flax import nnx

model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
tx = optax.sgd(0.1)
"""


def found(text: str) -> list[str]:
    source = SourceFile.from_text(HEAD + textwrap.dedent(text), "program.py")
    assert source.error is None
    return [item.rule.name for item in engine.check([source], roots=[], options=DEFAULTS)]


MEANT = {
    "suppressed": """
        with contextlib.suppress(ValueError):
            nnx.split(model, nnx.BatchStat)
        """,
    "one of two contexts": """
        def test(fails):
            with pytest.raises(ValueError) if fails else contextlib.nullcontext():
                nnx.split(model, nnx.BatchStat)
        """,
    "entered by a stack": """
        def test(fails):
            with contextlib.ExitStack() as stack:
                if fails:
                    stack.enter_context(pytest.raises(ValueError, match="x"))
                nnx.split(model, nnx.BatchStat)
        """,
    "a function for pytest": "pytest.raises(ValueError, lambda: nnx.split(model, nnx.BatchStat))",
    "a function for unittest": """
        class Test(unittest.TestCase):
            def test(self):
                self.assertRaises(ValueError, lambda: nnx.split(model, nnx.BatchStat))
        """,
    "a match of another library": """
        class Test(unittest.TestCase):
            def test(self):
                with self.assertRaisesWithLiteralMatch(ValueError, "x"):
                    nnx.split(model, nnx.BatchStat)
        """,
    "a test that fails": """
        @pytest.mark.xfail(reason="not yet")
        def test():
            nnx.split(model, nnx.BatchStat)
        """,
    "a class of tests that fail": """
        @unittest.expectedFailure
        class Test(unittest.TestCase):
            def test(self):
                nnx.split(model, nnx.BatchStat)
        """,
    "an error that is taken": """
        try:
            nnx.split(model, nnx.BatchStat)
        except (ValueError, TypeError) as error:
            print(error)
        """,
    "forms in a try": """
        try:
            optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)
        except Exception:
            optimizer = nnx.Optimizer(model, tx)
        """,
    "the older form first": """
        try:
            optimizer = nnx.Optimizer(model, tx)
        except Exception:
            optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)
        """,
    "forms in a conditional expression": """
        def make(new: bool):
            return nnx.Optimizer(model, tx, wrt=nnx.Param) if new else nnx.Optimizer(model, tx)
        """,
    "forms before and after a return": """
        def make(new: bool):
            if new:
                return nnx.Optimizer(model, tx, wrt=nnx.Param)
            return nnx.Optimizer(model, tx)
        """,
    "the older form returns": """
        def make(old: bool):
            if old:
                return nnx.Optimizer(model, tx)
            return nnx.Optimizer(model, tx, wrt=nnx.Param)
        """,
    "forms of an update": """
        def step(optimizer: nnx.Optimizer, grads, new: bool):
            if new:
                optimizer.update(model, grads)
            else:
                optimizer.update(grads)
        """,
    "a list with and without a container": """
        class Net(nnx.Module):
            def __init__(self, new: bool, rngs: nnx.Rngs):
                layers = [nnx.Linear(2, 2, rngs=rngs)]
                if new:
                    self.layers = nnx.List(layers)
                else:
                    self.layers = layers
        """,
}


@pytest.mark.parametrize("text", MEANT.values(), ids=MEANT.keys())
def test_what_is_meant_is_no_mistake(text):
    assert found(text) == []


MISTAKES = {
    "any error is taken": (
        "non-exhaustive-split",
        """
        try:
            nnx.split(model, nnx.BatchStat)
        except Exception as error:
            print(error)
        """,
    ),
    "a missing file is taken": (
        "non-exhaustive-split",
        """
        try:
            print(open("state").read())
            nnx.split(model, nnx.BatchStat)
        except (FileNotFoundError, PermissionError) as error:
            print(error)
        """,
    ),
    "the error goes on": (
        "non-exhaustive-split",
        """
        try:
            nnx.split(model, nnx.BatchStat)
        except ValueError as error:
            raise RuntimeError from error
        """,
    ),
    "after the block": (
        "non-exhaustive-split",
        """
        with contextlib.suppress(ValueError):
            print()
        nnx.split(model, nnx.BatchStat)
        """,
    ),
    "another mark": (
        "non-exhaustive-split",
        """
        @pytest.mark.slow
        def test():
            nnx.split(model, nnx.BatchStat)
        """,
    ),
    "arms that make something else": (
        "optimizer-without-wrt",
        """
        def make(new: bool):
            if new:
                return nnx.ModelAndOptimizer(model, tx)
            return nnx.Optimizer(model, tx)
        """,
    ),
    "both arms in one form": (
        "optimizer-without-wrt",
        """
        def make(new: bool):
            return nnx.Optimizer(model, tx) if new else nnx.ModelAndOptimizer(model, tx)
        """,
    ),
    "the right form elsewhere": (
        "optimizer-without-wrt",
        """
        first = nnx.Optimizer(model, tx, wrt=nnx.Param)
        second = nnx.Optimizer(model, tx)
        """,
    ),
    "arms with other values": (
        "data-in-static-attribute",
        """
        class Net(nnx.Module):
            def __init__(self, deep: bool, rngs: nnx.Rngs):
                if deep:
                    self.layers = nnx.List([nnx.Linear(2, 2, rngs=rngs), nnx.Linear(2, 2, rngs=rngs)])
                else:
                    self.layers = [nnx.Linear(2, 2, rngs=rngs)]
        """,
    ),
}


@pytest.mark.parametrize(("rule", "text"), MISTAKES.values(), ids=MISTAKES.keys())
def test_what_is_not_is_found(rule, text):
    assert found(text) == [rule]
