"""Names are resolved, not spelled: the same mistake is found under every way to import NNX, and nothing is found where
the names mean something else.
"""

from __future__ import annotations

import textwrap

import pytest

from nnx_lint import engine
from nnx_lint.checking import Checker
from nnx_lint.files import import_roots
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile
from nnx_rules.rules import attributes as rules

OPTIONS = Options.everywhere(selected=lambda rule: rule is rules.DATA_IN_STATIC_ATTRIBUTE)


def lint(folder, **files):
    """Findings in files written to a folder, as (file name, line) pairs."""
    return lint_files(folder, {f"{name}.py": text for name, text in files.items()})


def lint_files(folder, files):
    sources = []
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        sources.append(SourceFile.read(str(path)))
    found = engine.check(sources, roots=[str(folder)], options=OPTIONS)
    return [(item.path.rpartition("/")[2], by_path(sources, item.path).location(item.span.start)[0]) for item in found]


def by_path(sources, path):
    return next(source for source in sources if source.path == path)


BODY = """
class Net({module}):
    def __init__(self, rngs):
        self.layers = [{linear}(2, 2, rngs=rngs)]
"""

FORMS = {
    "from flax import nnx": ("nnx.Module", "nnx.Linear"),
    "from flax import nnx as stateful": ("stateful.Module", "stateful.Linear"),
    "import flax.nnx as nn": ("nn.Module", "nn.Linear"),
    "import flax.nnx": ("flax.nnx.Module", "flax.nnx.Linear"),
    "import flax": ("flax.nnx.Module", "flax.nnx.Linear"),
    "from flax.nnx import Module, Linear": ("Module", "Linear"),
    "from flax.nnx import Module as Base, Linear as Dense": ("Base", "Dense"),
    "from flax.nnx import *": ("Module", "Linear"),
    "from flax.nnx.module import Module; from flax.nnx.nn.linear import Linear": ("Module", "Linear"),
    "import nnxkit as nnx": ("nnx.Module", "nnx.Linear"),
    "from nnxkit import Module, Linear": ("Module", "Linear"),
    "from flax import nnx; nn = nnx": ("nn.Module", "nn.Linear"),
    "from flax import nnx; Base = nnx.Module": ("Base", "nnx.Linear"),
    "import flax; nnx = flax.nnx": ("nnx.Module", "nnx.Linear"),
    "try:\n    from flax import nnx\nexcept ImportError:\n    nnx = None": ("nnx.Module", "nnx.Linear"),
    "try:\n    import nnxkit as nnx\nexcept ImportError:\n    from flax import nnx": ("nnx.Module", "nnx.Linear"),
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import jax\nfrom flax import nnx": (
        "nnx.Module",
        "nnx.Linear",
    ),
}


@pytest.mark.parametrize("header", FORMS, ids=lambda header: header.replace("\n", " "))
def test_every_way_to_import_nnx(tmp_path, header):
    module, linear = FORMS[header]
    source = header + "\n" + BODY.format(module=module, linear=linear)
    assert [name for name, _ in lint(tmp_path, net=source)] == ["net.py"]


@pytest.mark.parametrize(
    "header",
    [
        "from flax import linen as nnx",
        "import torch.nn as nnx",
        "import equinox as nnx",
        "class nnx:\n    class Module: pass\n    def Linear(*a, **k): pass",
        "from mylib import nnx",
        "nnx = object()",
    ],
)
def test_a_name_that_means_something_else_is_left_alone(tmp_path, header):
    assert lint(tmp_path, net=header + "\n" + BODY.format(module="nnx.Module", linear="nnx.Linear")) == []


def test_a_rebound_name_is_no_longer_nnx(tmp_path):
    source = """
    from flax import nnx
    nnx = load_other_library()
    class Net(nnx.Module):
        def __init__(self, rngs):
            self.layers = [nnx.Linear(2, 2, rngs=rngs)]
    """
    assert lint(tmp_path, net=source) == []


def test_a_local_name_hides_a_global_one(tmp_path):
    source = """
    from flax import nnx
    def build(nnx, rngs):
        class Net(nnx.Module):
            def __init__(self):
                self.layers = [nnx.Linear(2, 2, rngs=rngs)]
        return Net
    """
    assert lint(tmp_path, net=source) == []


