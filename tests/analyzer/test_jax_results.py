"""The table of what functions of jax return: it is what the installed jax says, and jax does what it says."""

import sys

import jax
import jax.numpy as jnp
import pytest

from nnx_lint.model.tables.jax_results import JAX, METHODS, PROPERTIES, RESULTS
from repository import script


@pytest.mark.skipif(jax.__version__ != JAX, reason="the table is made from another version of jax")
def test_script_reproduces_the_table():
    module = script("jax_results")
    assert module.module_text(module.Installation()) == module.TARGET.read_text(encoding="utf-8")


KINDS = {"array": jax.Array, "list": list, "tuple": tuple, "shape": tuple}


def is_of_kind(value, kind):
    if "," in kind:
        return len(value) == kind.count(",") + 1 and all(isinstance(item, jax.Array) for item in value)
    return kind == "plain" or isinstance(value, KINDS[kind])


NUMBERS = jnp.arange(1.0, 5.0).reshape(2, 2)


@pytest.mark.filterwarnings("ignore")  # some functions warn of what one array makes of them
@pytest.mark.parametrize("module", ["jax.numpy", "jax.numpy.linalg", "jax.nn", "jax.lax"])
def test_functions_of_one_array_return_what_the_table_says(module):
    """Every function that takes one array is called with one; those that want something else are left out."""
    called = 0
    for name, kind in RESULTS.items():
        head, _, last = name.rpartition(".")
        if head != module or kind in {"same", "ufunc"} or not hasattr(sys.modules[module], last):
            continue
        try:
            value = getattr(sys.modules[module], last)(NUMBERS)
        except (TypeError, ValueError, NotImplementedError, AttributeError, OSError, NameError):
            continue
        called += 1
        assert is_of_kind(value, kind), name
    assert called > 10


def test_members_of_arrays_are_what_the_table_says():
    for name, kind in PROPERTIES.items():
        assert is_of_kind(getattr(NUMBERS, name), kind), name
    for name in ("sum", "astype", "nonzero", "is_deleted", "reshape"):
        given = {"astype": (jnp.int32,), "reshape": (4,)}.get(name, ())
        assert is_of_kind(getattr(NUMBERS, name)(*given), METHODS[name]), name
