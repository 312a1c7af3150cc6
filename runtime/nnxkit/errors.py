"""Errors."""

from nnx_rules.errors import AttributeStatusError as AttributeStatusError
from nnx_rules.errors import CheckpointArgumentError as CheckpointArgumentError
from nnx_rules.errors import CheckpointExistsError as CheckpointExistsError
from nnx_rules.errors import CheckpointFormatError as CheckpointFormatError
from nnx_rules.errors import CheckpointMismatchError as CheckpointMismatchError
from nnx_rules.errors import CheckpointNotFoundError as CheckpointNotFoundError
from nnx_rules.errors import ClassDefinitionError as ClassDefinitionError
from nnx_rules.errors import ClassLayoutError as ClassLayoutError
from nnx_rules.errors import ContextError as ContextError
from nnx_rules.errors import FilterError as FilterError
from nnx_rules.errors import FilterTypeError as FilterTypeError
from nnx_rules.errors import GraphError as GraphError
from nnx_rules.errors import LeafMismatch as LeafMismatch
from nnx_rules.errors import NNXError as NNXError
from nnx_rules.errors import RngArgumentError as RngArgumentError
from nnx_rules.errors import RngStreamError as RngStreamError
from nnx_rules.errors import RngStreamKeyError as RngStreamKeyError
from nnx_rules.errors import SowError as SowError
from nnx_rules.errors import StateArgumentError as StateArgumentError
from nnx_rules.errors import StateMismatchError as StateMismatchError
from nnx_rules.errors import StatusTagArgumentError as StatusTagArgumentError
from nnx_rules.errors import StatusTagError as StatusTagError
from nnx_rules.errors import TraceContextError as TraceContextError
from nnx_rules.errors import UnknownAttributeError as UnknownAttributeError
from nnx_rules.errors import VariableAttributeError as VariableAttributeError
from nnx_rules.errors import VariableError as VariableError
