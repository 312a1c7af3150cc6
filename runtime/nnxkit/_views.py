"""Views: a module in another mode that shares the Variables of the original.

A view is a new graph of nodes with the same Variables; only the mode of its modules differs. Which modes a layer
has, it says itself in a method ``set_view(self, name=None, ...)``, whose keywords ``nnx.view`` accepts.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar

from nnxkit._graph import clone
from nnxkit._module import Module, _selected, unknown_attributes

if TYPE_CHECKING:
    from collections.abc import Mapping

A = TypeVar("A")


def _mode_parameters(module: Module) -> Mapping[str, inspect.Parameter]:
    set_view = getattr(module, "set_view", None)
    return inspect.signature(set_view).parameters if callable(set_view) else {}


def view(
    node: A, /, *, only: Any = ..., raise_if_not_found: bool = True, graph: bool | None = None, **kwargs: Any
) -> A:
    """A node like ``node`` that shares its Variables, with its layers in another mode.

    Args:
        node: a module.
        only: filter for the modules whose mode changes.
        raise_if_not_found: whether a keyword that no layer takes is an error.
        graph: graph or tree mode; ``None`` for the configured one.
        **kwargs: the mode, as the ``set_view`` methods of the layers take it.

    Raises:
        UnknownAttributeError: no selected layer takes one of the keywords.

    >>> import nnxkit as nnx
    >>> layer = nnx.Dropout(0.5)
    >>> nnx.view(layer, deterministic=True).deterministic, layer.deterministic
    (True, False)
    """
    result = clone(node, variables=False, graph=graph)
    selected = _selected(result, (only,), graph)
    missing = set(kwargs)
    for module in selected:
        if taken := kwargs.keys() & _mode_parameters(module).keys():
            module.set_view(**{name: kwargs[name] for name in taken})  # type: ignore[attr-defined]
            missing -= taken
    if missing and raise_if_not_found:
        names = [name for name in kwargs if name in missing]
        raise unknown_attributes(node, names, [set(_mode_parameters(module)) for module in selected])
    return result


def with_attributes(
    node: A, /, *, only: Any = ..., raise_if_not_found: bool = True, graph: bool | None = None, **attributes: Any
) -> A:
    """A node like ``node`` that shares its Variables, with other values of the attributes that its modules have.

    Raises:
        UnknownAttributeError: no selected module has one of the attributes.
    """
    result = clone(node, variables=False, graph=graph)
    Module.set_attributes(result, only, raise_if_not_found=raise_if_not_found, graph=graph, **attributes)  # type: ignore[arg-type]
    return result


def view_info(node: Any, /, *, only: Any = ..., graph: bool | None = None) -> str:
    """The keywords that ``nnx.view`` takes for this node, by class, with what the ``set_view`` methods say about
    them.
    """
    classes: dict[type[Any], Mapping[str, inspect.Parameter]] = {}
    for module in _selected(node, (only,), graph):
        if parameters := _mode_parameters(module):
            classes.setdefault(type(module), parameters)
    return "\n".join(
        _describe(cls, parameters) for cls, parameters in sorted(classes.items(), key=lambda item: item[0].__qualname__)
    )


def _describe(cls: Any, parameters: Mapping[str, inspect.Parameter]) -> str:
    documented = _documented_arguments(inspect.getdoc(cls.set_view) or "")
    lines = [f"{cls.__qualname__}:"]
    for name, parameter in parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        annotation = parameter.annotation
        annotation = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        lines.append(f"  {name}: {annotation} = {parameter.default!r}")
        lines.extend(f"    {line}" for line in documented.get(name, ()))
    return "\n".join(lines)


def _documented_arguments(doc: str) -> dict[str, list[str]]:
    """The lines that the ``Args:`` section of a docstring has for each argument."""
    arguments: dict[str, list[str]] = {}
    current: list[str] | None = None
    _, _, section = doc.partition("Args:\n")
    for line in section.splitlines():
        name, colon, text = line.strip().partition(":")
        if colon and name.isidentifier():
            current = arguments.setdefault(name, [])
            current.append(text.strip())
        elif line.strip() and current is not None:
            current.append(line.strip())
        else:
            break
    return arguments
