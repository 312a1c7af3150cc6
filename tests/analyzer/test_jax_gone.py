"""The table of what jax has dropped: the installed jax lacks it, and has what is said to take its place."""

import importlib
import importlib.util
import inspect

import jax
import pytest

from nnx_lint.model.tables.jax_gone import GONE, NEWEST
from nnx_rules.jax_names import INSTEAD, RENAMED, SUCCESSORS

INSTALLED = tuple(int(number) for number in jax.__version__.split(".")[:3])


def held(name):
    """What a dotted name leads to in the installed jax; ``None`` if it leads nowhere."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part, None)
        return found
    return None


def parameters(function):
    given = inspect.signature(function).parameters
    return {name for name, each in given.items() if each.kind is not each.POSITIONAL_ONLY}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what is there, and deprecated
@pytest.mark.skipif(INSTALLED < NEWEST, reason="the table was made from a newer jax")
def test_installed_jax_lacks_it():
    arguments = [name.rstrip(")").split("(") for name in GONE if name.endswith(")")]
    modules = [name.rstrip(".") for name in GONE if name.endswith(".")]
    names = [name for name in GONE if name[-1] not in ")."]
    assert [name for name in names if held(name) is not None] == []
    assert [name for name in modules if importlib.util.find_spec(name) is not None] == []
    functions = [(held(name), argument) for name, argument in arguments]  # some need what is not installed
    assert [
        (function, argument) for function, argument in functions if function and argument in parameters(function)
    ] == []


@pytest.mark.skipif(INSTALLED < NEWEST, reason="names were made for a newer jax")
def test_successors_are_there():
    assert [name for name in SUCCESSORS.values() if held(name) is None] == []
    given = {name.partition("(")[0]: new for name, new in RENAMED.items()}
    assert [name for name, new in given.items() if new not in parameters(held(name))] == []


def test_what_is_mended_is_gone():
    assert {*SUCCESSORS, *INSTEAD, *RENAMED} <= GONE.keys()
    assert not SUCCESSORS.keys() & INSTEAD.keys()
