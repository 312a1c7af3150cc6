"""How far the interpreter goes: what a check may cost, and where summaries have to do.

Invariant: beyond a limit, what no summary says is unknown.
"""

from __future__ import annotations

MAX_DEPTH = 7
"""How deep calls are followed."""

STEPS_PER_MODULE = 120_000
"""How many statements one module may execute, calls included."""

MAX_DEPTH_ON_HOST = 1
"""How deep calls are followed outside of traces and constructors, within the module; summaries say the rest. What the
body of a module calls, and what that calls, a few times over, is followed into other modules, too."""

MAX_DEPTH_WITH_SHAPES = 4
"""The same for calls that hand over arrays of which something is known, or of methods of objects of known sizes: they
go through the layers of a model."""

MAX_ABROAD_IN_CONSTRUCTION = 1
"""How deep the calls of a Pytree's constructor into other modules are followed, besides those of its own methods."""

MAX_ABROAD_WITH_FUNCTIONS = 2
"""The same for calls that hand over functions."""

MAX_RUNS = 12
"""How often one function body is executed for calls, besides its own entry."""

MAX_ENTERED = 8
"""How many functions are run on their own inside of each other, because one asks for the summary of the next."""

MAX_RUNS_IN_CONSTRUCTION = 60
"""The same for calls that a constructor makes: what helper functions return to it is what the object is made of."""


class Budget(Exception):
    """The budget of the module is spent; everything not yet seen stays unknown."""
