"""Trace levels."""

from nnxkit._trace import TraceState as TraceState
from nnxkit._trace import current_jax_trace as current_jax_trace
from nnxkit._trace import current_trace as current_trace
