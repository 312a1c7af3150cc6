"""Branches, checks, and what a function would do."""

from nnxkit._transforms import checkify as checkify
from nnxkit._transforms import cond as cond
from nnxkit._transforms import eval_shape as eval_shape
from nnxkit._transforms import make_jaxpr as make_jaxpr
from nnxkit._transforms import switch as switch
