"""Compilation."""

from nnxkit._transforms import StateSharding as StateSharding
from nnxkit._transforms import jit as jit
from nnxkit._transforms import jit_partial as jit_partial
from nnxkit._transforms import shard_map as shard_map
