"""Variables of NNX as variables of Linen, and back."""

from nnxkit.bridge._variables import NNXMeta as NNXMeta
from nnxkit.bridge._variables import to_linen_var as to_linen_var
from nnxkit.bridge._variables import to_nnx_var as to_nnx_var
