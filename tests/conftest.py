"""What every test runs under: no accelerator but eight CPU devices, programs that are compiled once and quickly, and
random tests without a time limit for one example.
"""

import contextlib
import ctypes
import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

import compiling

# A GPU changes printed results and is shared by the workers; whoever wants one says so. Before jax is imported.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# Each worker inherits this, and so does what tests start.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["XLA_FLAGS"] = compiling.flags()

# Most of what these tests would spend their time on is compiling: thousands of small programs that run once, many of
# them alike. So what is compiled for one test is there for the next, and for programs in processes of their own, which
# inherit the variables. Each worker has its own folder in that of the main process: JAX reads an entry that another
# process is still writing, and warns.
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ["JAX_COMPILATION_CACHE_DIR"] += f"/{os.environ['PYTEST_XDIST_WORKER']}"
elif "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    _compiled = tempfile.TemporaryDirectory(prefix="nnxkit-compiled-")  # goes when the process ends
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _compiled.name

# The programs that tests start find the byte code of those before them, as those of an installed package do: some start
# hundreds, and an environment that forbids to write it would have each of them compile what it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The first example of a test compiles for seconds on a small machine, so a deadline would measure the machine.
# CI must give the same verdict on the same commit, hence no randomness there.
hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
# For the second interpreter: what is random was tried on the first.
hypothesis.settings.register_profile("brief", deadline=None, derandomize=True, print_blob=True, max_examples=15)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_configure(config: pytest.Config) -> None:
    # Another thread may be writing the entry just now. Then JAX compiles, and says so.
    config.addinivalue_line("filterwarnings", "ignore:Error reading persistent compilation cache entry")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What mostly waits for editors begins first: at the end nothing would be left to do meanwhile."""
    items.sort(key=lambda item: item.path.parent.name not in {"editors", "vscode"})


def pytest_collection_finish() -> None:
    """Thousands of tests, and what they import, stay to the end: no search for garbage need look at them.

    The linter needs a deep stack. Where it first asked for one within a random test, hypothesis would warn.
    """
    if "nnx_lint" in sys.modules:
        from nnx_lint.engine import STACK

        sys.setrecursionlimit(max(sys.getrecursionlimit(), STACK))
    gc.collect()
    gc.freeze()


def _resident() -> int:
    """The bytes of memory that this process holds now; 0 where the system does not say it."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


_kept = 0


@pytest.fixture(autouse=True)
def _forget_compiled() -> Iterator[None]:
    """What JAX compiled for earlier tests stays in memory, which would take gigabytes over the whole suite; and so does
    what is free again, unless the C library is asked to give it back.
    """
    global _kept
    yield
    if _resident() > _kept + 2**30 and "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
        with contextlib.suppress(AttributeError, OSError, TypeError):  # only that of GNU can be asked
            ctypes.CDLL(None).malloc_trim(0)
        _kept = _resident()
