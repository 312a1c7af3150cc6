"""``python -m nnx_lint`` and the ``nnx-lint`` script."""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # what is linted there: its `typing.py` or `math.py` would hide Python's own

from nnx_lint.cli import main

if __name__ == "__main__":
    sys.exit(main())
