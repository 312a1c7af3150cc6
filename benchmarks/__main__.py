"""Run every benchmark of this folder, one after the other: ``python -m benchmarks``.

Each runs in a process of its own, so that none measures what another left behind.
"""

import subprocess
import sys
from pathlib import Path


def main() -> int:
    failed = 0
    for program in sorted(Path(__file__).parent.glob("*.py")):
        if not program.stem.startswith("_"):
            print(f"\n## {program.stem}\n", flush=True)
            failed |= subprocess.run([sys.executable, program], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
