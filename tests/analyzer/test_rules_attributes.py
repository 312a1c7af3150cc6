"""The attribute rules where a page cannot show them: several files, names, versions, and what must stay silent."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from nnx_lint.checking import Checker
from nnx_lint.diagnostics import Diagnostic
from nnx_lint.fixes import SAFE, fix_all
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile

NNX = "import jax\nimport jax.numpy as jnp\nfrom flax import nnx\n\n"


class Files:
    """Files of a project, linted with the default rules of the attribute families."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.version: tuple[int, ...] | None = None

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return str(path)

    def checker(self) -> Checker:
        selected = Options.everywhere(selected=lambda rule: rule.default and rule.code < "NNX150", version=self.version)
        return Checker(selected, roots=[])

    def sources(self) -> dict[str, SourceFile]:
        return {str(path): SourceFile.read(str(path)) for path in sorted(self.folder.rglob("*.py"))}

    def findings(self) -> list[Diagnostic]:
        checker = self.checker()
        found = checker.check(self.sources())
        assert not checker.problems
        return found

    def codes(self) -> list[tuple[str, int, str]]:
        """File name, line and code of every finding."""
        sources = self.sources()
        return [
            (Path(item.path).name, sources[item.path].location(item.span.start)[0], item.rule.code)
            for item in self.findings()
        ]

    def fixed(self, name: str = "a.py") -> str:
        outcome = fix_all(self.sources(), self.checker().check, SAFE)
        assert not outcome.problems
        return outcome.sources[str(self.folder / name)].text


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


Lint = Callable[[str], list[tuple[int, str]]]


@pytest.fixture
def lint(files: Files) -> Lint:
    """Lint one program that imports nnx; lines count from the program's first one."""

    def run(program: str) -> list[tuple[int, str]]:
        files.write("a.py", NNX + textwrap.dedent(program).lstrip("\n"))
        return [(line - NNX.count("\n"), code) for _, line, code in files.codes()]

    return run


# -- several files -----------------------------------------------------------------------------------------------------


def test_base_class_in_another_file(files: Files) -> None:
    files.write("pkg/__init__.py", "from .base import Base as Root\n")
    files.write(
        "pkg/base.py",
        """\
        import flax.nnx as nn

        class Base(nn.Module):
            def __init__(self):
                self.head = None
        """,
    )
    files.write(
        "pkg/net.py",
        """\
        from flax import nnx
        from pkg import Root

        class Net(Root):
            def __init__(self, rngs):
                super().__init__()
                self.head = nnx.Linear(1, 1, rngs=rngs)
                self.layers = [nnx.Linear(1, 1, rngs=rngs)]
        """,
    )
    assert files.codes() == [("net.py", 7, "NNX103"), ("net.py", 8, "NNX101")]
    late, direct = files.findings()
    assert late.fix is None, "a fix must not edit another file"
    assert Path(late.related[0].path).name == "base.py"
    assert direct.fix is not None


def test_helper_in_another_file(files: Files) -> None:
    files.write(
        "blocks.py",
        """\
        from flax import nnx

        def make_layers(count, rngs):
            return [nnx.Linear(1, 1, rngs=rngs) for _ in range(count)]
        """,
    )
    files.write(
        "net.py",
        """\
        import flax.nnx as nnx
        import blocks

        class Net(nnx.Module):
            def __init__(self, rngs):
                self.layers = blocks.make_layers(3, rngs)
        """,
    )
    assert files.codes() == [("net.py", 6, "NNX101")]


def test_subclass_in_another_file_of_an_unchecked_class(files: Files) -> None:
    files.write(
        "base.py",
        """\
        import jax.numpy as jnp
        from flax import nnx

        class Base(nnx.Module, pytree=False):
            def __init__(self):
                self.arrays = [jnp.zeros(1)]
        """,
    )
    files.write("net.py", "from base import Base\n\nclass Net(Base):\n    pass\n")
    assert files.codes() == [("net.py", 3, "NNX115")]
    assert "class Net(Base, pytree=False):" in files.fixed("net.py")


