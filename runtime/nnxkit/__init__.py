"""nnxkit: neural networks on JAX in the NNX style. ``import nnxkit as nnx``.

Every public name of the library is here; the modules beside it (``nnxkit.graph``, ``nnxkit.variablelib``, ...) say
the same names again under the paths that NNX code imports them from. Public classes present themselves as members
of ``nnxkit``, so pickles of them do not depend on where they are defined.
"""

from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING

try:
    import jax as _jax  # noqa: F401
except ImportError as _error:
    raise ImportError("nnxkit needs jax; install it with: pip install 'nnxkit[runtime]'") from _error

from nnx_rules.filters import All as All
from nnx_rules.filters import Any as Any
from nnx_rules.filters import Everything as Everything
from nnx_rules.filters import Not as Not
from nnx_rules.filters import Nothing as Nothing
from nnx_rules.filters import OfType as OfType
from nnx_rules.filters import PathContains as PathContains
from nnx_rules.filters import WithTag as WithTag
from nnxkit import compat as compat
from nnxkit import errors as errors
from nnxkit import extract as extract
from nnxkit import filterlib as filterlib
from nnxkit import graph as graph
from nnxkit import graphlib as graphlib
from nnxkit import helpers as helpers
from nnxkit import ids as ids
from nnxkit import initializers as initializers
from nnxkit import metrics as metrics
from nnxkit import module as module
from nnxkit import nn as nn
from nnxkit import object as object
from nnxkit import optimizer as optimizer
from nnxkit import pytreelib as pytreelib
from nnxkit import rnglib as rnglib
from nnxkit import spmd as spmd
from nnxkit import statelib as statelib
from nnxkit import summary as summary
from nnxkit import tracers as tracers
from nnxkit import training as training
from nnxkit import transforms as transforms
from nnxkit import traversals as traversals
from nnxkit import variablelib as variablelib
from nnxkit._annotations import Data as Data
from nnxkit._annotations import Static as Static
from nnxkit._annotations import data as data
from nnxkit._annotations import dataclass as dataclass
from nnxkit._annotations import register_data_type as register_data_type
from nnxkit._annotations import static as static
from nnxkit._capture import capture as capture
from nnxkit._containers import Dict as Dict
from nnxkit._containers import List as List
from nnxkit._facts import has_data as has_data
from nnxkit._facts import is_data as is_data
from nnxkit._graph import GraphDef as GraphDef
from nnxkit._graph import GraphState as GraphState
from nnxkit._graph import MergeContext as MergeContext
from nnxkit._graph import NodeStates as NodeStates
from nnxkit._graph import PureState as PureState
from nnxkit._graph import SplitContext as SplitContext
from nnxkit._graph import UpdateContext as UpdateContext
from nnxkit._graph import as_pure as as_pure
from nnxkit._graph import call as call
from nnxkit._graph import clone as clone
from nnxkit._graph import config as config
from nnxkit._graph import current_update_context as current_update_context
from nnxkit._graph import find_duplicates as find_duplicates
from nnxkit._graph import flatten as flatten
from nnxkit._graph import from_tree as from_tree
from nnxkit._graph import graphdef as graphdef
from nnxkit._graph import iter_children as iter_children
from nnxkit._graph import iter_graph as iter_graph
from nnxkit._graph import map as map
from nnxkit._graph import merge as merge
from nnxkit._graph import merge_context as merge_context
from nnxkit._graph import pop as pop
from nnxkit._graph import pure as pure
from nnxkit._graph import recursive_map as recursive_map
from nnxkit._graph import set_graph_mode as set_graph_mode
from nnxkit._graph import set_graph_updates as set_graph_updates
from nnxkit._graph import set_metadata as set_metadata
from nnxkit._graph import split as split
from nnxkit._graph import split_context as split_context
from nnxkit._graph import state as state
from nnxkit._graph import to_arrays as to_arrays
from nnxkit._graph import to_refs as to_refs
from nnxkit._graph import to_tree as to_tree
from nnxkit._graph import unflatten as unflatten
from nnxkit._graph import unpack as unpack
from nnxkit._graph import update as update
from nnxkit._graph import update_context as update_context
from nnxkit._graph import variables as variables
from nnxkit._graph import vars_as as vars_as
from nnxkit._graph import with_vars as with_vars
from nnxkit._module import Module as Module
from nnxkit._module import iter_module_children as iter_module_children
from nnxkit._module import iter_modules as iter_modules
from nnxkit._pytree import Object as Object
from nnxkit._pytree import Pytree as Pytree
from nnxkit._pytree import check_pytree as check_pytree
from nnxkit._refs import ArrayRef as ArrayRef
from nnxkit._refs import array_ref as array_ref
from nnxkit._refs import is_array_ref as is_array_ref
from nnxkit._repr import display as display
from nnxkit._rng_scopes import fork_rngs as fork_rngs
from nnxkit._rng_scopes import restore_rngs as restore_rngs
from nnxkit._rng_scopes import split_rngs as split_rngs
from nnxkit._rng_scopes import with_rngs as with_rngs
from nnxkit._rngs import RngCount as RngCount
from nnxkit._rngs import RngKey as RngKey
from nnxkit._rngs import Rngs as Rngs
from nnxkit._rngs import RngState as RngState
from nnxkit._rngs import RngStream as RngStream
from nnxkit._rngs import reseed as reseed
from nnxkit._state import FlatState as FlatState
from nnxkit._state import State as State
from nnxkit._state import filter_state as filter_state
from nnxkit._state import from_flat_state as from_flat_state
from nnxkit._state import map_state as map_state
from nnxkit._state import merge_state as merge_state
from nnxkit._state import replace_by_pure_dict as replace_by_pure_dict
from nnxkit._state import restore_int_paths as restore_int_paths
from nnxkit._state import split_state as split_state
from nnxkit._state import to_flat_state as to_flat_state
from nnxkit._state import to_pure_dict as to_pure_dict
from nnxkit._transforms import PARTITION_NAME as PARTITION_NAME
from nnxkit._transforms import Carry as Carry
from nnxkit._transforms import DiffState as DiffState
from nnxkit._transforms import StateAxes as StateAxes
from nnxkit._transforms import StateSharding as StateSharding
from nnxkit._transforms import cached_partial as cached_partial
from nnxkit._transforms import checkify as checkify
from nnxkit._transforms import checkpoint as checkpoint
from nnxkit._transforms import cond as cond
from nnxkit._transforms import custom_vjp as custom_vjp
from nnxkit._transforms import eval_shape as eval_shape
from nnxkit._transforms import fori_loop as fori_loop
from nnxkit._transforms import grad as grad
from nnxkit._transforms import jit as jit
from nnxkit._transforms import jit_partial as jit_partial
from nnxkit._transforms import jvp as jvp
from nnxkit._transforms import make_jaxpr as make_jaxpr
from nnxkit._transforms import pmap as pmap
from nnxkit._transforms import prefix as prefix
from nnxkit._transforms import remat as remat
from nnxkit._transforms import scan as scan
from nnxkit._transforms import shard_map as shard_map
from nnxkit._transforms import switch as switch
from nnxkit._transforms import transform_metadata as transform_metadata
from nnxkit._transforms import value_and_grad as value_and_grad
from nnxkit._transforms import vjp as vjp
from nnxkit._transforms import vmap as vmap
from nnxkit._transforms import while_loop as while_loop
from nnxkit._typevars import A as A
from nnxkit._typevars import M as M
from nnxkit._variable import Variable as Variable
from nnxkit._variable import VariableMetadata as VariableMetadata
from nnxkit._variable import with_metadata as with_metadata
from nnxkit._variable_defaults import use_eager_sharding as use_eager_sharding
from nnxkit._variable_defaults import using_eager_sharding as using_eager_sharding
from nnxkit._variable_defaults import var_defaults as var_defaults
from nnxkit._variable_names import register_variable_name as register_variable_name
from nnxkit._variable_names import variable_name_from_type as variable_name_from_type
from nnxkit._variable_names import variable_type_from_name as variable_type_from_name
from nnxkit._variable_types import BatchStat as BatchStat
from nnxkit._variable_types import Cache as Cache
from nnxkit._variable_types import Intermediate as Intermediate
from nnxkit._variable_types import LoRAParam as LoRAParam
from nnxkit._variable_types import Param as Param
from nnxkit._variable_types import Perturbation as Perturbation
from nnxkit._variable_types import VariableState as VariableState
from nnxkit._views import view as view
from nnxkit._views import view_info as view_info
from nnxkit._views import with_attributes as with_attributes
from nnxkit.nn.activations import PReLU as PReLU
from nnxkit.nn.activations import celu as celu
from nnxkit.nn.activations import elu as elu
from nnxkit.nn.activations import gelu as gelu
from nnxkit.nn.activations import glu as glu
from nnxkit.nn.activations import hard_sigmoid as hard_sigmoid
from nnxkit.nn.activations import hard_silu as hard_silu
from nnxkit.nn.activations import hard_swish as hard_swish
from nnxkit.nn.activations import hard_tanh as hard_tanh
from nnxkit.nn.activations import identity as identity
from nnxkit.nn.activations import leaky_relu as leaky_relu
from nnxkit.nn.activations import log_sigmoid as log_sigmoid
from nnxkit.nn.activations import log_softmax as log_softmax
from nnxkit.nn.activations import logsumexp as logsumexp
from nnxkit.nn.activations import one_hot as one_hot
from nnxkit.nn.activations import relu as relu
from nnxkit.nn.activations import relu6 as relu6
from nnxkit.nn.activations import selu as selu
from nnxkit.nn.activations import sigmoid as sigmoid
from nnxkit.nn.activations import silu as silu
from nnxkit.nn.activations import soft_sign as soft_sign
from nnxkit.nn.activations import softmax as softmax
from nnxkit.nn.activations import softplus as softplus
from nnxkit.nn.activations import standardize as standardize
from nnxkit.nn.activations import swish as swish
from nnxkit.nn.activations import tanh as tanh
from nnxkit.nn.attention import MultiHeadAttention as MultiHeadAttention
from nnxkit.nn.attention import dot_product_attention as dot_product_attention
from nnxkit.nn.containers import Sequential as Sequential
from nnxkit.nn.conv import Conv as Conv
from nnxkit.nn.conv import ConvTranspose as ConvTranspose
from nnxkit.nn.embed import Embed as Embed
from nnxkit.nn.initializers import Initializer as Initializer
from nnxkit.nn.linear import Einsum as Einsum
from nnxkit.nn.linear import Linear as Linear
from nnxkit.nn.linear import LinearGeneral as LinearGeneral
from nnxkit.nn.lora import LoRA as LoRA
from nnxkit.nn.lora import LoRALinear as LoRALinear
from nnxkit.nn.masks import combine_masks as combine_masks
from nnxkit.nn.masks import make_attention_mask as make_attention_mask
from nnxkit.nn.masks import make_causal_mask as make_causal_mask
from nnxkit.nn.normalization import BatchNorm as BatchNorm
from nnxkit.nn.normalization import GroupNorm as GroupNorm
from nnxkit.nn.normalization import InstanceNorm as InstanceNorm
from nnxkit.nn.normalization import LayerNorm as LayerNorm
from nnxkit.nn.normalization import RMSNorm as RMSNorm
from nnxkit.nn.pooling import avg_pool as avg_pool
from nnxkit.nn.pooling import max_pool as max_pool
from nnxkit.nn.pooling import min_pool as min_pool
from nnxkit.nn.pooling import pool as pool
from nnxkit.nn.recurrent import GRUCell as GRUCell
from nnxkit.nn.recurrent import LSTMCell as LSTMCell
from nnxkit.nn.recurrent import OptimizedLSTMCell as OptimizedLSTMCell
from nnxkit.nn.recurrent import RNNCellBase as RNNCellBase
from nnxkit.nn.recurrent import SimpleCell as SimpleCell
from nnxkit.nn.reparametrization import SpectralNorm as SpectralNorm
from nnxkit.nn.reparametrization import WeightNorm as WeightNorm
from nnxkit.nn.rotary import RoPE as RoPE
from nnxkit.nn.rotary import dot_product_attention_with_rope as dot_product_attention_with_rope
from nnxkit.nn.sequences import RNN as RNN
from nnxkit.nn.sequences import Bidirectional as Bidirectional
from nnxkit.nn.stochastic import Dropout as Dropout
from nnxkit.spmd import abstract_with_sharding as abstract_with_sharding
from nnxkit.spmd import as_abstract as as_abstract
from nnxkit.spmd import get_abstract_model as get_abstract_model
from nnxkit.spmd import get_named_sharding as get_named_sharding
from nnxkit.spmd import get_partition_spec as get_partition_spec
from nnxkit.spmd import logical_axis_rules as logical_axis_rules
from nnxkit.spmd import with_partitioning as with_partitioning
from nnxkit.summary import progress as progress
from nnxkit.summary import tabulate as tabulate
from nnxkit.training.ema import EMA as EMA
from nnxkit.training.metrics import Metric as Metric
from nnxkit.training.metrics import MultiMetric as MultiMetric
from nnxkit.training.optimizer import ModelAndOptimizer as ModelAndOptimizer
from nnxkit.training.optimizer import OptArray as OptArray
from nnxkit.training.optimizer import Optimizer as Optimizer
from nnxkit.training.optimizer import OptState as OptState
from nnxkit.training.optimizer import OptVariable as OptVariable
from nnxkit.training.train_state import TrainState as TrainState

if _TYPE_CHECKING:
    from nnxkit import checkpoints as checkpoints

_WHEN_USED = {"bridge": "nnxkit.bridge", "wrappers": "nnxkit.bridge", "checkpoints": "nnxkit.checkpoints"}


def __getattr__(name: str) -> _ModuleType:
    """Modules that most programs do without are imported when they are first used; ``nnx.bridge`` needs flax."""
    if name in _WHEN_USED:
        return _import_module(_WHEN_USED[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


for _public in list(vars().values()):
    if isinstance(_public, type) and _public.__module__.partition(".")[0] == __name__:
        _public.__module__ = __name__
