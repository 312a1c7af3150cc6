"""Transforms of functions that work on objects, under the paths that NNX code imports them from."""

from nnxkit.transforms import autodiff as autodiff
from nnxkit.transforms import compilation as compilation
from nnxkit.transforms import general as general
from nnxkit.transforms import iteration as iteration
from nnxkit.transforms import transforms as transforms