# -- how nnx is spelled ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "module", "layer", "expected"),
    [
        ("from flax import nnx", "nnx.Module", "nnx.Linear", "nnx.List([layer])"),
        ("import flax.nnx as nn", "nn.Module", "nn.Linear", "nn.List([layer])"),
        ("import flax.nnx", "flax.nnx.Module", "flax.nnx.Linear", "flax.nnx.List([layer])"),
        ("from flax.nnx import Module, Linear, List", "Module", "Linear", "List([layer])"),
        ("from flax.nnx import Module, Linear", "Module", "Linear", None),
        ("import nnxkit as nnx", "nnx.Module", "nnx.Linear", "nnx.List([layer])"),
    ],
)
def test_fixes_use_the_names_of_the_file(
    files: Files, imports: str, module: str, layer: str, expected: str | None
) -> None:
    program = f"""\
{imports}

class Net({module}):
    def __init__(self, rngs):
        layer = {layer}(1, 1, rngs=rngs)
        self.layers = [layer]
"""
    files.write("a.py", program)
    assert files.codes() == [("a.py", 6, "NNX101")]
    assert files.fixed() == (program.replace("[layer]", expected) if expected is not None else program)


def test_a_shadowed_name_is_not_used(files: Files) -> None:
    program = """\
from flax import nnx

class Net(nnx.Module):
    def __init__(self, rngs):
        layer = nnx.Linear(1, 1, rngs=rngs)
        nnx = None
        self.layers = [layer]
"""
    files.write("a.py", program.replace("        nnx = None\n", "        List = nnx = None\n"))
    assert files.fixed() == program.replace("        nnx = None\n", "        List = nnx = None\n")


def test_fixes_keep_comments_and_layout(files: Files) -> None:
    files.write(
        "a.py",
        NNX
        + """\
class Net(nnx.Module):
    def __init__(self, rngs):
        self.layers = [  # two of them
            nnx.Linear(1, 1, rngs=rngs),  # first

            nnx.Linear(1, 1, rngs=rngs),
        ]
""",
    )
    assert "self.layers = nnx.List([  # two of them\n" in files.fixed()
    assert files.fixed().endswith("            nnx.Linear(1, 1, rngs=rngs),\n        ])\n")


@pytest.mark.parametrize(
    "use", ["self.a + [x]", "self.a == []", "sorted(self.a.copy())", "isinstance(self.a, list)", "self.a * 2"]
)
def test_a_list_that_is_used_as_one_stays_one(files: Files, use: str) -> None:
    program = f"""\
class Net(nnx.Module):
    def __init__(self, rngs):
        self.a = [nnx.Linear(1, 1, rngs=rngs)]
        self.b = []
        self.b.append(nnx.Linear(1, 1, rngs=rngs))

    def __call__(self, x):
        return {use}, {use.replace("self.a", "self.b")}
"""
    files.write("a.py", NNX + program)
    assert "self.a = nnx.data([nnx.Linear(1, 1, rngs=rngs)])\n        self.b = nnx.data([])\n" in files.fixed()


# -- versions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "count"), [(None, 1), ((0, 12), 1), ((0, 11, 2), 0)])
def test_checks_exist_since_flax_0_12(files: Files, version: tuple[int, ...] | None, count: int) -> None:
    files.version = version
    files.write("a.py", NNX + "class Net(nnx.Module):\n    def __init__(self):\n        self.a = [jnp.ones(1)]\n")
    assert len(files.findings()) == count


