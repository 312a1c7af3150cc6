"""Optimizers."""

from nnxkit.training.optimizer import ModelAndOptimizer as ModelAndOptimizer
from nnxkit.training.optimizer import OptArray as OptArray
from nnxkit.training.optimizer import Optimizer as Optimizer
from nnxkit.training.optimizer import OptState as OptState
from nnxkit.training.optimizer import OptVariable as OptVariable
