"""Typed errors: one class for each kind of mistake, all with the same fields.

Every error that the runtime raises for a rule is an :class:`NNXError`. It is also a ``ValueError``, ``TypeError``,
``AttributeError`` or ``KeyError`` where NNX code already catches one of these, so existing ``except`` clauses keep
working. The text is made from the fields, in a fixed order: what is wrong, then the rule, where, the mend, and
what flax.nnx says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnx_rules.registry import Rule

Path = tuple[object, ...]
"""Where a value sits in a graph: attribute names and indices from the root, ``("layers", 0, "kernel")``."""

Place = tuple[str, int]
"""A line of source: file name and one-based line number."""


def format_path(path: Sequence[object]) -> str:
    """Render a path the way the attribute is reached in Python: ``layers[0].kernel``.

    >>> format_path(("layers", 0, "kernel"))
    'layers[0].kernel'
    >>> format_path(())
    '<root>'
    """
    if not path:
        return "<root>"
    text = ""
    for key in path:
        if isinstance(key, str) and key.isidentifier():
            text += f".{key}" if text else key
        else:
            text += f"[{key!r}]"
    return text


class NNXError(Exception):
    """A mistake that a rule describes.

    Attributes:
        rule: the rule that was broken; ``None`` only for errors that no rule describes.
        cls: name of the class of the object concerned, or ``None``.
        path: path of the attribute or leaf concerned, or ``None``.
        other_path: the second path of a conflict (aliases, duplicates), or ``None``.
        first_assigned: file and line where the attribute got its status, or ``None``.
        help: the mend, in one or more lines.
        in_flax: key words of what flax.nnx raises there.
    """

    def __init__(
        self,
        message: str,
        *,
        rule: Rule | None = None,
        cls: str | None = None,
        path: Path | None = None,
        other_path: Path | None = None,
        first_assigned: Place | None = None,
        help: str = "",
        in_flax: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.rule = rule
        self.cls = cls
        self.path = path
        self.other_path = other_path
        self.first_assigned = first_assigned
        self.help = help
        self.in_flax = in_flax

    @property
    def code(self) -> str | None:
        """Stable code of the rule, such as ``NNX101``."""
        return self.rule.code if self.rule is not None else None

    def __str__(self) -> str:
        lines = [self.message]
        if self.rule is not None:
            lines.append(f"  rule: {self.rule.code} {self.rule.name}")
        if self.first_assigned is not None:
            lines.append("  first assigned: {}:{}".format(*self.first_assigned))
        lines.extend(f"  help: {line}" for line in self.help.splitlines())
        if self.in_flax:
            lines.append(f"  in flax: {self.in_flax}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions cross process boundaries (pytest-xdist, multiprocessing): keyword fields must survive pickling.
        return (_rebuild, (type(self), self.message, {name: getattr(self, name) for name in _FIELDS}))


_FIELDS = ("rule", "cls", "path", "other_path", "first_assigned", "help", "in_flax")


def _rebuild(kind: type[NNXError], message: str, fields: dict[str, object]) -> NNXError:
    return kind(message, **fields)  # type: ignore[arg-type]


class AttributeStatusError(NNXError, ValueError):
    """A value contradicts the data/static status of the attribute that receives it."""


class StatusTagError(NNXError, ValueError):
    """``nnx.data`` or ``nnx.static`` is used where it has no meaning."""


class StatusTagArgumentError(NNXError, TypeError):
    """``nnx.data`` or ``nnx.static`` is called with arguments that it does not take."""


class ClassDefinitionError(NNXError, ValueError):
    """A class statement asks for something that a Pytree class cannot be."""


class ClassLayoutError(NNXError, TypeError):
    """A class statement has a memory layout or a signature that a Pytree class cannot have."""


class TraceContextError(NNXError):
    """An object is changed from another trace level than the one it was created in."""


class FilterError(NNXError, ValueError):
    """A list of filters can not do what it says."""


class FilterTypeError(NNXError, TypeError):
    """A value is not a filter, or a filter is built from the wrong arguments."""


class StateMismatchError(NNXError, ValueError):
    """A State does not fit the graph that it is merged or written into."""


class StateArgumentError(NNXError, TypeError, ValueError):
    """A graph function got a State, GraphDef or node in the wrong place. flax raises one or the other for it."""


class GraphError(NNXError, ValueError):
    """A graph has a structure that the operation does not support (sharing, cycles, immutable containers)."""


class ContextError(NNXError, ValueError, AttributeError):
    """A graph update context is missing, or is used outside its scope: it has no attributes any more."""


class SowError(NNXError, ValueError):
    """``sow`` or ``perturb`` meets an attribute that it cannot write."""


class UnknownAttributeError(NNXError, ValueError):
    """``train``, ``eval``, ``set_attributes`` or ``view`` names an attribute that no module has."""


class TransformArgumentError(NNXError, ValueError):
    """A transform gets a function, a prefix or an option that it can not work with."""


class TransformTypeError(NNXError, TypeError):
    """A transform gets a function, a prefix or an option of the wrong type."""


class RngStreamError(NNXError, AttributeError):
    """A named random stream does not exist and there is no default stream."""


class RngStreamKeyError(NNXError, KeyError):
    """``rngs["name"]`` asks for a stream that does not exist."""

    __str__ = NNXError.__str__  # KeyError would print the repr of the message


class RngArgumentError(NNXError, ValueError):
    """A random stream is made from something that is neither a seed nor a key."""


class LayerArgumentError(NNXError, ValueError, TypeError):
    """A layer is made or called without something that it needs, or with something that it does not take."""


class LayerStreamsError(LayerArgumentError, AttributeError):
    """A layer is made with something that is no set of random streams. flax raises an AttributeError for it."""


class LayerShapeError(NNXError, TypeError, ValueError):
    """A layer got an array of a shape that it was not made for. JAX raises one or the other for it."""


class OptimizerArgumentError(NNXError, TypeError):
    """An optimizer is made or updated with other arguments than it takes."""


class GradientsMismatchError(NNXError, ValueError):
    """Gradients have another structure or shape than what is optimized."""


class MetricArgumentError(NNXError, ValueError):
    """A metric gets an argument that it has no meaning for."""


class MetricCallError(NNXError, TypeError):
    """A metric is updated without the argument that it measures."""


class VariableError(NNXError, ValueError):
    """A Variable is asked for something that its type, metadata or registration does not allow."""


class VariableAttributeError(NNXError, AttributeError):
    """An attribute of a Variable is set or deleted that only the metadata functions may change."""


class LeafMismatch(NamedTuple):
    """One leaf in which a checkpoint and a model differ.

    Attributes:
        path: path of the leaf in the model; ``None`` if the model has no such leaf.
        name: name of the leaf in the checkpoint; the one that was looked for if the checkpoint lacks it.
        kind: ``"missing"`` in the checkpoint, ``"unknown"`` to the model, or of another ``"shape"`` or ``"dtype"``.
        expected: shape or dtype of the model, as the checkpoint would have it.
        given: shape or dtype of the checkpoint.
    """

    path: Path | None
    name: str
    kind: str
    expected: object = None
    given: object = None


class CheckpointMismatchError(NNXError, ValueError):
    """A checkpoint does not fit the model that it is restored into.

    Attributes:
        mismatches: all differences, in the order of the model, and after them what the model does not know.
    """

    mismatches: tuple[LeafMismatch, ...] = ()

    def __reduce__(self) -> tuple[object, ...]:
        return (*super().__reduce__(), {"mismatches": self.mismatches})


class CheckpointNotFoundError(NNXError, FileNotFoundError):
    """There is no checkpoint at a path, or none of a step."""


class CheckpointFormatError(NNXError, ValueError):
    """What lies at a path is no checkpoint, or not a whole one."""


class CheckpointExistsError(NNXError, FileExistsError):
    """A checkpoint would replace another one."""


class CheckpointArgumentError(NNXError, ValueError):
    """A checkpoint function gets an argument that it has no meaning for."""