SHIMS = {
    "getattr": """
        List = getattr(nnx, "List", list)
        class Net(nnx.Module):
            def __init__(self, layers):
                self.a = List([jnp.ones(1)])
    """,
    "hasattr": """
        HAS_LIST = hasattr(nnx, "List")
        class Net(nnx.Module):
            def __init__(self):
                if hasattr(nnx, "List"):
                    self.a = nnx.List([jnp.ones(1)])
                else:
                    self.a = [jnp.ones(1)]
                self.b = nnx.List([jnp.ones(1)]) if HAS_LIST else [jnp.ones(1)]
    """,
    "import": """
        try:
            from flax.nnx import List
        except ImportError:
            List = list
        class Net(nnx.Module):
            def __init__(self):
                self.a = List([jnp.ones(1)])
    """,
    "version": """
        import flax
        from packaging.version import parse
        NEW = parse(flax.__version__) >= parse("0.12.0")
        VERSION = tuple(int(part) for part in flax.__version__.split(".")[:2])
        class Net(nnx.Module):
            def __init__(self):
                if NEW:
                    self.a = nnx.List([jnp.ones(1)])
                else:
                    self.a = [jnp.ones(1)]
                if VERSION < (0, 12):
                    self.b = [jnp.ones(1)]
                else:
                    self.b = nnx.List([jnp.ones(1)])
                self.c = [jnp.ones(1)] if (0, 12) > VERSION else nnx.List([jnp.ones(1)])
    """,
}


@pytest.mark.parametrize("program", SHIMS.values(), ids=SHIMS.keys())
def test_shims_for_old_flax_are_silent(lint: Lint, program: str) -> None:
    assert lint(program) == []


# -- silence -----------------------------------------------------------------------------------------------------------

SILENT = {
    "unknown base class": """
        from somewhere import Base
        class Net(Base):
            def __init__(self):
                self.a = [jnp.ones(1)]
    """,
    "metaclass": """
        from somewhere import Meta
        class Net(nnx.Module, metaclass=Meta):
            def __init__(self):
                self.a = [jnp.ones(1)]
    """,
    "own __setattr__": """
        class Net(nnx.Module):
            def __setattr__(self, name, value):
                super().__setattr__(name, nnx.data(value))
            def __init__(self):
                self.a = [jnp.ones(1)]
    """,
    "plain class": """
        class Net:
            def __init__(self):
                self.a = [jnp.ones(1)]
                self.b = None
                self.b = jnp.ones(1)
    """,
    "linen": """
        import flax.linen as nn
        class Net(nn.Module):
            def setup(self):
                self.a = [nn.Dense(1)]
    """,
    "equinox": """
        import equinox as eqx
        class Net(eqx.Module):
            a: list
            def __init__(self):
                self.a = [jnp.ones(1)]
    """,
    "exclusive branches": """
        class Net(nnx.Module):
            def __init__(self, use):
                if use:
                    self.a = jnp.ones(1)
                else:
                    self.a = None
    """,
    "correlated conditions": """
        class Net(nnx.Module):
            def __init__(self, use):
                if not use:
                    self.a = None
                if use:
                    self.a = jnp.ones(1)
    """,
    "early return": """
        class Net(nnx.Module):
            def __init__(self, use):
                if not use:
                    self.a = None
                    return
                self.a = jnp.ones(1)
    """,
    "marked on one branch": """
        class Net(nnx.Module):
            def __init__(self, use):
                self.a = None
                if use:
                    self.a = nnx.data(None)
                self.a = jnp.ones(1)
    """,
    "deleted in between": """
        class Net(nnx.Module):
            def __init__(self):
                self.a = None
                del self.a
                self.a = jnp.ones(1)
    """,
    "marked by another method": """
        class Net(nnx.Module):
            def __init__(self):
                self.a = None
            def build(self):
                self.a = nnx.data(None)
            def update(self, x):
                self.a = jnp.ones(1)
    """,
    "plain contents": """
        import numpy as np
        import optax
        class Net(nnx.Module):
            def __init__(self, sizes, unknown):
                self.a = [1, "a", None, nnx.relu, jnp.float32, nnx.Linear, optax.adam(0.1)]
                self.b = {"x": (1, 2), "y": [np.float32(1)]}
                self.c = [jax.ShapeDtypeStruct((1,), jnp.float32)]
                self.d = [unknown(size) for size in sizes]
                self.e = []
                for size in sizes:
                    self.e.append(int(size))
                self.f = jnp.ones(2).shape
    """,
    "temporary container": """
        class Net(nnx.Module):
            def __init__(self, rngs):
                self.a = []
                self.a.append(nnx.Linear(1, 1, rngs=rngs))
                self.b = self.a.pop()
                self.c = []
                self.c.append(jnp.ones(1))
                del self.c
    """,
    "property": """
        class Net(nnx.Module):
            def __init__(self):
                self.a = [jnp.ones(1)]
            @property
            def a(self):
                return self._a
            @a.setter
            def a(self, value):
                self._a = nnx.data(value)
    """,
    "computed names": """
        class Net(nnx.Module):
            def __init__(self, names):
                for name in names:
                    setattr(self, name, [jnp.ones(1)])
    """,
    "library container that is changed": """
        class Net(nnx.Module):
            def __init__(self, rngs):
                self.a = nnx.List()
                self.a.append(nnx.Linear(1, 1, rngs=rngs))
                self.a = [nnx.Linear(1, 1, rngs=rngs)]
    """,
    "declared in the class body": """
        class Net(nnx.Module):
            a: nnx.Data[list]
            b: "nnx.Data[list]"
            def __init__(self):
                self.a = [jnp.ones(1)]
                self.b = [jnp.ones(1)]
    """,
    "number over a data attribute": """
        class Net(nnx.Module):
            def __init__(self):
                self.a = jnp.ones(1)
            def reset(self):
                self.a = 0.0
    """,
    "eager history": """
        class Trainer(nnx.Module):
            def __init__(self):
                self.losses = []
            def fit(self, batches):
                for batch in batches:
                    self.losses.append(jnp.mean(batch))
    """,
    "only for type checkers": """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from somewhere import Layer
        class Net(nnx.Module):
            layer: "Layer"
            def __init__(self, layer: "Layer"):
                self.layer = layer
    """,
}


