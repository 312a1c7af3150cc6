"""`make demo`: nnx-lint on example mistakes, nnx-lint on a package that nobody here wrote, a model trained on nnxkit.

Each step is the command that a person would type, and is shown before its output. Findings are what the first two
steps are for; any other failure of a step ends the demo with that step's exit code.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from fetch import Package, fetch

ROOT = Path(__file__).resolve().parent.parent
NNX_LINT = Path(sys.executable).with_name("nnx-lint")
CLEAN, FINDINGS = 0, 1

JRAPHX = Package("jraphx", "0.1.0", "cb4deb7008531b7fcd222746bff31652d92852fd4f7ebe7fdb6f8f4534fb22f9")


def step(title: str, command: Sequence[str | Path], *, accepted: Sequence[int] = (CLEAN,)) -> None:
    """Show a title and a command, run it from the repository's root, and stop unless its exit code is accepted."""
    shown = [Path(word).name if word in (NNX_LINT, sys.executable) else str(word) for word in command]
    print(f"\n── {title}\n$ {' '.join(shown)}", flush=True)
    code = subprocess.run(list(command), cwd=ROOT, check=False).returncode
    if code not in accepted:
        sys.exit(f"demo: `{' '.join(shown)}` ended with exit code {code}")


def main() -> None:
    """Run the three steps."""
    # The model is small: an accelerator would only add its start-up.
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    step("Four mistakes that flax.nnx reports late or never", [NNX_LINT, "examples/mistakes"], accepted=(FINDINGS,))
    package = fetch(JRAPHX).relative_to(ROOT)
    step(
        f"A real package from PyPI, {JRAPHX.name} {JRAPHX.version}",
        [NNX_LINT, "--output-format", "concise", package],
        accepted=(CLEAN, FINDINGS),
    )
    step("A model trained on nnxkit", [sys.executable, "examples/train_mlp.py"])


if __name__ == "__main__":
    main()
