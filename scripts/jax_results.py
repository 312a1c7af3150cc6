"""Writes `nnx_lint/model/tables/jax_results.py`: what functions of jax, and methods of arrays, return.

The stubs (`jax/numpy/__init__.pyi`, `jax/nn/__init__.pyi`) and, where a module has none, the annotated signatures that
its public names lead to are read as text; nothing of jax is imported. Only results that the analyzer has a use for are
kept: arrays, lists and tuples of arrays, plain values, dtypes, initializers, and a first argument that comes back as it
is. An annotation that says something else, or says nothing, leaves the function out: its result is unknown.

    python scripts/jax_results.py            # from the jax that is installed beside this interpreter
    python scripts/jax_results.py --check    # compare only
"""

import ast
import importlib.util
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "analyzer/nnx_lint/model/tables/jax_results.py"

MODULES = (
    "jax",
    "jax.image",
    "jax.lax",
    "jax.lax.linalg",
    "jax.nn",
    "jax.nn.initializers",
    "jax.numpy",
    "jax.numpy.fft",
    "jax.numpy.linalg",
    "jax.ops",
    "jax.random",
    "jax.scipy.fft",
    "jax.scipy.linalg",
    "jax.scipy.ndimage",
    "jax.scipy.signal",
    "jax.scipy.special",
    "jax.scipy.stats.norm",
)

ARRAY_CLASS = ("jax._src.basearray", "Array")
"""Where the stub of the array class is."""

ARRAYS = frozenset({"Array", "jax.Array", "KeyArray", "typing.Array"})
SHAPES = frozenset({"tuple[int, ...]", "Shape"})
PLAIN = frozenset({"int", "str", "bool", "float", "builtins.bool", "builtins.int"})
DTYPES = frozenset({"DType", "np.dtype", "np.finfo", "np.iinfo"})
INITIALIZERS = frozenset({"Initializer", "jax.nn.initializers.Initializer"})
KINDS = {ARRAYS: "array", SHAPES: "shape", PLAIN: "plain", DTYPES: "plain", INITIALIZERS: "initializer"}
UFUNCS = frozenset({"ufunc", "BinaryUfunc"})

UNANNOTATED = {
    "array": "jax.image.resize jax.image.scale_and_translate jax.lax.fft jax.numpy.diagonal "
    "jax.numpy.fromfile jax.numpy.fromiter jax.numpy.linalg.cond jax.numpy.linalg.cross jax.random.ball "
    "jax.random.clone jax.random.multinomial jax.random.wrap_key_data jax.scipy.ndimage.map_coordinates",
    "same": "jax.block_until_ready jax.device_put jax.lax.optimization_barrier jax.lax.pcast jax.lax.pmax "
    "jax.lax.pmean jax.lax.pmin jax.lax.ppermute jax.lax.psum jax.lax.with_sharding_constraint",
}
"""Functions whose signature says nothing of it, and whose documentation leaves no doubt."""

Definition = ast.FunctionDef | ast.ClassDef | ast.AnnAssign | ast.Assign


@dataclass
class Signature:
    """One overload: how many positional arguments it takes (``None``: any number), what tells it from the others, and
    the kind of its result.
    """

    positional: int | None
    conditions: list[tuple[int, str, object]] = field(default_factory=list[tuple[int, str, object]])
    kind: str | None = None
    defaults: dict[str, object] = field(default_factory=dict[str, object])


class Source:
    """One file of jax: its definitions by name, overloads together, and the names that it takes from elsewhere."""

    def __init__(self, path: Path) -> None:
        self.definitions: dict[str, list[Definition]] = {}
        self.imported: dict[str, tuple[str, str]] = {}
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                self.definitions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                self.definitions[node.target.id] = [node]
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.definitions[node.targets[0].id] = [node]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self.imported.update({item.asname or item.name: (node.module, item.name) for item in node.names})

    def kinds(self, annotation: ast.expr | None, parameters: dict[str, int]) -> str | None:
        """The kind that an annotation of a result stands for."""
        if annotation is None:
            return None
        text = ast.unparse(annotation)
        for names, kind in KINDS.items():
            if text in names:
                return kind
        if parameters.get(text) == 0:
            return "same"
        head, _, inner = text.removesuffix("]").partition("[")
        items = inner.split(", ")
        if head in {"list", "List", "Sequence"} and inner in ARRAYS:
            return "list"
        if head in {"tuple", "Tuple"} and inner and all(item in ARRAYS for item in items if item != "..."):
            return "tuple" if "..." in items else ",".join(["array"] * len(items))
        named = self.definitions.get(text, [None])[0]
        if isinstance(named, ast.ClassDef) and any(ast.unparse(base) == "NamedTuple" for base in named.bases):
            fields = [item for item in named.body if isinstance(item, ast.AnnAssign)]
            if fields and all(ast.unparse(item.annotation) in ARRAYS for item in fields):
                return ",".join(["array"] * len(fields))
        return None

    def is_type_variable(self, name: str) -> bool:
        node = self.definitions.get(name, [None])[0]
        return (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and ast.unparse(node.value.func).rpartition(".")[2] == "TypeVar"
        )

    def signature(self, node: ast.FunctionDef) -> Signature:
        """What one definition of a function says."""
        given = node.args
        parameters = [*given.posonlyargs, *given.args]
        variables = {
            text: index
            for index, item in enumerate(parameters)
            if item.annotation is not None and self.is_type_variable(text := ast.unparse(item.annotation))
        }
        found = Signature(None if given.vararg else len(parameters), kind=self.kinds(node.returns, variables))
        required = len(parameters) - len(given.defaults)
        for index, item in enumerate(parameters):
            found.conditions += _conditions(index, item, index < required)
        for item, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
            found.conditions += _conditions(-1, item, default is None)
        values = [*zip(parameters[required:], given.defaults, strict=True)]
        values += [(item, value) for item, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value]
        found.defaults = {
            item.arg: value.value
            for item, value in values
            if isinstance(value, ast.Constant) and isinstance(value.value, bool | str)
        }
        return found


