"""Arguments that functions of JAX and optax do not have, or get twice (NNX825): ``nnx.initializers.normal(std=0.02)``.

Invariants: an argument counts that no release known has or had; functions that take any keyword, and what another
check says of an argument, are left alone.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from nnx_lint.model.tables.jax_gone import GONE
from nnx_lint.model.tables.public_names import NAMES, PARAMETERS
from nnx_lint.reporting import Reporter, judges_calls
from nnx_lint.rules.construction.misplaced import is_newer
from nnx_lint.rules.construction.ported import OPTIONS, REDUCTION
from nnx_lint.rules.program import given, is_tried
from nnx_lint.rules.training import signatures
from nnx_lint.rules.transforms.conditions import TAKEN
from nnx_lint.rules.variables.arity import is_written_whole
from nnx_lint.rules.variables.tensors import ARGUMENTS
from nnx_rules.rules import variables as rules

if TYPE_CHECKING:
    from nnx_lint.model.events import Called

SAID = frozenset({*OPTIONS, *REDUCTION})
"""Arguments of PyTorch that have findings of their own, as those that functions of arrays take have."""

OWN = frozenset({"dot_product_attention"})
"""Functions that NNX has under a name of JAX with parameters of its own."""

OF_ARRAYS = ("jax.nn.", "jax.numpy.", "nnx.")

SHARED = {
    **{f"nnx.{name}": f"jax.nn.{name}" for name in NAMES["jax.nn"] if name not in OWN},
    **{f"nnx.initializers.{name}": f"jax.nn.initializers.{name}" for name in NAMES["jax.nn.initializers"]},
}
"""Functions of JAX that NNX has, too."""

ELSEWHERE = frozenset({*signatures.PARAMETERS, *(f"jax.lax.{name}" for name in (*TAKEN, "map", "scan"))})
"""Functions whose arguments other checks look at."""

KNOWN = {
    **{name: names for name, names in PARAMETERS.items() if name not in ELSEWHERE},
    **{name: PARAMETERS[of] for name, of in SHARED.items() if of in PARAMETERS},
}


@judges_calls(rules.TENSOR_IDIOM, *KNOWN, when=lambda event: bool(event.keywords))
def keyword_unknown(event: Called, report: Reporter) -> None:
    subject, keywords = event.subject or "", given(event).keywords
    names = KNOWN[subject].split()
    if "**" in keywords or keywords.keys() <= {*names}:
        return
    of = SHARED.get(subject, subject)
    unknown = [name for name in keywords if name not in names and f"{of}({name})" not in GONE]
    if not unknown or unknown[0].startswith("_") or not SAID.isdisjoint(unknown):
        return
    if subject.startswith(OF_ARRAYS) and not {*ARGUMENTS, "inplace"}.isdisjoint(unknown):
        return
    near = difflib.get_close_matches(unknown[0], names, n=1, cutoff=NEAR)
    if not near and unknown[0] not in ARGUMENTS:
        return  # a later release may have it
    if not is_tried(event.frame.module, event.node) and not is_newer(event.frame.module, report):
        problem = f"`{event.name}` takes no `{unknown[0]}`"
        mend = f"it is called `{near[0]}`" if near else f"its parameters are {', '.join(f'`{name}`' for name in names)}"
        report(event.frame.module, event.node, problem=problem, mend=mend)


ANY_NUMBER = frozenset(
    {
        *(f"jax.numpy.{name}" for name in ("array", "einsum", "einsum_path", "gradient", "meshgrid")),
        "optax.tree_map_params",
    }
)
"""Functions that take as many arguments by position as there are."""

BY_PLACE = tuple(name for name in KNOWN if name not in ANY_NUMBER)


@judges_calls(rules.TENSOR_IDIOM, *BY_PLACE, when=lambda event: bool(event.keywords) and bool(event.args))
def keyword_given_twice(event: Called, report: Reporter) -> None:
    """An argument by position in the place of one that follows by name: ``jnp.sum(x, 1, axis=0)``."""
    names = KNOWN[event.subject or ""].split()[: len(event.args)]
    twice = next((name for name in names if name in event.keywords), None)
    if twice is not None and is_written_whole(event) and not is_tried(event.frame.module, event.node):
        problem = f"`{event.name}` gets `{twice}` twice, by position and by name"
        order = ", ".join(f"`{name}`" for name in KNOWN[event.subject or ""].split())
        mend = f"its parameters are, in this order, {order}"
        report(event.frame.module, event.node, problem=problem, mend=mend)


NEAR = 0.6
"""How alike a name and what is meant by it have to be."""
