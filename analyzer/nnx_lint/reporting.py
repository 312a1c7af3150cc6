"""How a rule is written: a function that judges an event and reports.

A rule module decorates its functions with :func:`judges`; the engine hands every published event to the functions of
its type, with a :class:`Reporter` for the rule. A rule module declares nothing else: code, name, message and versions
are in :mod:`nnx_rules.rules`.

Invariants: a finding is reported once for each rule and place, however often the interpreter passes; findings of rules
that are not selected in the file, or do not hold for the library in use, are dropped here and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from nnx_lint.diagnostics import Diagnostic, Related
from nnx_lint.model.events import Called, CalledOneOf
from nnx_lint.syntax.plain import rewrites

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterable, Sequence

    from nnx_lint.diagnostics import Fix
    from nnx_lint.model.events import Event
    from nnx_lint.model.modules import Module
    from nnx_lint.model.values import Value
    from nnx_lint.selection import FileOptions, Options
    from nnx_lint.source import SourceFile
    from nnx_rules.registry import Rule, Version

E = TypeVar("E", bound="Event")
M = TypeVar("M")


class Registered(NamedTuple):
    """A judge: the rule, the function, and which of the events concern it (``None``: all), of values of which types."""

    rule: Rule
    function: Callable[[Any, Reporter], None]
    when: Callable[[Any], bool] | None
    of: tuple[type[Value], ...] = ()


JUDGES: dict[type, list[Registered]] = {}
"""The functions of all rules by the type of event that they judge."""

CALL_JUDGES: dict[str | type, list[Registered]] = {}
"""The functions of rules about calls of certain things (see :func:`judges_calls`)."""


def judges(
    rule: Rule, *kinds: type[E], of: tuple[type[Value], ...] = (), when: Callable[[E], bool] | None = None
) -> Callable[[Callable[[E, Reporter], None]], Callable[[E, Reporter], None]]:
    """Register a function as the judge of a rule for these types of events.

    ``of`` are the types that the ``value`` of such an event has if it can concern the rule at all; all values may,
    where nothing is said. ``when`` says which of the events can; it is asked once for all judges with the same one.
    """

    def register(function: Callable[[E, Reporter], None]) -> Callable[[E, Reporter], None]:
        for kind in kinds:
            JUDGES.setdefault(kind, []).append(Registered(rule, function, when, of))
        return function

    return register


C = TypeVar("C", bound="Callable[[Called, Reporter], None]")


def judges_calls(
    rule: Rule, *subjects: str | type[Value], when: Callable[[Called], bool] | None = None
) -> Callable[[C], C]:
    """Register a function as the judge of a rule for calls of certain things.

    Each of ``subjects`` is a ``Called.subject`` or ``inherited``, a beginning of subjects before a star
    (``jax.random.*``), or the type of the value that is called. Most programs call many things that no rule asks for:
    this is what makes those cheap.
    """

    def register(function: C) -> C:
        for subject in subjects:
            CALL_JUDGES.setdefault(subject, []).append(Registered(rule, function, when))
        return function

    return register


Key = tuple[str, str, int, int]
"""What tells findings apart: the code of the rule, the path, and the span."""


Judges = list[tuple["Callable[[Any], bool] | None", "list[tuple[Callable[[Any, Reporter], None], Reporter]]"]]
"""Functions with what each reports to, by the condition under which they are asked."""


def key_of(finding: Diagnostic) -> Key:
    """What tells a finding from others."""
    return finding.rule.code, finding.path, finding.span.start, finding.span.end


class Judging:
    """The judges of the rules that are asked for anywhere, and the findings that they report to at present."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.present = Findings(self)
        asked = [options.default, *options.by_path.values()]
        self._codes = frozenset(code for each in asked for code in each.severities)
        self._reporters: dict[str, Reporter] = {}
        self._by_value: dict[tuple[type, type], Judges] = {}
        self._by_callee: dict[tuple[type, str | None, str | None], Judges] = {}
        self._by_asked: dict[tuple[str | type, ...], Judges] = {}
        self._places = {asked: place for place, asked in enumerate(CALL_JUDGES)}
        self._types = [each for each in CALL_JUDGES if isinstance(each, type)]
        self._beginnings = [each for each in CALL_JUDGES if isinstance(each, str) and each.endswith("*")]

    def _grouped(self, registered: Iterable[Registered]) -> Judges:
        groups: dict[Callable[[Any], bool] | None, list[tuple[Callable[[Any, Reporter], None], Reporter]]] = {}
        for judge in registered:
            code = judge.rule.code
            if code in self._codes:
                if code not in self._reporters:
                    self._reporters[code] = Reporter(judge.rule, self)
                groups.setdefault(judge.when, []).append((judge.function, self._reporters[code]))
        return list(groups.items())

    def judges_of(self, event: Event) -> Judges:
        """The functions that may judge an event."""
        if not isinstance(event, Called):
            value: object = getattr(event, "value", None)
            return self._judges_of_value(type(event), type(value))
        key = type(event.callee), event.subject, event.inherited
        known = self._by_callee.get(key)
        if known is None:
            asked = self._asked_of(*key)
            if asked not in self._by_asked:
                judged = [judge for each in asked for judge in CALL_JUDGES[each]]
                self._by_asked[asked] = self._grouped(dict.fromkeys([*JUDGES.get(Called, []), *judged]))
            known = self._by_callee[key] = self._by_asked[asked]
        return known

    def _judges_of_value(self, kind: type, value: type) -> Judges:
        known = self._by_value.get((kind, value))
        if known is None:
            judged = [judge for judge in JUDGES.get(kind, []) if not judge.of or issubclass(value, judge.of)]
            known = self._by_value[kind, value] = self._grouped(judged)
        return known

    def _asked_of(self, kind: type, subject: str | None, inherited: str | None) -> tuple[str | type, ...]:
        """What judges are registered for that calls of a value of this type, with these subjects, are."""
        asked: set[str | type] = {each for each in self._types if issubclass(kind, each)}
        if subject is not None:
            asked.update(each for each in self._beginnings if subject.startswith(each[:-1]))
        asked.update(each for each in (subject, inherited) if each is not None and each in self._places)
        return tuple(sorted(asked, key=self._places.__getitem__))

    def covers(self, options: FileOptions) -> bool:
        """Whether all rules that are asked for in a file are among those that were asked for at first."""
        return self._codes.issuperset(options.severities)

    def wants(self, rule: Rule, module: Module) -> bool:
        """Whether a rule is asked for in the file of a module, and holds for the library that it uses."""
        return self.options.for_path(module.source.path).selected(rule) and rule.versions.holds(*self.runs_on(module))

    def runs_on(self, module: Module) -> tuple[str, Version | None]:
        """The library that a module uses, and the version of it (``None``: the newest)."""
        options = self.options.for_path(module.source.path)
        return options.library or module.provider or "flax", options.version

    def jax_of(self, module: Module) -> Version | None:
        """The version of jax that a module runs on (``None``: the newest)."""
        return self.options.for_path(module.source.path).jax


