"""Pytrees and the status of their attributes."""

from nnxkit._annotations import Data as Data
from nnxkit._annotations import Static as Static
from nnxkit._annotations import data as data
from nnxkit._annotations import dataclass as dataclass
from nnxkit._annotations import register_data_type as register_data_type
from nnxkit._annotations import static as static
from nnxkit._facts import has_data as has_data
from nnxkit._facts import is_data as is_data
from nnxkit._pytree import Object as Object
from nnxkit._pytree import Pytree as Pytree
from nnxkit._pytree import PytreeMeta as PytreeMeta
from nnxkit._pytree import check_pytree as check_pytree
from nnxkit._trace import PytreeState as PytreeState
