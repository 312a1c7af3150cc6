"""What every test runs under: no accelerator, and random tests without a time limit for one example."""

import os

import hypothesis

# A GPU changes printed results and is shared by the workers; whoever wants one says so. Before jax is imported.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# The first example of a test compiles for seconds on a small machine, so a deadline would measure the machine.
# CI must give the same verdict on the same commit, hence no randomness there.
hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")
