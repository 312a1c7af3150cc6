"""What ``import nnxkit as nnx`` offers."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys

import jax.numpy as jnp
import pytest

import nnxkit as nnx

MODULES = [
    "checkpoints",
    "compat",
    *("errors", "extract", "filterlib", "graph", "graphlib", "helpers", "ids", "initializers", "metrics", "module"),
    *("nn", "object", "optimizer", "pytreelib", "rnglib", "spmd", "statelib", "summary", "tracers", "training"),
    *("transforms", "traversals", "variablelib"),
]
LEFT_OUT = {
    "deprecations": "marks functions of flax itself",
    "proxy_caller": "what `nnx.call` returns inside; `nnx.call` is here",
    "reprlib": "how flax prints; classes here have a `__repr__`",
    "visualization": "how flax draws; `nnx.display` is here",
}
"""Names of flax.nnx that are not here, and why."""


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_attributes(name: str) -> None:
    assert getattr(nnx, name) is importlib.import_module(f"nnxkit.{name}")


@pytest.mark.parametrize(
    "name",
    sorted(
        set(MODULES)
        - {"checkpoints", "compat", "errors", "initializers", "metrics", "nn", "spmd", "training", "transforms"}
    ),
)
def test_modules_say_the_same_names(name: str) -> None:
    differ = {
        public
        for public, value in vars(getattr(nnx, name)).items()
        if not public.startswith("_") and hasattr(nnx, public) and getattr(nnx, public) is not value
    }
    assert differ <= {"Static", "Any"}  # of a GraphDef in ``nnx.graph``, and of ``typing``


def test_nothing_else_is_public() -> None:
    names = {name for name in vars(nnx) if not name.startswith("_")}
    assert not {name for name in names if type(getattr(nnx, name)) is type(sys) and name not in (*MODULES, "bridge")}


@pytest.mark.parametrize("cls", [nnx.Param, nnx.Module, nnx.List, nnx.Linear, nnx.State, nnx.GraphDef, nnx.Optimizer])
def test_classes_are_members_of_nnxkit(cls: type) -> None:
    assert cls.__module__ == "nnxkit"
    assert pickle.loads(pickle.dumps(cls)) is cls
    assert f"nnxkit.{cls.__qualname__}".encode() in pickle.dumps(cls, protocol=0).replace(b"\n", b".")


def test_flax_names_are_here() -> None:
    flax_nnx = pytest.importorskip("flax.nnx")
    missing = {name for name in dir(flax_nnx) if not name.startswith("_") and not hasattr(nnx, name)}
    assert missing <= set(LEFT_OUT)


def test_missing_jax_is_one_clear_error() -> None:
    program = "import sys; sys.modules['jax'] = None; import nnxkit"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()[-1]
    assert last == "ImportError: nnxkit needs jax; install it with: pip install 'nnxkit[runtime]'"


def test_array_refs() -> None:
    ref = nnx.array_ref(jnp.zeros(2))
    assert nnx.is_array_ref(ref)
    assert isinstance(ref, nnx.ArrayRef)
    assert not nnx.is_array_ref(jnp.zeros(2))
    ref[0] = 3.0
    assert ref[...].tolist() == [3, 0]
