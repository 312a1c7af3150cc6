"""States: the values of a graph, nested or flat, and functions over them."""

from nnxkit._state._flat import FlatState as FlatState
from nnxkit._state._functions import filter_state as filter_state
from nnxkit._state._functions import from_flat_state as from_flat_state
from nnxkit._state._functions import map_state as map_state
from nnxkit._state._functions import merge_state as merge_state
from nnxkit._state._functions import replace_by_pure_dict as replace_by_pure_dict
from nnxkit._state._functions import restore_int_paths as restore_int_paths
from nnxkit._state._functions import split_state as split_state
from nnxkit._state._functions import to_flat_state as to_flat_state
from nnxkit._state._functions import to_pure_dict as to_pure_dict
from nnxkit._state._tree import State as State
