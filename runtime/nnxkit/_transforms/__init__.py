"""Transforms of functions that work on objects: one pipeline around the transforms of JAX.

From below: ``_captures`` (what a function reaches), ``_inputs`` (the objects of a call as one graph), ``_outcome`` and
``_inner`` (what a function did, inside and outside of the trace), ``_lift`` (one call), ``_prefixes`` (what is to be
done with which part), ``_wrapper`` (transformed functions); and on top one module for each kind of transform.
"""

from nnxkit._transforms._abstract import eval_shape as eval_shape
from nnxkit._transforms._abstract import make_jaxpr as make_jaxpr
from nnxkit._transforms._branches import cond as cond
from nnxkit._transforms._branches import switch as switch
from nnxkit._transforms._checkify import checkify as checkify
from nnxkit._transforms._custom_vjp import custom_vjp as custom_vjp
from nnxkit._transforms._gradients import grad as grad
from nnxkit._transforms._gradients import value_and_grad as value_and_grad
from nnxkit._transforms._jit import jit as jit
from nnxkit._transforms._loops import fori_loop as fori_loop
from nnxkit._transforms._loops import while_loop as while_loop
from nnxkit._transforms._metadata import PARTITION_NAME as PARTITION_NAME
from nnxkit._transforms._metadata import transform_metadata as transform_metadata
from nnxkit._transforms._partials import cached_partial as cached_partial
from nnxkit._transforms._partials import jit_partial as jit_partial
from nnxkit._transforms._pmap import pmap as pmap
from nnxkit._transforms._prefix_trees import prefix as prefix
from nnxkit._transforms._prefixes import Carry as Carry
from nnxkit._transforms._prefixes import DiffState as DiffState
from nnxkit._transforms._prefixes import StateAxes as StateAxes
from nnxkit._transforms._prefixes import StateSharding as StateSharding
from nnxkit._transforms._remat import checkpoint as checkpoint
from nnxkit._transforms._remat import remat as remat
from nnxkit._transforms._scan import scan as scan
from nnxkit._transforms._shard_map import shard_map as shard_map
from nnxkit._transforms._tangents import jvp as jvp
from nnxkit._transforms._tangents import vjp as vjp
from nnxkit._transforms._vmap import vmap as vmap