@pytest.mark.parametrize(
    "statement",
    [
        "from base import Base",
        "import base; Base = base.Base",
        "from base import *",
        "from base import Base as B; Base = B",
    ],
)
def test_a_base_class_in_another_file(tmp_path, statement):
    base = "from flax import nnx\nclass Base(nnx.Module): pass\n"
    net = statement + "\nfrom flax import nnx\n" + BODY.format(module="Base", linear="nnx.Linear")
    assert lint(tmp_path, base=base, net=net) == [
        ("net.py", net.splitlines().index("        self.layers = [nnx.Linear(2, 2, rngs=rngs)]") + 1)
    ]


def test_a_file_that_never_says_nnx(tmp_path):
    base = "from flax import nnx\nclass Base(nnx.Module): pass\nLayer = nnx.Linear\n"
    net = "from base import Base, Layer\n" + BODY.format(module="Base", linear="Layer")
    assert [name for name, _ in lint(tmp_path, base=base, net=net)] == ["net.py"]


@pytest.mark.parametrize(
    "statement",
    ["from ..core.layers import Base", "from pkg.core import Base", "from ..core import layers; Base = layers.Base"],
)
def test_packages_relative_imports_and_reexports(tmp_path, statement):
    files = {
        "pkg/__init__.py": "",
        "pkg/core/__init__.py": "from .layers import Base as Base\n",
        "pkg/core/layers.py": "from flax import nnx\nclass Base(nnx.Module): pass\n",
        "pkg/models/__init__.py": "",
        "pkg/models/net.py": statement + "\nfrom flax import nnx\n" + BODY.format(module="Base", linear="nnx.Linear"),
    }
    assert [name for name, _ in lint_files(tmp_path, files)] == ["net.py"]


@pytest.mark.parametrize("named", [".", "space", "space/deep", "space/deep/net.py"])
@pytest.mark.parametrize("where", ["space.parts.base", "tools"])
def test_a_namespace_package_is_found_from_the_top_of_the_repository(tmp_path, monkeypatch, named, where):
    monkeypatch.chdir(tmp_path)
    base = "from flax import nnx\n\nclass Base(nnx.Module):\n    pass\n"
    files = {
        "pyproject.toml": "",
        where.replace(".", "/") + ".py": base,
        "space/deep/net.py": f"import {where} as b\n" + BODY.format(module="b.Base", linear="b.nnx.Linear"),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    source = SourceFile.read("space/deep/net.py")
    roots = import_roots([source.path], [str(tmp_path), named])
    assert [item.path for item in engine.check([source], roots=roots, options=OPTIONS)] == [source.path]


def test_import_cycles_end(tmp_path):
    one = "from two import B\nfrom flax import nnx\nclass A(nnx.Module): pass\n"
    two = "from one import A\nfrom flax import nnx\n" + BODY.format(module="A", linear="nnx.Linear")
    assert lint(tmp_path, one=one, two=two) == [("two.py", 6)]


def test_only_the_named_files_are_reported(tmp_path):
    (tmp_path / "base.py").write_text("from flax import nnx\n" + BODY.format(module="nnx.Module", linear="nnx.Linear"))
    net = "from base import Net\nclass Wide(Net): pass\n"
    assert lint(tmp_path, net=net) == []


def test_a_class_with_an_unknown_base_is_still_an_nnx_class(tmp_path):
    source = "from flax import nnx\nfrom elsewhere import Mixin\n" + BODY.format(
        module="Mixin, nnx.Module", linear="nnx.Linear"
    )
    assert [name for name, _ in lint(tmp_path, net=source)] == ["net.py"]


def test_an_overridden_setattr_makes_attributes_unknown(tmp_path):
    source = """
    from flax import nnx
    class Net(nnx.Module):
        def __setattr__(self, name, value): object.__setattr__(self, name, nnx.List(value))
        def __init__(self, rngs): self.layers = [nnx.Linear(2, 2, rngs=rngs)]
    """
    assert lint(tmp_path, net=source) == []


def test_findings_do_not_depend_on_the_order_of_files_that_import_each_other(tmp_path):
    texts = {
        "one": "from flax import nnx\nfrom two import *\nclass A(nnx.Module): pass\n"
        + BODY.format(module="B", linear="nnx.Linear").replace("Net", "C"),
        "two": "from flax import nnx\nfrom one import *\nclass B(nnx.Module): pass\n"
        + BODY.format(module="A", linear="nnx.Linear").replace("Net", "D"),
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    paths = [str(tmp_path / f"{name}.py") for name in texts]
    found = []
    for order in (paths, paths[::-1]):
        checker = Checker(OPTIONS, roots=[str(tmp_path)])
        found.append({(item.path, item.span) for item in checker.check(checker.read(order))})
    assert found[0] == found[1]
    assert found[0]
