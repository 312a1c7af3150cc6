"""The rules of NNX, once, in pure standard-library Python.

Everything in nnxkit that has an opinion about NNX code asks this package: the runtime enforces these rules on live
objects, the analyzer predicts them from source, the editor and the type-checker plugin show them, the docs print them.

Invariants:

* nothing here imports anything but the standard library, so that a linter starts in milliseconds;
* nothing here looks at a live object or at syntax: callers hand in *facts*, so both sides run the same code;
* every message that a user can see comes from a :class:`~nnx_rules.registry.Rule`.
"""

from nnx_rules._version import __version__ as __version__
