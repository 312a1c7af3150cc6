"""Derivatives."""

from nnxkit._transforms import DiffState as DiffState
from nnxkit._transforms import checkpoint as checkpoint
from nnxkit._transforms import custom_vjp as custom_vjp
from nnxkit._transforms import grad as grad
from nnxkit._transforms import jvp as jvp
from nnxkit._transforms import remat as remat
from nnxkit._transforms import value_and_grad as value_and_grad
from nnxkit._transforms import vjp as vjp
