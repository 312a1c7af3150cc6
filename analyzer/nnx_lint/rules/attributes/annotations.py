"""Annotations that should say data or static: without effect (NNX112), or contradicting each other (NNX111)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nnx_lint.diagnostics import Edit, Fix, Span
from nnx_lint.model.annotations import declared_name
from nnx_lint.model.events import AttributeSet, ClassDefined
from nnx_lint.model.values import TagVal
from nnx_lint.reporting import Reporter, judges
from nnx_lint.rules.edits import insert
from nnx_lint.rules.spelling import spelled
from nnx_rules.attributes import Status
from nnx_rules.rules import attributes as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.model.frames import Frame
    from nnx_lint.source import SourceFile

MARKS = {"nnx.Data": Status.DATA, "nnx.Static": Status.STATIC}


def ineffective(event: AttributeSet) -> bool:
    """Whether the assignment has an annotation that asks for a status which the attribute does not get."""
    node, verdict = event.node, event.verdict
    if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Attribute) or verdict is None:
        return False
    wanted = MARKS.get(declared_name(event.frame, node.annotation))
    return wanted is not None and (verdict.broken is not None or verdict.status not in {wanted, Status.UNKNOWN})


@judges(rules.INEFFECTIVE_STATUS_ANNOTATION, AttributeSet)
def annotation_in_method(event: AttributeSet, report: Reporter) -> None:
    node = event.node
    if (
        not ineffective(event)
        or not isinstance(node, ast.AnnAssign)
        or node.value is None
        or isinstance(event.value, TagVal)
    ):
        return
    source = event.frame.module.source
    canonical = declared_name(event.frame, node.annotation).lower()
    name = spelled(canonical, event.frame.module, event.frame.env)
    report(
        event.frame.module,
        node.annotation,
        annotation=source.segment(node.annotation),
        mend=f"{source.segment(node.target)} = {name or canonical}(...)",
        fix=Fix("Mark the value instead", _mark_value(source, node, name)) if name is not None else None,
    )


def _mark_value(source: SourceFile, node: ast.AnnAssign, name: str) -> tuple[Edit, ...]:
    assert node.value is not None
    annotated = Span(source.span(node.target).end, source.span(node.annotation).end)
    value = source.span(node.value)
    bare = isinstance(node.value, ast.Tuple) and not source.segment(node.value).startswith("(")
    opening, closing = (f"{name}((", "))") if bare else (f"{name}(", ")")
    return (Edit(annotated, ""), *insert(value.start, opening), *insert(value.end, closing))


@judges(rules.INEFFECTIVE_STATUS_ANNOTATION, ClassDefined)
def annotation_inside_another(event: ClassDefined, report: Reporter) -> None:
    cls = event.cls
    if not cls.checked:
        return
    source = cls.module.source
    for field in cls.fields.values():
        inner = list(_nested_marks(event.frame, field.annotation))
        marked = declared_name(event.frame, field.annotation) in MARKS
        for node in inner:
            name = source.segment(node.value)
            stripped = source.segment(field.annotation).replace(source.segment(node), source.segment(node.slice))
            report(
                cls.module,
                node,
                annotation=source.segment(node),
                mend=f"{field.name}: {stripped if marked else f'{name}[{stripped}]'}",
                fix=_outermost(source, field.annotation, node, name, marked) if len(inner) == 1 else None,
            )


def _nested_marks(frame: Frame, annotation: ast.expr, *, outermost: bool = True) -> Iterator[ast.Subscript]:
    if isinstance(annotation, ast.Subscript):
        name = declared_name(frame, annotation)
        if name in MARKS and not outermost:
            yield annotation
        # `Annotated[Data[T], ...]` is flattened by Python, so the mark counts there.
        parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        for index, part in enumerate(parts):
            yield from _nested_marks(frame, part, outermost=outermost and name == "typing.Annotated" and index == 0)
    elif isinstance(annotation, ast.BinOp):
        yield from _nested_marks(frame, annotation.left, outermost=False)
        yield from _nested_marks(frame, annotation.right, outermost=False)


def _outermost(source: SourceFile, annotation: ast.expr, node: ast.Subscript, name: str, marked: bool) -> Fix:
    outer, inner, content = source.span(annotation), source.span(node), source.span(node.slice)
    removed = (Edit(Span(inner.start, content.start), ""), Edit(Span(content.end, inner.end), ""))
    if marked:
        return Fix(f"Remove the inner `{name}[...]`", removed)
    return Fix(
        f"Move `{name}[...]` to the outside", (*insert(outer.start, f"{name}["), *removed, *insert(outer.end, "]"))
    )


@judges(rules.STATUS_CONFLICT, ClassDefined)
def status_conflict(event: ClassDefined, report: Reporter) -> None:
    cls = event.cls
    if not cls.is_pytree:
        return
    for name, known, declaration in cls.conflicts:
        node = cls.fields[name].node if name in cls.fields else cls.attributes[name][1]
        report(cls.module, node, cls=cls.name, path=name, declared=declaration.status.value, inherited=known.value)
