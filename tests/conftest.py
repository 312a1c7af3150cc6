"""What every test runs under: no accelerator but eight CPU devices, and random tests without a time limit for one
example.
"""

import os
import sys
from collections.abc import Iterator

import hypothesis
import pytest

# A GPU changes printed results and is shared by the workers; whoever wants one says so. Before jax is imported.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# Transforms over devices need some; everything else runs on the first of them as if it were alone.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()

# The first example of a test compiles for seconds on a small machine, so a deadline would measure the machine.
# CI must give the same verdict on the same commit, hence no randomness there.
hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
# For the second interpreter: what is random was tried on the first.
hypothesis.settings.register_profile("brief", deadline=None, derandomize=True, print_blob=True, max_examples=15)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(autouse=True, scope="module")
def _forget_compiled() -> Iterator[None]:
    """What JAX has compiled for one module is of no use to the next, and takes gigabytes over the whole suite."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