def _conditions(index: int, parameter: ast.arg, required: bool) -> Iterator[tuple[int, str, object]]:
    """What an argument must be: ``required``, a literal, an array, or a sequence."""
    if required:
        yield index, parameter.arg, "required"
    annotation = parameter.annotation
    text = ast.unparse(annotation) if annotation is not None else ""
    if isinstance(annotation, ast.Subscript) and text.startswith("Literal["):
        held = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        values = tuple(item.value for item in held if isinstance(item, ast.Constant))
        if len(values) == len(held):
            yield index, parameter.arg, values
    elif text == "None":
        yield index, parameter.arg, (None,)
    elif text in {"Array", "ArrayLike"}:
        yield index, parameter.arg, "array"
    elif text.startswith(("Sequence[", "list[", "tuple[")) and "|" not in text:
        yield index, parameter.arg, "sequence"


def distinguished(signatures: list[Signature]) -> list[Signature]:
    """The overloads with only those conditions that are not common to all.

    What one of them requires to be the value that is the default of another need not be given.
    """
    defaults = {name: value for one in signatures for name, value in one.defaults.items()}
    for one in signatures:
        usual = {
            name
            for _, name, value in one.conditions
            if isinstance(value, tuple) and name in defaults and defaults[name] in value
        }
        one.conditions = [item for item in one.conditions if not (item[2] == "required" and item[1] in usual)]
    common = [item for item in signatures[0].conditions if all(item in other.conditions for other in signatures)]
    return [
        Signature(one.positional, [item for item in one.conditions if item not in common], one.kind)
        for one in signatures
    ]


class Installation:
    """The files of the installed jax."""

    def __init__(self) -> None:
        found = importlib.util.find_spec("jax")
        if found is None or found.origin is None:
            sys.exit("jax_results: jax is not installed beside this interpreter")
        self.root = Path(found.origin).parent.parent
        self.version = next(self.root.glob("jax-*.dist-info")).name.split("-")[1].removesuffix(".dist")
        self._read: dict[str, Source | None] = {}

    def source(self, module: str) -> Source | None:
        """The stub of a module, or the module itself."""
        if module not in self._read:
            base = self.root.joinpath(*module.split("."))
            paths = (base / "__init__.pyi", base.with_suffix(".pyi"), base / "__init__.py", base.with_suffix(".py"))
            path = next((path for path in paths if path.is_file()), None)
            self._read[module] = Source(path) if path is not None else None
        return self._read[module]

    def names(self, module: str) -> Iterable[str]:
        source = self.source(module)
        if source is None:
            return ()
        return sorted(name for name in {*source.definitions, *source.imported} if not name.startswith("_"))

    def definitions(self, module: str, name: str, depth: int = 6) -> tuple[Source, list[Definition]] | None:
        """Where a public name is defined, through re-exports."""
        source = self.source(module)
        if source is None or not depth:
            return None
        if name in source.definitions:
            nodes = source.definitions[name]
            other = nodes[0].value if isinstance(nodes[0], ast.Assign) else None
            alias = self.definitions(module, other.id, depth - 1) if isinstance(other, ast.Name) else None
            return alias if alias is not None else (source, nodes)
        if name in source.imported:
            return self.definitions(*source.imported[name], depth - 1)
        return None


