"""Loops and batches."""

from nnxkit._transforms import Carry as Carry
from nnxkit._transforms import StateAxes as StateAxes
from nnxkit._transforms import fori_loop as fori_loop
from nnxkit._transforms import pmap as pmap
from nnxkit._transforms import scan as scan
from nnxkit._transforms import transform_metadata as transform_metadata
from nnxkit._transforms import vmap as vmap
from nnxkit._transforms import while_loop as while_loop
