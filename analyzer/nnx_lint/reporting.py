"""How a rule is written: a function that judges an event and reports.

A rule module decorates its functions with :func:`judges`; the engine hands every published event to the functions of
its type, with a :class:`Reporter` for the rule. A rule module declares nothing else: code, name, message and versions
are in :mod:`nnx_rules.rules`.

Invariants: a finding is reported once for each rule and place, however often the interpreter passes; findings in
files that were not asked for, of rules that are not selected, or of rules that do not hold for the library in use are
dropped here and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from nnx_lint.diagnostics import Diagnostic, Related

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable

    from nnx_lint.diagnostics import Fix
    from nnx_lint.model.events import Event
    from nnx_lint.model.modules import Module
    from nnx_lint.selection import Options
    from nnx_rules.registry import Rule

E = TypeVar("E", bound="Event")

JUDGES: dict[type, list[tuple[Rule, Callable[[Event, Reporter], None]]]] = {}
"""The functions of all rules by the type of event that they judge."""


def judges(rule: Rule, *kinds: type[E]) -> Callable[[Callable[[E, Reporter], None]], Callable[[E, Reporter], None]]:
    """Register a function as the judge of a rule for these types of events."""

    def register(function: Callable[[E, Reporter], None]) -> Callable[[E, Reporter], None]:
        for kind in kinds:
            JUDGES.setdefault(kind, []).append((rule, function))  # type: ignore[arg-type]
        return function

    return register


class Findings:
    """Collects what the rules report."""

    def __init__(self, options: Options, checked: set[str]) -> None:
        self.options = options
        self.checked = checked
        self.found: dict[tuple[str, str, int, int], Diagnostic] = {}
        reporters = {id(rule): Reporter(rule, self) for judged in JUDGES.values() for rule, _ in judged}
        self._judges = {
            kind: [(function, reporters[id(rule)]) for rule, function in judged if options.selected(rule)]
            for kind, judged in JUDGES.items()
        }

    def publish(self, event: Event) -> None:
        """Hand an event to the rules that judge its type.

        A value may hold itself; a rule that gets lost in one says nothing.
        """
        for function, reporter in self._judges.get(type(event), ()):
            try:
                function(event, reporter)
            except RecursionError:
                continue

    def applies(self, rule: Rule, provider: str | None) -> bool:
        """Whether a rule holds for the library that a module uses."""
        library = self.options.library or provider or "flax"
        return rule.versions.holds(library, self.options.version)


class Reporter:
    """Reports findings of one rule."""

    def __init__(self, rule: Rule, findings: Findings) -> None:
        self.rule = rule
        self.findings = findings

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

        A fix that is costly to make may be given as a function; it runs only if the finding is kept.
        """
        source = module.source
        if source.path not in self.findings.checked or not self.findings.applies(self.rule, module.provider):
            return
        span = source.span(node)
        key = (self.rule.code, source.path, span.start, span.end)
        if key in self.findings.found:
            return
        self.findings.found[key] = Diagnostic(
            rule=self.rule,
            path=source.path,
            span=span,
            message=self.rule.message_for(**slots),
            help=self.rule.help_for(**slots),
            fix=fix() if callable(fix) else fix,
            related=related,
        )


def related(module: Module, node: ast.AST, message: str) -> Related:
    """Another place that explains a finding."""
    return Related(module.source.path, module.source.span(node), message)