_NOTHING: dict[Key, Diagnostic] = {}
"""What is found in most evaluations, once for all."""


class Findings:
    """Listens to one evaluation, and collects what the rules report of it."""

    __slots__ = ("found", "judging", "memory")

    def __init__(self, judging: Judging) -> None:
        self.judging = judging
        self.found: dict[Key, Diagnostic] = _NOTHING
        self.memory: dict[type, Any] | None = None

    def __call__(self, event: Event) -> None:
        """Hand an event to the rules that judge its type.

        A value may hold itself; a rule that gets lost in one says nothing.
        """
        if isinstance(event, CalledOneOf):
            self._of_each(event.calls)
            return
        judging = self.judging
        asked = judging.judges_of(event)
        if not asked:
            return
        # A judge may ask for something that starts an evaluation.
        outer, judging.present = judging.present, self
        for when, judges in asked:
            if when is None or when(event):
                for function, reporter in judges:
                    try:
                        function(event, reporter)
                    except RecursionError:
                        continue
        judging.present = outer

    def _of_each(self, calls: Sequence[Called]) -> None:
        """Collect what the rules report of each of several calls, one of which happens. It is not mended there: what is
        called is decided elsewhere, and may be something else at another time.
        """
        known, found = self.found, list[dict[Key, Diagnostic]]()
        for call in calls:
            self.found = {}
            self(call)
            found.append(self.found)
        self.found = known
        for key, finding in found[0].items():
            if key not in known and all(key in each for each in found):
                self.add(key, finding.replaced(fix=None))

    def add(self, key: Key, finding: Diagnostic) -> None:
        """Hold another finding."""
        if self.found is _NOTHING:
            self.found = {}
        self.found[key] = finding

    def noted(self) -> dict[type, Any]:
        """What judges have noted in the evaluation, by its kind."""
        if self.memory is None:
            self.memory = {}
        return self.memory

    def gather(self, others: Sequence[Findings]) -> None:
        """Hold what others have found in parts of the evaluation, and nothing else."""
        self.found = {}
        for other in others:
            for key, finding in other.found.items():
                self.found.setdefault(key, finding)


class Reporter:
    """Reports findings of one rule."""

    def __init__(self, rule: Rule, judging: Judging) -> None:
        self.rule = rule
        self.judging = judging

    def memory(self, kind: type[M]) -> M:
        """What judges have noted of this kind in the present evaluation; made when first asked for."""
        noted = self.judging.present.noted()
        if kind not in noted:
            noted[kind] = kind()
        found: M = noted[kind]
        return found

    def runs_on(self, module: Module) -> tuple[str, Version | None]:
        """The library that a module uses, and the version of it (``None``: the newest)."""
        return self.judging.runs_on(module)

    def jax_of(self, module: Module) -> Version | None:
        """The version of jax that a module runs on (``None``: the newest)."""
        return self.judging.jax_of(module)

    def __call__(
        self,
        module: Module,
        node: ast.AST,
        *,
        fix: Fix | Callable[[], Fix | None] | None = None,
        related: tuple[Related, ...] = (),
        **slots: object,
    ) -> None:
        """Report a finding at a node of a module; ``slots`` fill the templates of message and help.

        A fix that is costly to make may be given as a function; it runs only if the finding is kept. A broken file is
        not fixed: what cannot be read might be what the fix would disturb.
        """
        source = module.source
        if not self.judging.wants(self.rule, module):
            return
        span = source.span(node)
        key = (self.rule.code, source.path, span.start, span.end)
        if key in self.judging.present.found:
            return
        finding = Diagnostic(
            rule=self.rule,
            path=source.path,
            span=span,
            message=self.rule.message_for(**slots),
            help=self.rule.help_for(**slots),
            fix=None if source.error else _possible(fix() if callable(fix) else fix, source),
            related=related,
            level=self.judging.options.for_path(source.path).severity(self.rule),
        )
        self.judging.present.add(key, finding)


def _possible(fix: Fix | None, source: SourceFile) -> Fix | None:
    """A fix, unless it edits a text that the tree says in another way."""
    if fix is None:
        return None
    for line, column, end_line, end_column in rewrites(source.text):
        start, end = source.offset(line, column), source.offset(end_line, end_column)
        if any(edit.span.start < end and edit.span.end > start for edit in fix.edits):
            return None
    return fix


def related(module: Module, node: ast.AST, message: str) -> Related:
    """Another place that explains a finding."""
    return Related(module.source.path, module.source.span(node), message)
