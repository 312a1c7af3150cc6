"""Programs that mean the same as another one, and are written otherwise.

A *way* rewrites the syntax tree of a program: it renames, moves code to functions, methods and other files, nests it,
passes things through variables, containers and wrappers. None of them is proven to keep what a program does. They are
written to, and whoever uses a variant runs it to know what it really does.

A way that finds nothing to rewrite gives no variant. A variant knows from which lines of the original each of its lines
comes.
"""

import ast
import copy
from collections.abc import Callable
from dataclasses import dataclass

from variants import _calls, _classes, _files, _names, _scopes, _statements
from variants._files import PROGRAM as PROGRAM
from variants._trees import origins

Way = Callable[[ast.Module], ast.Module | dict[str, ast.Module] | None]

_FUNCTIONS: tuple[Way, ...] = (
    _names.renamed,
    _names.imports_renamed,
    _names.imported_names,
    _names.module_in_full,
    _names.library_in_variables,
    _names.self_aliased,
    _names.variables_aliased,
    _scopes.in_function,
    _scopes.script_in_function,
    _scopes.script_in_method,
    _scopes.constructed_in_init,
    _scopes.class_factories,
    _scopes.static_methods,
    _scopes.instance_methods,
    _scopes.function_factories,
    _scopes.bodies_extracted,
    _statements.in_branch,
    _statements.in_other_branch,
    _statements.in_match,
    _statements.in_try,
    _statements.in_with,
    _statements.in_loop,
    _statements.guarded,
    _statements.unpacked,
    _statements.annotated_assignments,
    _statements.by_setattr,
    _statements.by_getattr,
    _statements.temporaries,
    _statements.values_from_functions,
    _statements.statements_in_functions,
    _statements.comprehensions_as_loops,
    _statements.loops_by_index,
    _statements.augmented_in_full,
    _statements.in_holder,
    _statements.in_namespace,
    _statements.one_statement_functions,
    _statements.lambdas_as_functions,
    _calls.decorators_called,
    _calls.decorators_by_partial,
    _calls.decorators_in_variables,
    _calls.arguments_spread,
    _calls.options_in_dict,
    _calls.by_partial,
    _calls.through_lambda,
    _calls.by_keyword,
    _calls.methods_unbound,
    _calls.called_by_dunder,
    _calls.layers_subclassed,
    _calls.layers_by_functions,
    _classes.inherited,
    _classes.mixed_in,
    _classes.set_up_by_method,
    _classes.super_first,
    _classes.documented,
    _classes.generic,
    _files.definitions_elsewhere,
    _files.definitions_in_module,
    _files.definitions_in_package,
    _files.constants_elsewhere,
)
WAYS: dict[str, Way] = {way.__name__.replace("_", "-"): way for way in _FUNCTIONS}


@dataclass(frozen=True)
class Variant:
    """A program written otherwise.

    Attributes:
        way: the name of how.
        files: its files; what runs is `program.py`.
        origins: for each file, the lines of the original that a line comes from.
    """

    way: str
    files: dict[str, str]
    origins: dict[str, dict[int, set[int]]]


def variant(program: str, way: str) -> Variant | None:
    """The program written in another way, or ``None`` where that changes nothing."""
    plain = ast.parse(program)
    made = WAYS[way](ast.parse(program))
    if made is None:
        return None
    trees = made if isinstance(made, dict) else {PROGRAM: made}
    # Only a copy is given places: what has none is new.
    files = {path: ast.unparse(ast.fix_missing_locations(copy.deepcopy(tree))) + "\n" for path, tree in trees.items()}
    if files == {PROGRAM: ast.unparse(plain) + "\n"}:
        return None
    return Variant(way, files, {path: origins(tree, files[path]) for path, tree in trees.items()})
