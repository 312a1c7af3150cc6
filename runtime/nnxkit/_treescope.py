"""Rendering in notebooks: objects as treescope trees. Loaded only when treescope asks an object for its rendering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import treescope.repr_lib  # type: ignore[import-untyped, import-not-found, unused-ignore]

if TYPE_CHECKING:
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
