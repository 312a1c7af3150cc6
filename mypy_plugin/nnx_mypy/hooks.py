"""The plugin: which hook answers for which name.

Hooks of types are found in tables, by the name of a function, method or class of one of the libraries. Findings have no
place of their own in mypy: a class with an NNX base, or the call of something of NNX, tells that mypy is at a module,
and then the findings of the module are reported (`Reporter`). Where the libraries are not installed beside mypy, as in
an environment of pre-commit, a base, a call or a type that mypy knows nothing of tells the same.

Invariants

- Mypy asks its plugins in order and takes the first hook that it gets, so there is one only for what is NNX.
- There is no state but the findings, and names that were looked up: plugins run in every worker of a parallel run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mypy.checker import TypeChecker
from mypy.nodes import MypyFile, TypeInfo, Var
from mypy.options import Options
from mypy.plugin import (
    AnalyzeTypeContext,
    AttributeContext,
    ClassDefContext,
    DynamicClassDefContext,
    FunctionContext,
    FunctionSigContext,
    MethodContext,
    Plugin,
    ReportConfigContext,
)
from mypy.semanal import SemanticAnalyzer
from mypy.types import AnyType, FunctionLike, Type, TypeOfAny, get_proper_type

from nnx_mypy import attributes, digest, functions, gradients, loosened, results, signatures, states, variables
from nnx_mypy.library import NODES, PACKAGES, Library, has_base, package_of
from nnx_mypy.reporting import Reporter
from nnx_mypy.settings import folder_of_project

C = TypeVar("C", FunctionContext, MethodContext)
FunctionHook = Callable[[FunctionContext, Library], Type]
MethodHook = Callable[[MethodContext, Library], Type]

FUNCTIONS: dict[str, FunctionHook] = {
    "cached_partial": functions.partial,
    "filter_state": states.states,
    "grad": gradients.grad,
    "jit_partial": functions.jit_partial,
    "pop": states.states,
    "split": states.split,
    "split_state": states.states,
    "state": states.states,
    "unpack": states.unpacked,
    "value_and_grad": gradients.value_and_grad,
    "variables": states.states,
    **dict.fromkeys(results.FUNCTIONS, results.array),
    results.COMBINED: results.combined,
}
PARTIAL = "functools.partial"
"""What is not of NNX, and is called with what is."""
METHODS: dict[str, MethodHook] = {
    "JitWrapped.__get__": functions.bound,
    "State.filter": states.states_of_method,
    "State.split": states.states_of_method,
    **{f"{name}.__call__": results.array for name in results.CALLS},
}
LOOSENED = frozenset({"StateAxes", "StateSharding", "fork_rngs", "with_rngs"})
"""What takes mappings from filters."""
CONCERNED = ("flax.", "jax.", "nnxkit.")
"""What a call is of that tells that a module concerns NNX."""


class NNXPlugin(Plugin):
    """Types and findings of NNX code."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        loosened.let_call_untyped(options)
        self._cache = options.cache_dir
        self._there: set[str] = set()
        project = folder_of_project(options.config_file)
        self._reporter = Reporter(options.fine_grained_incremental, self._cache, project)

    def report_config_data(self, ctx: ReportConfigContext) -> str:
        """What mypy's cache of a module depends on beside its code."""
        return digest.of_packages(self._cache) + self._reporter.digest(ctx.path, ctx.is_check)

    def get_additional_deps(self, file: MypyFile) -> list[tuple[int, str, int]]:
        """Nothing; mypy has begun, so the analyzer can."""
        self._reporter.begin()
        return []

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        """The result of a call; and mypy is at a module."""
        if fullname == PARTIAL:
            return functions.partial_transform
        hook = self._found(FUNCTIONS, fullname, fullname.rpartition(".")[2])
        if hook is None and not fullname.startswith(CONCERNED) and not self._is_node(fullname):
            return None

        def seeing(context: FunctionContext) -> Type:
            self._see(context.api)
            return context.default_return_type if hook is None else hook(context)

        return seeing

    def get_function_signature_hook(self, fullname: str) -> Callable[[FunctionSigContext], FunctionLike] | None:
        """The parameters of a function."""
        loosened = package_of(fullname) is not None and fullname.rpartition(".")[2] in LOOSENED
        return signatures.with_any_filters if loosened else None

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        """The result of the call of a method."""
        return self._found(METHODS, fullname, ".".join(fullname.rsplit(".", 2)[1:]))

    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        """The type of an attribute that a class has not itself."""
        owner, _, name = fullname.rpartition(".")
        hook = attributes.BY_CLASS.get(owner.rpartition(".")[2]) if package_of(owner) is not None else None
        return None if hook is None else lambda context: hook(context, name)

    def get_customize_class_mro_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        """What a class is beside its bases."""
        package = package_of(fullname)
        if package is None:
            return None
        hooks = [loosened.loosen] if package == loosened.PACKAGE else []
        hooks += [variables.promote] if fullname.rpartition(".")[2] == variables.VARIABLE else []

        def change(context: ClassDefContext) -> None:
            for hook in hooks:
                hook(context)

        return change

    def get_base_class_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        """Nothing changes; mypy is at a module."""
        concerned = self._is_node(fullname) or self._is_unknown(fullname)
        return (lambda context: self._see(context.api)) if concerned else None

    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], Type] | None:
        """What mypy takes a type for that there is nothing to import for; and mypy is at a module."""
        if fullname in self._there:  # mypy asks about a type wherever one is written
            return None
        missing = self._missing(fullname)
        if missing is None or any(self.lookup_fully_qualified(f"{package}.Module") for package in PACKAGES):
            self._there.add(fullname)
            return None

        def seeing(context: AnalyzeTypeContext) -> Type:
            self._see(getattr(context.api, "api", None))
            return AnyType(TypeOfAny.from_unimported_type, missing_import_name=missing.missing_import_name)

        return seeing

    def get_dynamic_class_hook(self, fullname: str) -> Callable[[DynamicClassDefContext], None] | None:
        """Nothing changes; mypy is at a module, also in a function without annotations."""
        concerned = fullname.startswith(CONCERNED) or self._is_node(fullname) or self._is_unknown(fullname)
        return (lambda context: self._see(context.api)) if concerned else None

    def _found(
        self, table: Mapping[str, Callable[[C, Library], Type]], fullname: str, name: str
    ) -> Callable[[C], Type] | None:
        package = package_of(fullname)
        hook = table.get(name)
        if package is None or hook is None:
            return None
        library = Library(package, self.lookup_fully_qualified)
        return lambda context: hook(context, library)

    def _is_node(self, fullname: str) -> bool:
        """Whether something is a class of modules, in a library or below one of its classes."""
        found = self.lookup_fully_qualified(fullname)
        return found is not None and isinstance(found.node, TypeInfo) and has_base(found.node, NODES)

    def _is_unknown(self, fullname: str) -> bool:
        """Whether mypy does not know what something is: the libraries may not be installed, or not be followed."""
        return self.lookup_fully_qualified(fullname) is None or self._missing(fullname) is not None

    def _missing(self, fullname: str) -> AnyType | None:
        """What mypy takes something for that is imported, or a part of what is, where there is nothing to import."""
        while fullname:
            found = self.lookup_fully_qualified(fullname)
            if found is not None:
                type = get_proper_type(found.node.type) if isinstance(found.node, Var) else None
                if isinstance(type, AnyType) and type.type_of_any == TypeOfAny.from_unimported_type:
                    return type
                return None
            fullname = fullname.rpartition(".")[0]
        return None

    def _see(self, api: Any) -> None:
        if isinstance(api, SemanticAnalyzer):
            self._reporter.report(api.errors, api.cur_mod_node, api.modules)
        elif isinstance(api, TypeChecker):
            self._reporter.report(api.msg.errors, api.tree, api.modules)