def results(jax: Installation) -> tuple[dict[str, str], dict[str, list[Signature]]]:
    """The kind of result by canonical name, and the overloads of those where the arguments decide."""
    single = {name: kind for kind, names in UNANNOTATED.items() for name in names.split()}
    overloaded: dict[str, list[Signature]] = {}
    for module in MODULES:
        for name in jax.names(module):
            found = jax.definitions(module, name)
            canonical = f"{module}.{name}"
            if found is None or canonical in single:
                continue
            source, nodes = found
            kind = _variable(nodes[0]) if module == "jax.numpy" else None
            functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
            marked = [node for node in functions if any(ast.unparse(d) == "overload" for d in node.decorator_list)]
            signatures = [source.signature(node) for node in marked or functions]
            kinds = {item.kind for item in signatures}
            if len(kinds) == 1:
                kind = next(iter(kinds))
            elif kinds - {None} and module != "jax":
                overloaded[canonical] = distinguished(signatures)
            # The top level holds the transforms, whose results depend on what they are given.
            if kind is not None and (module != "jax" or kind == "plain"):
                single[canonical] = kind
    return single, overloaded


def members(jax: Installation) -> tuple[dict[str, str], dict[str, str]]:
    """The kinds of the properties of an array, and of the results of its methods."""
    properties: dict[str, str] = {}
    methods: dict[str, str] = {}
    found = jax.definitions(*ARRAY_CLASS)
    if found is None or not isinstance(cls := found[1][0], ast.ClassDef):
        sys.exit("jax_results: this jax has no stub of the array class")
    for node in cls.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            is_property = any(ast.unparse(item) == "property" for item in node.decorator_list)
            kind = found[0].kinds(node.returns, {})
            if kind is not None:
                (properties if is_property else methods)[node.name] = kind
    return properties, methods


def _variable(node: Definition) -> str | None:
    """A dtype of ``jax.numpy`` makes an array when it is called, and so does a ufunc."""
    if not isinstance(node, ast.AnnAssign):
        return None
    text = ast.unparse(node.annotation)
    return "array" if text == "Any" else "ufunc" if text in UFUNCS else None


def module_text(jax: Installation) -> str:
    """The generated module."""
    single, overloaded = results(jax)
    properties, methods = members(jax)
    lines = [
        '"""What functions of jax return. Made by `scripts/jax_results.py` from the annotations of jax; not edited."""',
        "",
        "from __future__ import annotations",
        "",
        f'JAX = "{jax.version}"',
        "",
        "_ROWS: tuple[tuple[str, str, str], ...] = (",
    ]
    rows = sorted({(name.rpartition(".")[0], kind) for name, kind in single.items()})
    for module, kind in rows:
        names = sorted(
            name.rpartition(".")[2]
            for name, held in single.items()
            if (name.rpartition(".")[0], held) == (module, kind)
        )
        wrapped = textwrap.wrap(" ".join(names), 100)
        if len(wrapped) == 1 and len(f'    ("{module}", "{kind}", "{wrapped[0]}"),') <= 120:
            lines.append(f'    ("{module}", "{kind}", "{wrapped[0]}"),')
            continue
        lines += ["    (", f'        "{module}",', f'        "{kind}",']
        lines += [
            "        (",
            *(f'            "{line} "' for line in wrapped[:-1]),
            f'            "{wrapped[-1]}"',
            "        ),",
        ]
        lines += ["    ),"]
    lines += [
        ")",
        '"""Module, kind of result, names."""',
        "",
        f"PROPERTIES: dict[str, str] = {dict(sorted(properties.items()))!r}",
        '"""Kinds of the properties of an array."""',
        "",
        f"METHODS: dict[str, str] = {dict(sorted(methods.items()))!r}",
        '"""Kinds of the results of the methods of an array."""',
        "",
        'RESULTS: dict[str, str] = {f"{module}.{name}": kind for module, kind, row in _ROWS for name in row.split()}',
        "",
        "OVERLOADS: dict[str, tuple[tuple[int | None, tuple[tuple[int, str, object], ...], str | None], ...]] = {",
    ]
    for name, signatures in sorted(overloaded.items()):
        lines.append(f'    "{name}": (')
        lines += [f"        {(one.positional, tuple(one.conditions), one.kind)!r}," for one in signatures]
        lines.append("    ),")
    lines += [
        "}",
        '"""By name, in order: number of positional arguments, conditions (position, keyword, what is asked), kind."""',
        "",
    ]
    return formatted("\n".join(lines))


def formatted(text: str) -> str:
    """The text as `ruff format` leaves it."""
    import subprocess

    ruff = Path(sys.executable).with_name("ruff")
    done = subprocess.run(
        [ruff, "format", "--stdin-filename", str(TARGET), "-"], input=text, capture_output=True, text=True, check=True
    )
    return done.stdout


def main(arguments: list[str]) -> int:
    """Write the module, or compare it with what would be written."""
    text = module_text(Installation())
    if "--check" in arguments:
        same = TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text
        print(f"{TARGET.name} is {'up to date' if same else 'not what the installed jax says'}")
        return 0 if same else 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
