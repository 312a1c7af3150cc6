"""NNX65x: checkpoints and summaries of models."""

from nnx_rules.errors import (
    CheckpointArgumentError,
    CheckpointExistsError,
    CheckpointFormatError,
    CheckpointMismatchError,
    CheckpointNotFoundError,
    GraphError,
)
from nnx_rules.registry import Rule, Severity, Versions

CHECKPOINT_MISMATCH = Rule(
    code="NNX650",
    name="checkpoint-mismatch",
    summary="A checkpoint does not fit the model that it is restored into.",
    message="`{source}` does not fit `{cls}`; nothing was written. {count}:{lines}",
    help="{mend}",
    exception=CheckpointMismatchError,
    versions=Versions(flax=False),
)
CHECKPOINT_NOT_FOUND = Rule(
    code="NNX651",
    name="checkpoint-not-found",
    summary="A path that is to be restored holds nothing.",
    message="there is no checkpoint at `{source}`",
    help="{mend}",
    exception=CheckpointNotFoundError,
    versions=Versions(flax=False),
)
CHECKPOINT_FORMAT = Rule(
    code="NNX652",
    name="checkpoint-format",
    summary="A path that is to be restored holds something else than a whole checkpoint.",
    message="`{source}` cannot be read: {problem}",
    help="{mend}",
    exception=CheckpointFormatError,
    versions=Versions(flax=False),
)
CHECKPOINT_EXISTS = Rule(
    code="NNX653",
    name="checkpoint-exists",
    summary="A checkpoint would replace what is there already.",
    message="`{source}` exists",
    help="pass `overwrite=True` to replace it, or choose another path",
    exception=CheckpointExistsError,
    versions=Versions(flax=False),
)
CHECKPOINT_ARGUMENT = Rule(
    code="NNX654",
    name="checkpoint-argument",
    summary="A checkpoint function gets an argument that it has no meaning for.",
    message="{problem}",
    help="{mend}",
    exception=CheckpointArgumentError,
)
SUMMARY_OF_NON_MODULE = Rule(
    code="NNX655",
    name="summary-of-non-module",
    summary="`nnx.tabulate` is given something that is no module.",
    message="`nnx.tabulate` takes a module, and got {given}",
    help="pass the module itself; for several, a module that holds them and calls them",
    exception=GraphError,
    versions=Versions(flax=False),
)
RELATIVE_CHECKPOINT_PATH = Rule(
    code="NNX656",
    name="relative-checkpoint-path",
    summary="Orbax gets the path of a checkpoint that is not absolute.",
    message="`{name}` gets the path `{path}`, which is relative, and Orbax takes absolute ones only",
    help="make it absolute: `os.path.abspath(...)`, or `pathlib.Path(...).absolute()`",
)
STATISTICS_LEFT_BEHIND = Rule(
    code="NNX657",
    name="statistics-left-behind",
    summary="A new model gets the parameters of another one, and is evaluated with the statistics of none.",
    message="`{name}` gets `Param`s alone, and is evaluated with the batch statistics that it was made with",
    help="keep and restore all of its state, or `nnx.state(model, (nnx.Param, nnx.BatchStat))`: "
    "the averages that `BatchNorm` normalizes by in evaluation are no parameters",
    severity=Severity.WARNING,
)

RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
