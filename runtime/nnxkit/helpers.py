"""Containers."""

from nnxkit._containers import Dict as Dict
from nnxkit._containers import List as List
from nnxkit.nn.containers import Sequential as Sequential
