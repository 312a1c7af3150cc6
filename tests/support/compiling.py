"""How programs are compiled while tests run.

Thousands of small programs run once each, so most of their time is the compiler's. On the first interpreter it leaves
optimizing out, which takes half of that time away; on the second one, which runs the newest jax, it compiles as it does
for users. What prints figures that depend on the last bits, and what computes for long, asks for
:func:`ordinary` compiling.
"""

import os
from importlib import metadata

DEVICES = "--xla_force_host_platform_device_count=8"
"""Transforms over devices need some; everything else runs on the first of them as if it were alone."""

_UNOPTIMIZED = (
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_use_fusion_emitters=false",  # unknown to later compilers, which refuse to start
)
_LAST = (0, 10)
"""The last version of jaxlib that takes these."""


def flags() -> str:
    """The flags for XLA, those that are set already first; to be set before jax is imported."""
    given = os.environ.get("XLA_FLAGS", "")
    try:
        version = tuple(int(part) for part in metadata.version("jaxlib").split(".")[:2])
    except metadata.PackageNotFoundError:
        version = _LAST
    quick = _UNOPTIMIZED if version <= _LAST else ()
    return " ".join(flag for flag in (given, *quick, DEVICES) if flag)


def ordinary() -> dict[str, str]:
    """The environment for a process that compiles as those of users do."""
    left = (flag for flag in os.environ.get("XLA_FLAGS", "").split() if flag not in _UNOPTIMIZED)
    return {**os.environ, "XLA_FLAGS": " ".join(left)}
