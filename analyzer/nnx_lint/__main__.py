"""``python -m nnx_lint`` and the ``nnx-lint`` script."""

import sys

from nnx_lint.cli import main

if __name__ == "__main__":
    sys.exit(main())
