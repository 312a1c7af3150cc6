from typing import Any

from jax import numpy as numpy

class Array:
    shape: tuple[int, ...]
    def __add__(self, other: Any) -> Array: ...
