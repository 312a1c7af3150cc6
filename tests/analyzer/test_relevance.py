"""Which files are looked at: those that mention NNX, and those that reach one that does through imports of any form."""

from __future__ import annotations

import pytest

from nnx_lint.engine import Engine
from nnx_lint.model.layout import Layout
from nnx_lint.selection import Options
from nnx_lint.sources import Sources

LAYERS = "from flax import nnx\n"


def relevant(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    sources = Sources([str(folder / name) for name in files])
    engine = Engine(sources, [], Options.everywhere(lambda rule: True))
    return {engine.project.layout.name_of(path)[0] for path in engine.concerned & sources.keys()}


@pytest.mark.parametrize(
    "statement",
    [
        "import pkg.layers",
        "import os, pkg.layers as layers",
        "from pkg import layers",
        "from pkg.layers import Base",
        "from pkg import (\n    other,\n    layers as l,\n)",
        "from . import layers",
        "from .layers import *",
        "if True:\n    from .layers import Base",
        "def f():\n    import pkg.layers",
    ],
)
def test_every_form_of_import_is_followed(tmp_path, statement):
    files = {"pkg/__init__.py": "", "pkg/layers.py": LAYERS, "pkg/other.py": "x = 1\n", "pkg/net.py": statement + "\n"}
    assert relevant(tmp_path, files) == {"pkg.layers", "pkg.net"}


def test_a_name_that_only_ends_like_nnx_is_another_library(tmp_path):
    files = {
        "array_api.py": "import ndonnx as ndx\n",
        "export.py": "import onnx  # not linen\n",
        "both.py": "import onnx\nimport jax_nnx\n",
        "kit.py": "import nnxkit\n",
    }
    assert relevant(tmp_path, files) == {"both", "kit"}


def test_chains_and_cycles_of_imports(tmp_path):
    files = {
        "a.py": "import b\n",
        "b.py": "import c\nimport a\n",
        "c.py": "import layers\nimport a\n",
        "layers.py": LAYERS,
        "lonely.py": "import numpy\nimport lonely2\n",
        "lonely2.py": "import lonely\n",
    }
    assert relevant(tmp_path, files) == {"a", "b", "c", "layers"}


def test_what_computes_with_jax_for_a_model_is_looked_at(tmp_path):
    files = {
        "train.py": LAYERS + "from losses import mse\nimport names\n",
        "losses.py": "import jax.numpy as jnp\nfrom weights import weight\n",
        "weights.py": "from jax import numpy as jnp\n",
        "names.py": "import physics\n",
        "physics.py": "import jax\n",
    }
    assert relevant(tmp_path, files) == {"train", "losses", "weights"}


def test_a_file_with_a_syntax_error_has_imports_too(tmp_path):
    assert relevant(tmp_path, {"layers.py": LAYERS, "net.py": "from layers import Base\ndef f(:\n"}) == {
        "layers",
        "net",
    }


def test_a_large_knot_of_imports_is_looked_at_once(tmp_path, monkeypatch):
    names = [f"m{i}" for i in range(60)]
    everything = "".join(f"import {name}\n" for name in names)
    looked_up = []
    absolute = Layout.absolute

    def counted(self, name, importer):
        looked_up.append(name)
        return absolute(self, name, importer)

    monkeypatch.setattr(Layout, "absolute", counted)
    assert relevant(tmp_path, {f"{name}.py": everything for name in names}) == set()
    assert len(looked_up) == 60 * 60


def test_files_that_do_not_concern_it_are_parsed_and_no_more(tmp_path):
    for name, text in {"sound.py": "x = 1\n", "broken.py": "def f(:\n"}.items():
        (tmp_path / name).write_text(text)
    sources = Sources([str(tmp_path / "sound.py"), str(tmp_path / "broken.py")])
    engine = Engine(sources, [], Options.everywhere(lambda rule: True))
    sound, broken = (engine.check(path) for path in sources)
    assert sound.complete
    assert len(broken.problems) == 1
    assert not any(source._parsed for source in sources.values())
