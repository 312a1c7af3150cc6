"""Variables."""

from nnxkit._refs import is_array_ref as is_array_ref
from nnxkit._variable import Variable as Variable
from nnxkit._variable import VariableMetadata as VariableMetadata
from nnxkit._variable import with_metadata as with_metadata
from nnxkit._variable_defaults import VarDefaults as VarDefaults
from nnxkit._variable_defaults import use_eager_sharding as use_eager_sharding
from nnxkit._variable_defaults import using_eager_sharding as using_eager_sharding
from nnxkit._variable_defaults import var_defaults as var_defaults
from nnxkit._variable_names import VariableTypeCache as VariableTypeCache
from nnxkit._variable_names import register_variable_name as register_variable_name
from nnxkit._variable_names import variable_name_from_type as variable_name_from_type
from nnxkit._variable_names import variable_type_from_name as variable_type_from_name
from nnxkit._variable_types import BatchStat as BatchStat
from nnxkit._variable_types import Cache as Cache
from nnxkit._variable_types import HijaxVariable as HijaxVariable
from nnxkit._variable_types import Intermediate as Intermediate
from nnxkit._variable_types import LoRAParam as LoRAParam
from nnxkit._variable_types import Param as Param
from nnxkit._variable_types import Perturbation as Perturbation
