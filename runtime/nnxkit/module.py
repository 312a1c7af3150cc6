"""Modules."""

from nnxkit._capture import capture as capture
from nnxkit._graph import iter_children as iter_children
from nnxkit._module import Module as Module
from nnxkit._module import first_from as first_from
from nnxkit._module import iter_module_children as iter_module_children
from nnxkit._module import iter_modules as iter_modules
from nnxkit._views import view as view
from nnxkit._views import view_info as view_info
from nnxkit._views import with_attributes as with_attributes
