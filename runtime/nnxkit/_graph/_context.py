"""Update contexts: keep the identity of objects through a trip into a pure function and back.

A pure function takes a GraphDef and a State in and gives others out. To the caller it should look as if it had changed
the objects that were passed, the structure included. Four steps do that: (1) an outer split numbers the caller's
objects; (2) an inner merge builds copies under the same numbers; (3) an inner split notes for every object the number
that it came in with, its *outer index*; (4) an outer merge refills the caller's objects by outer index, and makes new
ones only for those without.

Invariants

- Contexts are of a thread and a tag, and stack. The tag guards against using somebody else's context by accident.
- All splits of one `split_context` share one numbering, so sharing between several arguments is kept; the same for
  merges.
- A context refers to objects only between the steps that need them: on leaving it everything is forgotten.
- The outer indices are part of the GraphDef, not of the context: a compiled function that is not traced again gives the
  same GraphDef.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from nnx_rules.rules import graphs as rules
from nnxkit._graph._functional import build, flatten, split_flat
from nnxkit._graph._graphdef import GraphDef
from nnxkit._graph._refmap import RefMap

F = TypeVar("F", bound=Callable[..., Any])


class UpdateContext:
    """The numberings of one trip. All contexts are equal, so that one may be part of a cache key.

    Attributes:
        tag: the tag it was opened under.
        outer_ref_outer_index: numbers of the caller's objects, from step 1 on.
        outer_index_outer_ref: the same the other way round.
        outer_index_inner_ref: objects inside by the number they came in with, from step 2 on.
        inner_ref_outer_index: the same the other way round.
    """

    __module__ = "nnxkit"

    def __init__(
        self,
        tag: str,
        outer_ref_outer_index: RefMap[int] | None = None,
        outer_index_inner_ref: dict[int, Any] | None = None,
        outer_index_outer_ref: dict[int, Any] | None = None,
        inner_ref_outer_index: RefMap[int] | None = None,
        static_cache: Any = None,
    ) -> None:
        self.tag = tag
        self.outer_ref_outer_index = outer_ref_outer_index
        self.outer_index_inner_ref = outer_index_inner_ref
        self.outer_index_outer_ref = outer_index_outer_ref
        self.inner_ref_outer_index = inner_ref_outer_index
        self.static_cache = static_cache

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UpdateContext)

    def __hash__(self) -> int:
        return hash(UpdateContext)

    def __repr__(self) -> str:
        return f"UpdateContext(tag={self.tag!r})"

    def forget(self) -> None:
        """Let go of all objects."""
        self.outer_ref_outer_index = self.outer_index_inner_ref = None
        self.outer_index_outer_ref = self.inner_ref_outer_index = None


class _Stacks(threading.local):
    def __init__(self) -> None:
        self.by_tag: dict[str, list[UpdateContext]] = {}


_stacks = _Stacks()


class _UpdateContextManager:
    """Opens an `UpdateContext` for a block, or for each call of a decorated function."""

    def __init__(self, tag: str) -> None:
        self.tag = tag

    def __enter__(self) -> UpdateContext:
        context = UpdateContext(self.tag)
        _stacks.by_tag.setdefault(self.tag, []).append(context)
        return context

    def __exit__(self, *exc_info: object) -> None:
        stack = _stacks.by_tag[self.tag]
        stack.pop().forget()
        if not stack:
            del _stacks.by_tag[self.tag]

    def __call__(self, f: F) -> F:
        @functools.wraps(f)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with _UpdateContextManager(self.tag):
                return f(*args, **kwargs)

        return wrapper  # type: ignore[return-value]


def update_context(tag: str) -> _UpdateContextManager:
    """Open an `UpdateContext` for a ``with`` block, or for each call of the function that this decorates.

    >>> import nnxkit as nnx
    >>> class Foo(nnx.Module): pass
    >>> m1 = Foo()
    >>> with nnx.update_context("example"):
    ...     with nnx.split_context("example") as ctx:
    ...         graphdef, state = ctx.split(m1)
    ...     with nnx.merge_context("example", inner=True) as ctx:
    ...         m2 = ctx.merge(graphdef, state)
    ...     m2.ref = m2
    ...     with nnx.split_context("example") as ctx:
    ...         graphdef, state = ctx.split(m2)
    ...     with nnx.merge_context("example", inner=False) as ctx:
    ...         m3 = ctx.merge(graphdef, state)
    >>> m3 is m1 and m1.ref is m1
    True
    """
    return _UpdateContextManager(tag)


def current_update_context(tag: str) -> UpdateContext:
    """The innermost context under a tag.

    Raises:
        ContextError: there is none.
    """
    stack = _stacks.by_tag.get(tag)
    if not stack:
        raise rules.CONTEXT_MISSING.error(problem=f"no update context is open under the tag {tag!r}")
    return stack[-1]


class _NumberingContext:
    """A context that has no attributes any more once it was left."""

    def leave(self) -> None:
        """Let go of all objects."""
        vars(self).clear()

    if not TYPE_CHECKING:  # checkers know the attributes

        def __getattr__(self, name: str) -> Any:
            raise rules.CONTEXT_MISSING.error(problem=f"this {type(self).__name__} was left")


class SplitContext(_NumberingContext):
    """Splits that share one numbering of objects; made by `split_context`.

    Attributes:
        ctxtag: tag of the update context that it takes part in.
        is_inner: whether the objects came in through a merge.
        ref_index: numbers of the objects that were split so far.
    """

    __module__ = "nnxkit"

    def __init__(self, ctxtag: str | None, ref_index: RefMap[int], is_inner: bool | None) -> None:
        self.ctxtag = ctxtag
        self.is_inner = is_inner
        self.ref_index = ref_index

    def flatten(self, node: Any, /, *, with_paths: bool = True) -> tuple[GraphDef[Any], Any]:
        """As `nnx.flatten`; an object that was split before is a reference."""
        numbered = self.ref_index
        outer = (
            current_update_context(self.ctxtag).inner_ref_outer_index
            if self.ctxtag is not None and self.is_inner
            else None
        )
        return flatten(node, ref_index=numbered, ref_outer_index=outer, with_paths=with_paths)

    def split(self, node: Any, *filters: Any) -> Any:
        """As `nnx.split`; an object that was split before is a reference, and its leaves are not repeated."""
        graphdef, flat = self.flatten(node)
        return (graphdef, *split_flat(flat, filters))


class MergeContext(_NumberingContext):
    """Merges that share one numbering of objects; made by `merge_context`.

    Attributes:
        ctxtag: tag of the update context that it takes part in.
        is_inner: whether objects come in.
        index_ref: the objects that were merged so far, by number.
    """

    __module__ = "nnxkit"

    def __init__(self, ctxtag: str | None, index_ref: dict[int, Any], is_inner: bool | None) -> None:
        self.ctxtag = ctxtag
        self.is_inner = is_inner
        self.index_ref = index_ref

    def unflatten(self, graphdef: GraphDef[Any], state: Any, /) -> Any:
        """As `nnx.unflatten`; references to objects that were merged before lead to these."""
        return self.merge(graphdef, state)

    def merge(self, graphdef: GraphDef[Any], state: Any, /, *states: Any) -> Any:
        """As `nnx.merge`; references to objects that were merged before lead to these."""
        merged = self.index_ref
        outer = None
        if self.ctxtag is not None and not self.is_inner:
            outer = current_update_context(self.ctxtag).outer_index_outer_ref
        return build(graphdef, (state, *states), index_ref=merged, outer_index_outer_ref=outer)


@contextmanager
def split_context(ctxtag: str | None = None) -> Iterator[SplitContext]:
    """Splits that share one numbering, as step 1 or 3 of the update context under ``ctxtag`` (or of none).

    Raises:
        ContextError: no context is open under the tag.
    """
    context = None if ctxtag is None else current_update_context(ctxtag)
    # Objects that came in through an inner merge make this the inner split.
    is_inner = None if context is None else context.inner_ref_outer_index is not None
    numbers: RefMap[int] = RefMap()
    splitter = SplitContext(ctxtag, numbers, is_inner)
    try:
        yield splitter
        if context is not None:
            if is_inner:
                context.outer_index_inner_ref = context.inner_ref_outer_index = None
            else:
                context.outer_ref_outer_index = numbers
                context.outer_index_outer_ref = {index: obj for obj, index in numbers.items()}
    finally:
        splitter.leave()


@contextmanager
def merge_context(ctxtag: str | None = None, inner: bool | None = None) -> Iterator[MergeContext]:
    """Merges that share one numbering, as step 2 (``inner=True``) or 4 (``inner=False``) of the update context under
    ``ctxtag`` (or of none).

    Raises:
        ContextError: no context is open under the tag, or ``inner`` is not given with one.
    """
    context = None if ctxtag is None else current_update_context(ctxtag)
    if context is not None and inner is None:
        raise rules.CONTEXT_MISSING.error(problem="`merge_context(tag)` needs `inner=True` or `inner=False`")
    merged: dict[int, Any] = {}
    merger = MergeContext(ctxtag, merged, inner)
    try:
        yield merger
        if context is not None:
            if inner:
                context.outer_index_inner_ref = merged
                context.inner_ref_outer_index = RefMap((obj, index) for index, obj in merged.items())
            else:
                context.outer_ref_outer_index = context.outer_index_outer_ref = None
    finally:
        merger.leave()
