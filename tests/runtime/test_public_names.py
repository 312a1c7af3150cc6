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
    "compat",
    *("errors", "filterlib", "graph", "graphlib", "helpers", "initializers", "metrics", "module", "nn", "object"),
    *("optimizer", "pytreelib", "rnglib", "spmd", "statelib", "training", "variablelib"),
]


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_attributes(name: str) -> None:
    assert getattr(nnx, name) is importlib.import_module(f"nnxkit.{name}")


@pytest.mark.parametrize(
    "name", sorted(set(MODULES) - {"compat", "errors", "initializers", "metrics", "nn", "spmd", "training"})
)
def test_modules_say_the_same_names(name: str) -> None:
    differ = {
        public
        for public, value in vars(getattr(nnx, name)).items()
        if not public.startswith("_") and hasattr(nnx, public) and getattr(nnx, public) is not value
    }
    assert differ <= {"Static"}  # of a GraphDef in ``nnx.graph``


def test_nothing_else_is_public() -> None:
    names = {name for name in vars(nnx) if not name.startswith("_")}
    assert not {name for name in names if type(getattr(nnx, name)) is type(sys) and name not in MODULES}


@pytest.mark.parametrize("cls", [nnx.Param, nnx.Module, nnx.List, nnx.Linear, nnx.State, nnx.GraphDef, nnx.Optimizer])
def test_classes_are_members_of_nnxkit(cls: type) -> None:
    assert cls.__module__ == "nnxkit"
    assert pickle.loads(pickle.dumps(cls)) is cls
    assert f"nnxkit.{cls.__qualname__}".encode() in pickle.dumps(cls, protocol=0).replace(b"\n", b".")


def test_flax_names_are_here() -> None:
    flax_nnx = pytest.importorskip("flax.nnx")
    core = [
        *("All", "Any", "BatchNorm", "BatchStat", "Cache", "Data"),
        *("Dict", "Dropout", "Everything", "FlatState", "GraphDef", "GraphState"),
        *("Intermediate", "Linear", "List", "LoRAParam", "MergeContext", "Module"),
        *("Not", "Nothing", "Object", "OfType", "OptArray", "OptState"),
        *("OptVariable", "Optimizer", "Param", "PathContains", "Perturbation", "Pytree"),
        *("RngCount", "RngKey", "RngState", "RngStream", "Rngs", "Sequential"),
        *("SplitContext", "State", "Static", "UpdateContext", "Variable", "VariableMetadata"),
        *("WithTag", "as_pure", "call", "capture", "check_pytree", "clone"),
        *("current_update_context", "data", "dataclass", "display", "filter_state", "find_duplicates"),
        *("flatten", "from_flat_state", "graphdef", "has_data", "initializers", "is_data"),
        *("iter_children", "iter_graph", "iter_module_children", "iter_modules", "map", "map_state"),
        *("merge", "merge_context", "merge_state", "pop", "pure", "recursive_map"),
        *(
            "register_data_type",
            "register_variable_name",
            "replace_by_pure_dict",
            "reseed",
            "restore_int_paths",
            "set_graph_mode",
        ),
        *("set_graph_updates", "set_metadata", "split", "split_context", "split_state", "state"),
        *("static", "to_flat_state", "to_pure_dict", "unflatten", "unpack", "update"),
        *(
            "update_context",
            "use_eager_sharding",
            "using_eager_sharding",
            "var_defaults",
            "variable_name_from_type",
            "variable_type_from_name",
        ),
        *("variables", "vars_as", "view", "view_info", "with_attributes", "with_metadata"),
        *("with_vars", "EMA", "Metric", "ModelAndOptimizer", "MultiMetric", "TrainState"),
        *("Bidirectional", "Conv", "ConvTranspose", "Einsum", "Embed", "GRUCell", "GroupNorm", "InstanceNorm"),
        *("LSTMCell", "LayerNorm", "LinearGeneral", "LoRA", "LoRALinear", "MultiHeadAttention", "OptimizedLSTMCell"),
        *("PReLU", "RMSNorm", "RNN", "RNNCellBase", "SimpleCell", "SpectralNorm", "WeightNorm"),
        *("avg_pool", "max_pool", "min_pool", "pool"),
        *("combine_masks", "dot_product_attention", "make_attention_mask", "make_causal_mask"),
    ]
    for name in core:
        assert hasattr(flax_nnx, name), name
        assert hasattr(nnx, name), name


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
