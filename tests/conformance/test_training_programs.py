"""Whole programs at random, with a mistake or without: what fails at run time is flagged, and what runs is not.

`TRAINING_PROGRAMS=1000` tries that many of each kind.
"""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

import programs
from nnx_lint.checking import Checker
from nnx_lint.diagnostics import Diagnostic
from nnx_lint.engine import STACK
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile
from nnx_rules.registry import Severity
from rule_pages import NNXKIT
from training_programs import MISTAKES, Plan, Program, plans, text_of, training_programs

pytestmark = pytest.mark.skipif(programs.missing_for(NNXKIT) is not None, reason="jax is not installed")

# An engine raises the limit, which hypothesis would take for a slip of the test.
sys.setrecursionlimit(max(sys.getrecursionlimit(), STACK))

EXAMPLES = int(os.environ.get("TRAINING_PROGRAMS", "12"))
some = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def findings(program: Program) -> list[Diagnostic]:
    """What the linter says at its default settings."""
    sources = {"training.py": SourceFile.from_text(program.text, "training.py")}
    return Checker(Options.everywhere(selected=lambda rule: rule.default), roots=[]).check(sources)


def failure(program: Program) -> BaseException | None:
    """How the program ends."""
    return programs.run(program.text, NNXKIT, Path("training.py")).error


@some
@given(training_programs(wrong=False))
def test_a_correct_program_runs_and_is_clean(program: Program) -> None:
    assert failure(program) is None
    assert [finding.message for finding in findings(program)] == []


@some
@given(training_programs(wrong=True))
def test_a_program_that_fails_is_flagged(program: Program) -> None:
    found, error = findings(program), failure(program)

    if error is None:
        assert [finding.message for finding in found if finding.severity is Severity.ERROR] == []
    else:
        assert found, error


def test_every_mistake_can_be_made() -> None:
    plan = Plan(
        "list",
        "BatchNorm",
        True,
        True,
        False,
        "optimizer",
        "decorated",
        True,
        False,
        "nnx.Rngs(0)",
        False,
        "head",
        True,
    )
    functional = Plan("list", None, True, True, False, "functional", "none", False, False, "nnx.Rngs(0)", False)

    by_hand = Plan("list", None, True, True, False, "by-hand", "none", False, False, "nnx.Rngs(0)", False)

    possible = {name for name, fits in MISTAKES.items() if any(map(fits, (plan, functional, by_hand)))}
    assert possible == set(MISTAKES)


@settings(max_examples=50)
@given(plans(wrong=False))
def test_a_mistake_changes_the_program(plan: Plan) -> None:
    for name, fits in MISTAKES.items():
        if fits(plan):
            wrong = Plan(**{**vars(plan), "mistake": name})
            assert text_of(wrong) != text_of(plan)
