"""Pytrees of objects as pytrees of structure and values."""

from nnxkit._graph._trees import NodeStates as NodeStates
from nnxkit._graph._trees import clear_non_graph_nodes as clear_non_graph_nodes
from nnxkit._graph._trees import from_tree as from_tree
from nnxkit._graph._trees import is_node_states as is_tree_node
from nnxkit._graph._trees import to_tree as to_tree
from nnxkit._transforms._prefix_trees import prefix as prefix

__all__ = ["NodeStates", "clear_non_graph_nodes", "from_tree", "is_tree_node", "prefix", "to_tree"]
