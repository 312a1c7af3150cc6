"""Writes `nnx_lint/model/tables/jax_gone.py`: names of jax, and arguments of its functions, that are gone.

The releases are read as text, wheels and source archives as they come from PyPI; nothing of jax is imported. A module
has the names that it binds, without those that only a type checker sees, and those in a table of deprecations that
still lead somewhere; that is how jax takes names away. A name is gone since the first release from which on no release
has it. What a module imports for its own use (Python's modules, jax's private ones) is not its name.

    pip download --no-deps jax==0.6.0 -d releases ...    # each release that shall count, the newest as well
    python scripts/jax_gone.py releases
"""

import ast
import re
import sys
import tarfile
import textwrap
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "analyzer/nnx_lint/model/tables/jax_gone.py"

MODULES = frozenset(
    {
        "jax",
        "jax.ad_checkpoint",
        "jax.core",
        "jax.custom_derivatives",
        "jax.dlpack",
        "jax.errors",
        "jax.experimental",
        "jax.experimental.pjit",
        "jax.experimental.shard_map",
        "jax.image",
        "jax.interpreters",
        "jax.lax",
        "jax.lax.linalg",
        "jax.lib",
        "jax.nn",
        "jax.nn.initializers",
        "jax.numpy",
        "jax.numpy.fft",
        "jax.numpy.linalg",
        "jax.ops",
        "jax.random",
        "jax.scipy.linalg",
        "jax.scipy.signal",
        "jax.scipy.special",
        "jax.sharding",
        "jax.stages",
        "jax.tree_util",
    }
)
"""Whose names are looked at. All public modules count as names themselves."""

DEEPEST = 3
"""How many dots a name has at most: ``jax.experimental.pjit.with_sharding_constraint``."""

HEAD = '''"""Names and arguments of jax that are gone. Made by `scripts/jax_gone.py` from its releases; not edited."""

from __future__ import annotations

NEWEST = {newest}
"""The newest release that was read."""

_ROWS: tuple[tuple[tuple[int, ...], str], ...] = (
'''
TAIL = ''')

GONE: dict[str, tuple[int, ...]] = {name: since for since, names in _ROWS for name in names.split()}
"""The first release without a name. An argument stands as ``jax.numpy.clip(a_min)``; as ``jax.config.`` a module that
is gone, while its package has something else of that name.
"""
'''

Version = tuple[int, ...]


