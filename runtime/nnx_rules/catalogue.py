"""All names of the top level of NNX: what each is, when it came and went, for whoever offers or explains names.

Most are in the table that knows what they mean; this module adds those that no other table needs, and puts them
together. Names are given without the ``nnx.``.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from nnx_rules import api, signatures, transforms, versions
from nnx_rules.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_rules.registry import Version

VARIABLE, CLASS, TRANSFORM, FUNCTION, MODULE = "Variable type", "class", "transform", "function", "module"

_OTHERS: dict[str, str] = {
    CLASS: "GraphDef GraphState Initializer MergeContext Metric MultiMetric NodeStates PureState State UpdateContext",
    FUNCTION: (
        "avg_pool celu clone combine_masks current_update_context display dot_product_attention elu gelu "
        "get_named_sharding get_partition_spec glu graphdef hard_sigmoid hard_silu hard_swish hard_tanh identity "
        "iter_graph leaky_relu log_sigmoid log_softmax logical_axis_rules logsumexp make_attention_mask "
        "make_causal_mask max_pool merge merge_context min_pool one_hot pool register_variable_name relu relu6 "
        "restore_int_paths selu sigmoid silu soft_sign softmax softplus split_context standardize swish tanh "
        "update_context using_eager_sharding with_metadata with_partitioning"
    ),
    MODULE: " ".join(sorted(api.NAMESPACES)),
}


class Name(Record):
    """A name of the top level.

    Attributes:
        name: the name itself.
        kind: what it is, in words.
        since: the release in which it came, if that is known.
        removed: how it went, if it is gone.
        deprecated: what takes its place, if it warns.
    """

    name: str
    kind: str
    since: Version | None = None
    removed: versions.Removed | None = None
    deprecated: versions.Deprecated | None = None

    def there(self, library: str, version: Version | None) -> bool:
        """Whether a release of a library has it; ``None`` is the newest."""
        if self.removed is not None and not (library == "nnxkit" and self.removed.nnxkit):
            return version is not None and version < self.removed.since
        return library == "nnxkit" or version is None or self.since is None or self.since <= version


@functools.cache
def names() -> dict[str, Name]:
    """All of them, by name."""
    found: dict[str, str] = {}
    for canonical, kind in _kinds():
        library, _, name = canonical.partition(".")
        if library == "nnx" and name.isidentifier():
            found.setdefault(name, kind)
    return {name: _described(name, kind) for name, kind in sorted(found.items())}


def _kinds() -> Iterator[tuple[str, str]]:
    yield from ((name, VARIABLE) for name in api.VARIABLES)
    for known in (api.CLASSES, signatures.SIGNATURES, api.FILTER_CLASSES, api.FILTER_MAPPINGS):
        yield from ((name, CLASS) for name in known)
    yield from ((name, TRANSFORM) for name in transforms.TRANSFORMS)
    for kind, listed in _OTHERS.items():
        yield from ((f"nnx.{name}", kind) for name in listed.split())
    tables = (api.FILTER_FUNCTIONS, api.ATTRIBUTE_FUNCTIONS, api.INPLACE_FUNCTIONS)
    for table in (*tables, versions.ADDED, versions.REMOVED, versions.DEPRECATED):
        yield from ((name, CLASS if name[4:5].isupper() else FUNCTION) for name in table)


def _described(name: str, kind: str) -> Name:
    canonical = f"nnx.{name}"
    return Name(
        name,
        kind,
        versions.ADDED.get(canonical),
        versions.REMOVED.get(canonical),
        versions.DEPRECATED.get(canonical),
    )
