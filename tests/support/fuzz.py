"""`make fuzz`: the linter on random damage to real programs, by the hundred thousand.

Every input follows from its number, so a failure is repeated by `--first NUMBER --inputs 1`. Fails if an input makes
the linter raise, or takes more processor time than a second for every thousand lines, and one more.
"""

import argparse
import sys
import time
import traceback

from hostile import corpus, hostile, survive

FAILURES = 20
"""After so many failures a run ends."""


def main() -> int:
    """Run the inputs, and report."""
    parser = argparse.ArgumentParser(description="Run nnx-lint on damaged programs.")
    parser.add_argument("--inputs", type=int, default=100_000, help="how many (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first (default: %(default)s)")
    arguments = parser.parse_args()
    first, count = int(arguments.first), int(arguments.inputs)
    programs = corpus(large=True)
    failures = 0
    slowest = (0.0, first)
    for number in range(first, first + count):
        path, data = hostile(number, programs)
        start = time.process_time()
        try:
            survive(path, data)
        except Exception:
            failures += 1
            print(f"input {number} ({path}):")
            traceback.print_exc(file=sys.stdout)
        seconds = time.process_time() - start
        slowest = max(slowest, (seconds, number))
        lines = data.count(b"\n")
        if seconds > 1 + lines / 1000:
            failures += 1
            print(f"input {number} ({path}) takes {seconds:.1f} s for {lines} lines")
        if failures >= FAILURES:
            break
        if sys.stderr.isatty() and number % 100 == 0:
            print(f"\r{number - first} of {count}, {failures} failures", end="", file=sys.stderr)
    print(f"{number - first + 1} inputs, {failures} failures; the slowest took {slowest[0]:.2f} s (input {slowest[1]})")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
