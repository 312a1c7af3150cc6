"""What mypy knows of other packages, as stubs that the analyzer reads.

The analyzer reads the files of the project and takes what is imported from elsewhere for unknown. Mypy has the types of
all that: the classes that are modules or Variables, what functions return, declared or inferred. From its symbol tables
follows one stub for each module of another package, with what can matter there, and nothing else.

Invariants

- What is left out is unknown to the analyzer, so what is doubtful is left out. An object that a function returns may be
  one that it was given, and what a method returns may be a part of its object: such a result has no stub, for the
  analyzer would take it for a new object.
- A stub follows from the module alone, whoever imports it.
- A type that is defined by itself, such as that of any JSON value, has no end, and is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mypy.nodes import (
    Decorator,
    FuncDef,
    MypyFile,
    SymbolNode,
    TypeAlias,
    TypeInfo,
    Var,
)
from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    NoneType,
    ProperType,
    TupleType,
    Type,
    TypeAliasType,
    TypeOfAny,
    TypeVarType,
    UnionType,
    get_proper_type,
)

from nnx_mypy.foreign import Project
from nnx_mypy.library import ARRAY, NODES, PACKAGES, has_base, package_of

KINDS: Final = NODES | {"Variable", "VariableState", "State", "GraphDef"}
"""The bases of the classes that matter, by their names in the libraries."""
ARRAYS: Final = frozenset({ARRAY, "jax.Array"})
PLAIN: Final = {
    **dict.fromkeys(ARRAYS, "jax.Array"),
    "builtins.bool": "bool",
    "builtins.bytes": "bytes",
    "builtins.float": "float",
    "builtins.int": "int",
    "builtins.str": "str",
}
CONTAINERS: Final = frozenset(
    {"builtins.dict", "builtins.frozenset", "builtins.list", "builtins.set", "builtins.tuple"}
)
UNKNOWN: Final = "typing.Any"


def used_by(tree: MypyFile, project: Project) -> dict[str, str]:
    """The stubs of the foreign modules that a module imports, and of those that these stubs name; empty texts where
    nothing matters.
    """
    found: dict[str, str] = {}
    waiting = list(project.imported_by(tree))
    while waiting:
        module = waiting.pop()
        if module.fullname not in found:
            stub = _Stub(module)
            found[module.fullname] = stub.text
            waiting += filter(None, map(project.foreign, stub.named))
    return found


class _Stub:
    """The stub of one module.

    Attributes:
        text: the stub, empty if it would say nothing.
        named: the modules that it names.
    """

    def __init__(self, module: MypyFile) -> None:
        self.named: list[str] = []
        self._libraries = {"jax", "typing"}
        self._module = module.fullname
        nodes = sorted(((name, symbol.node) for name, symbol in module.names.items()), key=_place)
        lines = [line for name, node in nodes for line in self._lines(name, node)]
        imports = [f"import {each}" for each in sorted({*self._libraries, *self.named})]
        self.text = "".join(f"{line}\n" for line in (*imports, *lines)) if lines else ""

    def _lines(self, name: str, node: SymbolNode | None) -> list[str]:
        """What there is to say of one name."""
        if isinstance(node, MypyFile):
            return [f"import {node.fullname} as {name}"] if node.fullname in PACKAGES else []
        if node is None or not _matters(node):
            return []
        module, _, own_name = node.fullname.rpartition(".")
        if module != self._module:
            self.named.append(module)
            return [f"from {module} import {own_name} as {name}"]
        if isinstance(node, TypeInfo):
            return self._class(name, node)
        type = _type_of(node)
        if isinstance(type, CallableType):
            return [f"def {name}(*args: typing.Any, **kwargs: typing.Any) -> {self._shown(type.ret_type)}: ..."]
        return [f"{name} = {self._shown(type)}" if isinstance(node, TypeAlias) else f"{name}: {self._shown(type)}"]

    def _class(self, name: str, info: TypeInfo) -> list[str]:
        bases = [self._shown(base) for base in info.bases if has_base(base.type, KINDS)]
        lines = [f"class {name}({', '.join(bases)}):"]
        for method, symbol in sorted(info.names.items()):
            type = _type_of(symbol.node) if isinstance(symbol.node, FuncDef | Decorator) else None
            if isinstance(type, CallableType) and _says_only_arrays(type.ret_type):
                result = self._shown(type.ret_type)
                lines.append(f"    def {method}(self, *args: typing.Any, **kwargs: typing.Any) -> {result}: ...")
        return lines if len(lines) > 1 else [f"{lines[0]} ..."]

    def _shown(self, type: Type | None) -> str:
        """A type as an annotation."""
        proper = _unfolded(type)
        if isinstance(proper, UnionType):
            return " | ".join(map(self._shown, proper.items))
        if isinstance(proper, TupleType):
            return f"tuple[{', '.join(map(self._shown, proper.items))}]" if proper.items else UNKNOWN
        if isinstance(proper, NoneType):
            return "None"
        if not isinstance(proper, Instance):
            return UNKNOWN
        fullname = proper.type.fullname
        if fullname in PLAIN:
            return PLAIN[fullname]
        if fullname in CONTAINERS:
            items = [*map(self._shown, proper.args), *["..."] * (fullname == "builtins.tuple")]
            return f"{proper.type.name}[{', '.join(items)}]"
        if not has_base(proper.type, KINDS):
            return UNKNOWN
        library = package_of(fullname)
        if library is not None:
            self._libraries.add(library)
        elif proper.type.module_name == self._module:
            return proper.type.name
        else:
            self.named.append(proper.type.module_name)
        return fullname


def _place(entry: tuple[str, SymbolNode | None]) -> tuple[bool, int, str]:
    """What the lines of a stub are ordered by: a class comes after its bases, and the rest after the classes."""
    name, node = entry
    return not isinstance(node, TypeInfo), len(node.mro) if isinstance(node, TypeInfo) else 0, name


def _type_of(node: SymbolNode | None) -> ProperType | None:
    """The type of what a name stands for."""
    if isinstance(node, Decorator):
        return get_proper_type(node.var.type)
    if isinstance(node, FuncDef | Var):
        return get_proper_type(node.type)
    return get_proper_type(node.target) if isinstance(node, TypeAlias) else None


def _matters(node: SymbolNode) -> bool:
    """Whether there is something to say of what a name stands for."""
    if isinstance(node, TypeInfo):
        return has_base(node, KINDS)
    type = _type_of(node)
    if isinstance(type, CallableType):
        return _says(type.ret_type) and not (_holds_nodes(type.ret_type) and any(map(_may_pass, type.arg_types)))
    return _says(type)


def _unfolded(type: Type | None) -> ProperType | None:
    """What a type is an alias of."""
    if isinstance(type, TypeAliasType) and type.is_recursive:
        return AnyType(TypeOfAny.special_form)
    return get_proper_type(type)


def _parts(type: Type | None) -> Iterator[ProperType]:
    """What a type consists of, through unions and containers."""
    proper = _unfolded(type)
    if isinstance(proper, UnionType | TupleType):
        for item in proper.items:
            yield from _parts(item)
    elif isinstance(proper, Instance) and proper.type.fullname in CONTAINERS:
        for item in proper.args:
            yield from _parts(item)
    elif proper is not None:
        yield proper


def _says(type: Type | None) -> bool:
    """Whether a type names an array, or a class that matters."""
    return any(isinstance(part, Instance) and (_is_array(part) or has_base(part.type, KINDS)) for part in _parts(type))


def _says_only_arrays(type: Type | None) -> bool:
    return _says(type) and not _holds_nodes(type)


def _holds_nodes(type: Type | None) -> bool:
    return any(isinstance(part, Instance) and has_base(part.type, KINDS) for part in _parts(type))


def _may_pass(type: Type) -> bool:
    """Whether a parameter of this type may be given an object that has Variables: a module, or anything at all."""
    return any(
        isinstance(part, AnyType | TypeVarType)
        or (isinstance(part, Instance) and (part.type.fullname == "builtins.object" or _is_graph(part.type)))
        for part in _parts(type)
    )


def _is_graph(info: TypeInfo) -> bool:
    return has_base(info, KINDS) and not has_base(info, {"Rngs", "RngStream"})


def _is_array(type: Instance) -> bool:
    return type.type.fullname in ARRAYS
