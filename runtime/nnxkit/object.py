"""Objects, by the old name of the module."""

from nnxkit._pytree import Object as Object
from nnxkit._pytree import PytreeMeta as PytreeMeta
