"""Object graphs: structure apart from values.

Layers, from below: ``_graphdef`` (structure), ``_layouts`` (one node), ``_plan`` (one graph, cached), ``_program``
(building), and the public functions on top: ``_functional``, ``_mutation``, ``_traverse``, ``_mapping``, ``_context``.
"""

from nnxkit._graph._context import MergeContext as MergeContext
from nnxkit._graph._context import SplitContext as SplitContext
from nnxkit._graph._context import UpdateContext as UpdateContext
from nnxkit._graph._context import current_update_context as current_update_context
from nnxkit._graph._context import merge_context as merge_context
from nnxkit._graph._context import split_context as split_context
from nnxkit._graph._context import update_context as update_context
from nnxkit._graph._functional import PureState as PureState
from nnxkit._graph._functional import clone as clone
from nnxkit._graph._functional import flatten as flatten
from nnxkit._graph._functional import graphdef as graphdef
from nnxkit._graph._functional import merge as merge
from nnxkit._graph._functional import split as split
from nnxkit._graph._functional import state as state
from nnxkit._graph._functional import unflatten as unflatten
from nnxkit._graph._functional import unpack as unpack
from nnxkit._graph._functional import variables as variables
from nnxkit._graph._graph_state import GraphState as GraphState
from nnxkit._graph._graphdef import ArrayRefDef as ArrayRefDef
from nnxkit._graph._graphdef import GraphDef as GraphDef
from nnxkit._graph._graphdef import LeafAttr as LeafAttr
from nnxkit._graph._graphdef import NodeAttr as NodeAttr
from nnxkit._graph._graphdef import NodeDef as NodeDef
from nnxkit._graph._graphdef import NodeRef as NodeRef
from nnxkit._graph._graphdef import Static as Static
from nnxkit._graph._graphdef import VariableDef as VariableDef
from nnxkit._graph._mapping import call as call
from nnxkit._graph._mapping import map as map
from nnxkit._graph._mapping import recursive_map as recursive_map
from nnxkit._graph._mapping import to_arrays as to_arrays
from nnxkit._graph._mapping import to_refs as to_refs
from nnxkit._graph._mapping import vars_as as vars_as
from nnxkit._graph._mapping import with_vars as with_vars
from nnxkit._graph._modes import config as config
from nnxkit._graph._modes import set_graph_mode as set_graph_mode
from nnxkit._graph._modes import set_graph_updates as set_graph_updates
from nnxkit._graph._mutation import pop as pop
from nnxkit._graph._mutation import set_metadata as set_metadata
from nnxkit._graph._mutation import update as update
from nnxkit._graph._refmap import IndexMap as IndexMap
from nnxkit._graph._refmap import RefMap as RefMap
from nnxkit._graph._traverse import as_pure as as_pure
from nnxkit._graph._traverse import find_duplicates as find_duplicates
from nnxkit._graph._traverse import iter_children as iter_children
from nnxkit._graph._traverse import iter_graph as iter_graph
from nnxkit._graph._traverse import pure as pure
from nnxkit._graph._trees import NodeStates as NodeStates
from nnxkit._graph._trees import from_tree as from_tree
from nnxkit._graph._trees import to_tree as to_tree
