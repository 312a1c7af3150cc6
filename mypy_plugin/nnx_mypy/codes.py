"""Error codes: one family ``nnx``, with a code for every rule, ``nnx-<name of the rule>``.

Mypy learns codes by their construction, which must come before it reads its options: ``--disable-error-code nnx``
switches the family off, and ``# type: ignore[nnx]`` covers all of it.
"""

from __future__ import annotations

from typing import Final

from mypy.errorcodes import ErrorCode

from nnx_rules.rules import REGISTRY

FAMILY: Final = ErrorCode("nnx", "Mistakes in NNX code", "NNX")
BY_RULE: Final = {
    rule.code: ErrorCode(f"nnx-{rule.name}", rule.summary, "NNX", sub_code_of=FAMILY) for rule in REGISTRY
}
"""The error code of each rule, by the rule's own code."""
