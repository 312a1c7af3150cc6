"""Modules of Flax's Linen as NNX modules, and NNX modules as Linen modules: ``nnx.bridge``.

For projects that move over piece by piece: either kind may hold the other. It needs flax, which nothing else here does,
so this package is imported when ``nnx.bridge`` is first used.
"""

try:
    import flax.linen as _linen  # noqa: F401 - here for the message
except ImportError as _error:
    raise ImportError("nnx.bridge needs flax, for its Linen modules; install it with: pip install flax") from _error

from nnxkit.bridge import variables as variables
from nnxkit.bridge._functional import Functional as Functional
from nnxkit.bridge._functional import functional as functional
from nnxkit.bridge._to_linen import ToLinen as ToLinen
from nnxkit.bridge._to_linen import to_linen as to_linen
from nnxkit.bridge._to_linen import to_linen_class as to_linen_class
from nnxkit.bridge._to_nnx import ToNNX as ToNNX
from nnxkit.bridge._to_nnx import lazy_init as lazy_init
from nnxkit.bridge._variables import NNXMeta as NNXMeta
from nnxkit.bridge._variables import to_linen_var as to_linen_var
from nnxkit.bridge._variables import to_nnx_var as to_nnx_var
