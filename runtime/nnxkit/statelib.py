"""States."""

from nnxkit._state import FlatState as FlatState
from nnxkit._state import State as State
from nnxkit._state import filter_state as filter_state
from nnxkit._state import from_flat_state as from_flat_state
from nnxkit._state import map_state as map_state
from nnxkit._state import merge_state as merge_state
from nnxkit._state import replace_by_pure_dict as replace_by_pure_dict
from nnxkit._state import restore_int_paths as restore_int_paths
from nnxkit._state import split_state as split_state
from nnxkit._state import to_flat_state as to_flat_state
from nnxkit._state import to_pure_dict as to_pure_dict
from nnxkit._state._functions import diff as diff
