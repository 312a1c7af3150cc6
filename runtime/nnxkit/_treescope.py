"""Rendering in notebooks: objects as treescope trees. Loaded only when treescope asks an object for its rendering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import treescope.repr_lib  # type: ignore[import-untyped, import-not-found, unused-ignore]

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nnxkit._pytree import Pytree
    from nnxkit._variable import Variable


def _render(cls: type, attributes: dict[str, Any], path: Any, subtree_renderer: Any) -> Any:
    return treescope.repr_lib.render_object_constructor(
        object_type=cls, attributes=attributes, path=path, subtree_renderer=subtree_renderer
    )


def render_pytree(node: Pytree, path: Any, subtree_renderer: Any) -> Any:
    """The attributes that the repr shows."""
    nodes = node._pytree__nodes
    shown = {name: value for name, value in vars(node).items() if not name.startswith("_") or nodes.get(name)}
    return _render(type(node), shown, path, subtree_renderer)


def render_variable(variable: Variable[Any], path: Any, subtree_renderer: Any) -> Any:
    """The value, and the metadata that is not default."""
    metadata = {name: value for name, value in variable.get_metadata().items() if not variable.is_default(name, value)}
    shown = {"value": variable.get_raw_value(), **metadata}
    return _render(type(variable), shown, path, subtree_renderer)


def render_mapping(value: Mapping[Any, Any], items: Mapping[Any, Any], path: Any, subtree_renderer: Any) -> Any:
    """The items, as those of a dictionary."""
    return treescope.repr_lib.render_dictionary_wrapper(
        object_type=type(value), wrapped_dict=dict(items), path=path, subtree_renderer=subtree_renderer
    )


def render_sequence(value: Sequence[Any], path: Any, subtree_renderer: Any) -> Any:
    """The elements, as those of a list."""
    return treescope.repr_lib.render_list_wrapper(
        object_type=type(value), wrapped_sequence=list(value), path=path, subtree_renderer=subtree_renderer
    )