@pytest.mark.parametrize("program", SILENT.values(), ids=SILENT.keys())
def test_silent(lint: Lint, program: str) -> None:
    assert lint(program) == []


# -- forms that people write -------------------------------------------------------------------------------------------

FORMS = {
    "times": "self.a = [nnx.Linear(1, 1, rngs=rngs)] * 2",
    "list of a generator": "self.a = list(nnx.Linear(1, 1, rngs=rngs) for _ in range(2))",
    "tuple of a generator": "self.a = tuple(nnx.Linear(1, 1, rngs=rngs) for _ in range(2))",
    "sum": "self.a = [1] + [nnx.Linear(1, 1, rngs=rngs)]",
    "unpacked": "self.a = [*(nnx.Linear(1, 1, rngs=rngs),)]",
    "merged dicts": "self.a = {**{'x': nnx.Linear(1, 1, rngs=rngs)}}",
    "dict of keywords": "self.a = dict(x=nnx.Linear(1, 1, rngs=rngs))",
    "dict of pairs": "self.a = dict(zip(['x'], [nnx.Linear(1, 1, rngs=rngs)]))",
    "dict comprehension": "self.a = {k: nnx.Linear(1, 1, rngs=rngs) for k in 'xy'}",
    "map": "self.a = list(map(lambda n: nnx.Linear(n, n, rngs=rngs), (1, 2)))",
    "either arm": "self.a = [] if use else [nnx.Linear(1, 1, rngs=rngs)]",
    "optional elements": "self.a = [nnx.Linear(1, 1, rngs=rngs) if i else None for i in range(2)]",
    "walrus": "(layers := [nnx.Linear(1, 1, rngs=rngs)]); self.a = layers",
    "setattr": "setattr(self, 'a', [nnx.Linear(1, 1, rngs=rngs)])",
    "pair of targets": "self.a, self.b = [nnx.Linear(1, 1, rngs=rngs)], 1",
    "nested": "self.a = {'x': {'y': nnx.Linear(1, 1, rngs=rngs)}}",
    "arrays of a function": "self.a = jnp.split(jnp.ones(4), 2)",
    "called lambda": "self.a = (lambda n: [nnx.Linear(n, n, rngs=rngs)])(2)",
}