class Release:
    """One release: its public modules, with their names and what these lead to."""

    def __init__(self, path: Path) -> None:
        found = re.search(r"jax-([\d.]+?)(?:-|\.tar)", path.name)
        assert found is not None, path.name
        self.version: Version = tuple(map(int, found[1].split(".")))
        self._texts = dict(_texts(path))
        self._trees: dict[str, list[ast.stmt]] = {}
        self.modules = {name for name in self._texts if not any(part.startswith("_") for part in name.split("."))}
        bound = {module: self._names(module) for module in MODULES & self.modules}
        self.names = {f"{module}.{name}" for module, names in bound.items() for name in names} | self.modules
        self.own = {f"{module}.{name}" for module, names in bound.items() for name, own in names.items() if own}
        self.own |= self.modules

    def _body(self, module: str) -> list[ast.stmt]:
        if module not in self._trees:
            self._trees[module] = [*_reached(ast.parse(self._texts[module]).body)]
        return self._trees[module]

    def _names(self, module: str) -> dict[str, bool]:
        """The names that a module has at run time, and whether they are its own: defined there, or passed on."""
        bound: dict[str, bool] = {}
        for node in self._body(module):
            match node:
                case ast.FunctionDef() | ast.ClassDef():
                    bound[node.name] = True
                case ast.ImportFrom(module=str(origin)):
                    passed = [
                        alias for alias in node.names if alias.asname and f"{origin}.{alias.name}" not in self._texts
                    ]
                    bound |= {alias.asname or alias.name: alias in passed for alias in node.names}
                case ast.Import(names=names):
                    bound |= {alias.asname or alias.name.partition(".")[0]: False for alias in names}
                case ast.Assign(targets=targets):
                    bound |= {target.id: True for target in targets if isinstance(target, ast.Name)}
                case ast.AnnAssign(target=ast.Name(id=name)):
                    bound[name] = True
                case _:
                    pass
        for name, gone in _deprecations(self._body(module)):
            bound[name] = True
            if gone:
                del bound[name]
        return {name: own for name, own in bound.items() if not name.startswith("_")}

    def parameters(self, name: str) -> set[str] | None:
        """The parameters of a public function that can be given by name; ``None`` if it is none, or takes any."""
        module, _, last = name.rpartition(".")
        for _ in range(4):  # so far from the public name to the definition
            if module not in self._texts:
                return None
            for node in reversed(self._body(module)):
                if isinstance(node, ast.FunctionDef) and node.name == last:
                    return None if node.args.kwarg else {item.arg for item in (*node.args.args, *node.args.kwonlyargs)}
                if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    origin = next((item.name for item in node.names if (item.asname or item.name) == last), None)
                    if origin is not None:
                        module, last = node.module, origin
                        break
            else:
                return None
        return None


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    """The modules of a release by their dotted names, with their texts."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            files = {name: wheel.read(name) for name in wheel.namelist() if re.match(r"jax/.*\.py$", name)}
    else:
        with tarfile.open(path) as archive:
            members = [item for item in archive.getmembers() if re.match(r"jax-[\d.]+/jax/.*\.py$", item.name)]
            files = {
                item.name.partition("/")[2]: file.read() for item in members if (file := archive.extractfile(item))
            }
    for name, data in files.items():
        yield name.removesuffix(".py").removesuffix("/__init__").replace("/", "."), data.decode()


def _reached(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module that run, without those that only a type checker sees."""
    for node in body:
        if isinstance(node, ast.If):
            yield from _reached([*([] if "TYPE_CHECKING" in ast.unparse(node.test) else node.body), *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _reached([*node.body, *(each for handler in node.handlers for each in handler.body)])
        else:
            yield node


def _deprecations(body: list[ast.stmt]) -> Iterator[tuple[str, bool]]:
    """The names in tables of deprecations, and whether they lead nowhere any more."""
    for node in body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        table = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if isinstance(table, ast.Dict) and any("_deprecat" in ast.unparse(target) for target in targets):
            for key, value in zip(table.keys, table.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Tuple):
                    last = value.elts[-1]
                    yield str(key.value), isinstance(last, ast.Constant) and last.value is None


def _since(releases: list[Release], has: list[bool]) -> Version | None:
    """The first release from which on none has something; ``None`` if the newest has it, or none ever had."""
    if has[-1] or not any(has):
        return None
    return releases[len(has) - has[::-1].index(True)].version


def _rows(gone: dict[str, Version]) -> Iterator[str]:
    """The rows of the table: a release, and the names that it was the first to lack."""
    by_release: dict[Version, list[str]] = defaultdict(list)
    for name, version in sorted(gone.items()):
        while not version[-1]:
            version = version[:-1]
        by_release[version].append(name)
    for version, names in sorted(by_release.items()):
        lines = textwrap.wrap(" ".join(names), 98, break_on_hyphens=False)
        quoted = "".join(f'            "{line} "\n' for line in lines[:-1]) + f'            "{lines[-1]}"\n'
        yield f"    (\n        {version},\n        (\n{quoted}        ),\n    ),\n"


def _measured(releases: list[Release]) -> dict[str, Version]:
    """What is gone: names, arguments as ``jax.numpy.clip(a_min)``, modules whose names mean something else by now as
    ``jax.config.``; of a module that is gone itself nothing more.
    """
    newest = releases[-1]
    gone: dict[str, Version] = {}
    for name in {name for release in releases for name in release.own if name.count(".") <= DEEPEST}:
        if name.rpartition(".")[0] in newest.modules:
            as_module = any(name in release.modules for release in releases)
            has = [name in (release.modules if as_module else release.names) for release in releases]
            if (since := _since(releases, has)) is not None:
                gone[f"{name}." if as_module and name in newest.names else name] = since
    for name in newest.names:
        now = newest.parameters(name)
        if now is None:
            continue
        then = [release.parameters(name) or set() for release in releases]
        for parameter in {each for given in then for each in given if not each.startswith("_")} - now:
            if (since := _since(releases, [parameter in given for given in then])) is not None:
                gone[f"{name}({parameter})"] = since
    return gone


def main() -> None:
    """Read the releases in a folder, and write the table."""
    releases = sorted(map(Release, Path(sys.argv[1]).iterdir()), key=lambda release: release.version)
    text = HEAD.format(newest=releases[-1].version) + "".join(_rows(_measured(releases))) + TAIL
    TARGET.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
