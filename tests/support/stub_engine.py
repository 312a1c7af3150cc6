"""An engine for tests of everything around the engine: it finds words instead of mistakes.

Each word stands for one rule and one kind of fix, so a test says what it needs in the text that it checks.
"""

import re
import signal
import sys
from types import SimpleNamespace

from nnx_lint.diagnostics import Applicability, Diagnostic, Edit, Fix, Related, Span
from nnx_lint.units import parse_report
from nnx_rules.rules import REGISTRY

SAFE, UNSAFE, DISPLAY = Applicability.SAFE, Applicability.UNSAFE, Applicability.DISPLAY

# word: the rule it breaks, what the fix puts in its place (or None), who may apply that
WORDS = {
    "BAD": ("NNX101", "GOOD", SAFE),
    "RISKY": ("NNX102", "FINE", UNSAFE),
    "HAND": ("NNX103", "...", DISPLAY),
    "PLAIN": ("NNX104", None, SAFE),
    "QUIET": ("NNX106", None, SAFE),  # a rule that is off by default
    "CHAIN": ("NNX101", "BAD", SAFE),
    "SWING": ("NNX101", "SWANG", SAFE),
    "SWANG": ("NNX101", "SWING", SAFE),
    "BREAK": ("NNX101", "((", SAFE),
    "SAME": ("NNX101", "SAME", SAFE),
}


def check(files, *, roots, options):
    return [finding for source in files for finding in _findings(source, options)]


class Engine:
    """What `nnx_lint.checking` sees of the engine."""

    def __init__(self, sources, roots, options, facts=None):
        self.sources, self.roots, self.options = sources, roots, options
        self.facts = dict(facts or {})
        self.concerned = set(sources)
        self.project = SimpleNamespace(layout=SimpleNamespace(listed={}), knotted=False, run_body=None)

    def preload(self):
        pass

    def check(self, path):
        source = self.sources[path]
        found = check([source], roots=self.roots, options=self.options)
        return parse_report(source)._replace(findings=tuple(found))


def _findings(source, options):
    for match in re.finditer(r"\b[A-Z]+\b", source.text):
        word = match.group()
        if word == "CRASH":
            raise ZeroDivisionError("the stub met CRASH")
        if word == "INTERRUPT":
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
            signal.raise_signal(signal.SIGINT)  # what Ctrl-C does
        if word not in WORDS:
            continue
        code, mend, applicability = WORDS[word]
        span = Span(*match.span())
        rule = REGISTRY.get(code)
        fix = None if mend is None else Fix(f"Write `{mend}`", (Edit(span, mend),), applicability)
        first = source.text.find("FIRST")
        related = () if first < 0 else (Related(source.path, Span(first, first + 5), "`FIRST` stands here"),)
        if options.for_path(source.path).selected(rule):
            yield Diagnostic(rule, source.path, span, f"`{word}` is wrong", f"do not write `{word}`", fix, related)


def main():
    """The command line with this engine, for tests that need a process of their own."""
    sys.modules["nnx_lint.engine"] = sys.modules[__name__]
    from nnx_lint.cli import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