@pytest.mark.parametrize("statement", FORMS.values(), ids=FORMS.keys())
def test_forms_of_containers(lint: Lint, statement: str) -> None:
    program = f"class Net(nnx.Module):\n    def __init__(self, rngs, use):\n        {statement}\n"
    assert lint(program) == [(3, "NNX101")]


FILLS = {
    "append": "self.a.append(layer)",
    "insert": "self.a.insert(0, layer)",
    "extend": "self.a.extend([layer])",
    "augmented": "self.a += [layer]",
    "alias": "a = self.a; a.append(layer)",
    "bound method": "add = self.a.append; add(layer)",
    "branch": "self.a.append(layer) if use else None",
}


@pytest.mark.parametrize("statement", FILLS.values(), ids=FILLS.keys())
def test_forms_of_filling(lint: Lint, statement: str) -> None:
    program = f"""
    class Net(nnx.Module):
        def __init__(self, rngs, use):
            self.a = []
            layer = nnx.Linear(1, 1, rngs=rngs)
            {statement}
    """
    assert lint(program) == [(5, "NNX104")]


def test_named_tuple_of_arrays(lint: Lint) -> None:
    program = """
    from typing import NamedTuple
    class Pair(NamedTuple):
        mean: jax.Array
        count: int
    class Net(nnx.Module):
        def __init__(self):
            self.good = Pair(1, 2)
            self.bad = Pair(jnp.ones(1), 2)
    """
    assert lint(program) == [(8, "NNX101")]


def test_registered_data_type(lint: Lint) -> None:
    program = """
    @nnx.register_data_type
    class Scale: pass
    class Plain: pass
    class Net(nnx.Module):
        def __init__(self):
            self.a = [Plain()]
            self.b = [Scale()]
    """
    assert lint(program) == [(7, "NNX101")]


def test_mixin_of_a_pytree_may_mark(lint: Lint) -> None:
    program = """
    class Mixin:
        def build(self):
            self.a = nnx.data([jnp.ones(1)])
    class Alone:
        def build(self):
            self.a = nnx.data([jnp.ones(1)])
    class Net(Mixin, nnx.Module):
        def __init__(self):
            self.build()
    """
    assert lint(program) == [(6, "NNX133")]


def test_a_base_class_sets_what_many_subclasses_keep(lint: Lint) -> None:
    subclasses = "\n".join(
        f"class Net{index}(Base):\n    def __init__(self):\n        super().__init__()\n        self.a = [jnp.ones(1)]"
        for index in range(20)
    )
    base = "class Base(nnx.Module):\n    def __init__(self):\n        self.a = nnx.data([])\n"
    assert lint(base + subclasses) == []


def test_the_first_assignment_is_named(files: Files) -> None:
    files.write(
        "a.py",
        NNX + "class Net(nnx.Module):\n    def __init__(self):\n        self.a = None\n        self.a = jnp.ones(1)\n",
    )
    (finding,) = files.findings()
    source = files.sources()[finding.path]
    assert [source.segment(item.span) for item in finding.related] == ["self.a = None"]


def test_a_call_of_list_becomes_a_call_of_nnx_list(files: Files) -> None:
    files.write(
        "a.py",
        NNX
        + """
class Net(nnx.Module):
    def __init__(self, rngs):
        self.layers = list(nnx.Linear(2, 2, rngs=rngs) for _ in range(3))
""",
    )
    assert "self.layers = nnx.List(nnx.Linear(2, 2, rngs=rngs) for _ in range(3))" in files.fixed()
