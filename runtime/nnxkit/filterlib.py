"""Filters, under the name of the module that NNX code imports them from."""

from nnx_rules.filters import All as All
from nnx_rules.filters import Any as Any
from nnx_rules.filters import Everything as Everything
from nnx_rules.filters import Filter as Filter
from nnx_rules.filters import Not as Not
from nnx_rules.filters import Nothing as Nothing
from nnx_rules.filters import OfType as OfType
from nnx_rules.filters import PathContains as PathContains
from nnx_rules.filters import PathIn as PathIn
from nnx_rules.filters import Predicate as Predicate
from nnx_rules.filters import WithTag as WithTag
from nnx_rules.filters import to_predicate as to_predicate
