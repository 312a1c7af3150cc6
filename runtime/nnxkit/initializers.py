"""Initializers."""

from nnxkit.nn.initializers import Initializer as Initializer
from nnxkit.nn.initializers import constant as constant
from nnxkit.nn.initializers import delta_orthogonal as delta_orthogonal
from nnxkit.nn.initializers import glorot_normal as glorot_normal
from nnxkit.nn.initializers import glorot_uniform as glorot_uniform
from nnxkit.nn.initializers import he_normal as he_normal
from nnxkit.nn.initializers import he_uniform as he_uniform
from nnxkit.nn.initializers import kaiming_normal as kaiming_normal
from nnxkit.nn.initializers import kaiming_uniform as kaiming_uniform
from nnxkit.nn.initializers import lecun_normal as lecun_normal
from nnxkit.nn.initializers import lecun_uniform as lecun_uniform
from nnxkit.nn.initializers import normal as normal
from nnxkit.nn.initializers import ones as ones
from nnxkit.nn.initializers import ones_init as ones_init
from nnxkit.nn.initializers import orthogonal as orthogonal
from nnxkit.nn.initializers import truncated_normal as truncated_normal
from nnxkit.nn.initializers import uniform as uniform
from nnxkit.nn.initializers import variance_scaling as variance_scaling
from nnxkit.nn.initializers import xavier_normal as xavier_normal
from nnxkit.nn.initializers import xavier_uniform as xavier_uniform
from nnxkit.nn.initializers import zeros as zeros
from nnxkit.nn.initializers import zeros_init as zeros_init
