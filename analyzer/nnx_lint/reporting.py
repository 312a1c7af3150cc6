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
from nnx_lint.model.events import Called

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterator

    from nnx_lint.diagnostics import Fix
    from nnx_lint.model.events import Event
    from nnx_lint.model.modules import Module
    from nnx_lint.selection import Options
    from nnx_rules.registry import Rule, Version

E = TypeVar("E", bound="Event")
M = TypeVar("M")


class Registered(NamedTuple):
    """A judge: the rule, the function, and which of the events concern it (``None``: all)."""

    rule: Rule
    function: Callable[[Any, Reporter], None]
    when: Callable[[Any], bool] | None


JUDGES: dict[type, list[Registered]] = {}
"""The functions of all rules by the type of event that they judge."""

CALL_JUDGES: dict[str, list[Registered]] = {}
"""The functions of rules about calls of certain things, by the subject of the event."""


def judges(
    rule: Rule, *kinds: type[E], when: Callable[[E], bool] | None = None
) -> Callable[[Callable[[E, Reporter], None]], Callable[[E, Reporter], None]]:
    """Register a function as the judge of a rule for these types of events.

    ``when`` says which of them can concern it at all; it is asked once for all judges that have the same one.
    """

    def register(function: Callable[[E, Reporter], None]) -> Callable[[E, Reporter], None]:
        for kind in kinds:
            JUDGES.setdefault(kind, []).append(Registered(rule, function, when))
        return function

    return register


C = TypeVar("C", bound="Callable[[Called, Reporter], None]")


def judges_calls(rule: Rule, *subjects: str) -> Callable[[C], C]:
    """Register a function as the judge of a rule for calls of certain things (see ``Called.subject``)."""

    def register(function: C) -> C:
        for subject in subjects:
            CALL_JUDGES.setdefault(subject, []).append(Registered(rule, function, None))
        return function

    return register


Key = tuple[str, str, int, int]
"""What tells findings apart: the code of the rule, the path, and the span."""


Judges = list[tuple["Callable[[Any], bool] | None", "list[tuple[Callable[[Any, Reporter], None], Reporter]]"]]


class Judging:
    """The judges of the rules that are asked for anywhere, and the findings that they report to at present."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.found: dict[Key, Diagnostic] = {}
        self.memory: dict[type, Any] = {}
        asked = [options.default, *options.by_path.values()]
        codes = frozenset(code for each in asked for code in each.severities)
        registered = (judge for table in (JUDGES, CALL_JUDGES) for judged in table.values() for judge in judged)
        reporters = {judge.rule.code: Reporter(judge.rule, self) for judge in registered}
        self.judges: dict[type, Judges] = {}
        for kind, judged in JUDGES.items():
            groups: dict[Callable[[Any], bool] | None, list[tuple[Callable[[Any, Reporter], None], Reporter]]] = {}
            for judge in judged:
                if judge.rule.code in codes:
                    groups.setdefault(judge.when, []).append((judge.function, reporters[judge.rule.code]))
            self.judges[kind] = list(groups.items())
        self.call_judges = {
            subject: [(judge.function, reporters[judge.rule.code]) for judge in judged if judge.rule.code in codes]
            for subject, judged in CALL_JUDGES.items()
        }

    def judging(self, event: Event) -> Iterator[tuple[Callable[[Any, Reporter], None], Reporter]]:
        """The functions that judge an event, each with what it reports to."""
        for when, judges in self.judges.get(type(event), ()):
            if when is None or when(event):
                yield from judges
        if isinstance(event, Called):
            yield from self.call_judges.get(event.subject or "", ())

    def wants(self, rule: Rule, module: Module) -> bool:
        """Whether a rule is asked for in the file of a module, and holds for the library that it uses."""
        return self.options.for_path(module.source.path).selected(rule) and rule.versions.holds(*self.runs_on(module))

    def runs_on(self, module: Module) -> tuple[str, Version | None]:
        """The library that a module uses, and the version of it (``None``: the newest)."""
        options = self.options.for_path(module.source.path)
        return options.library or module.provider or "flax", options.version


class Findings:
    """Listens to one evaluation, and collects what the rules report of it."""

    def __init__(self, judging: Judging) -> None:
        self.judging = judging
        self.found: dict[Key, Diagnostic] = {}
        self.memory: dict[type, Any] = {}

    def __call__(self, event: Event) -> None:
        """Hand an event to the rules that judge its type.

        A value may hold itself; a rule that gets lost in one says nothing.
        """
        judging = self.judging
        # A judge may ask for something that starts an evaluation.
        outer = judging.found, judging.memory
        judging.found, judging.memory = self.found, self.memory
        for function, reporter in judging.judging(event):
            try:
                function(event, reporter)
            except RecursionError:
                continue
        judging.found, judging.memory = outer


class Reporter:
    """Reports findings of one rule."""

    def __init__(self, rule: Rule, judging: Judging) -> None:
        self.rule = rule
        self.judging = judging

    def memory(self, kind: type[M]) -> M:
        """What judges have noted of this kind in the present evaluation; made when first asked for."""
        noted = self.judging.memory
        if kind not in noted:
            noted[kind] = kind()
        found: M = noted[kind]
        return found

    def runs_on(self, module: Module) -> tuple[str, Version | None]:
        """The library that a module uses, and the version of it (``None``: the newest)."""
        return self.judging.runs_on(module)

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
        if key in self.judging.found:
            return
        self.judging.found[key] = Diagnostic(
            rule=self.rule,
            path=source.path,
            span=span,
            message=self.rule.message_for(**slots),
            help=self.rule.help_for(**slots),
            fix=None if source.error else fix() if callable(fix) else fix,
            related=related,
            level=self.judging.options.for_path(source.path).severity(self.rule),
        )


def related(module: Module, node: ast.AST, message: str) -> Related:
    """Another place that explains a finding."""
    return Related(module.source.path, module.source.span(node), message)
