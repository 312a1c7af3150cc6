"""NNX0: what the linter says about its own comments in the code."""

from nnx_rules.registry import Fixable, Rule, Severity

UNUSED_SUPPRESSION = Rule(
    code="NNX001",
    name="unused-suppression",
    summary="A comment silences a rule that finds nothing where the comment reaches.",
    message="{what} silences nothing",
    help="remove it, so that it cannot hide a later mistake",
    severity=Severity.WARNING,
    fix=Fixable.SAFE,
)
UNKNOWN_SUPPRESSION = Rule(
    code="NNX002",
    name="unknown-suppression",
    summary="A suppression comment names a rule that does not exist, so it silences nothing.",
    message="there is no rule `{name}`",
    help="{hint}",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)
MISSPELT_SUPPRESSION = Rule(
    code="NNX003",
    name="misspelt-suppression",
    summary="A comment is meant to silence a rule, and is not written as such a comment, so it silences nothing.",
    message="`{comment}` silences nothing",
    help="write `{meant}`",
    severity=Severity.WARNING,
    fix=Fixable.UNSAFE,
)

RULES = (UNUSED_SUPPRESSION, UNKNOWN_SUPPRESSION, MISSPELT_SUPPRESSION)
