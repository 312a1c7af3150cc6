"""A small NNX project, and edits of it, to compare mypy's daemon with fresh runs.

An *edit* writes one file anew: each file has some versions, and an edit takes one of them. The versions differ in what
matters to one of the two: in types that another module uses, in mistakes that only the analyzer sees, in the file
itself or by what a function of another file does, in comments that silence them, and in syntax.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

HEAD = "import jax\nimport jax.numpy as jnp\nfrom flax import nnx\n"

VERSIONS: dict[str, tuple[str, ...]] = {
    "shop/__init__.py": ("", "from shop.model import Model as Model\n"),
    "shop/parts.py": (
        # What `blocks` returns decides whether `Model` is right.
        HEAD + "def blocks(n: int, rngs: nnx.Rngs):\n    return [nnx.Linear(n, n, rngs=rngs)]\n",
        HEAD + "def blocks(n: int, rngs: nnx.Rngs):\n    return nnx.List([nnx.Linear(n, n, rngs=rngs)])\n",
        HEAD + "def blocks(n: int, rngs: nnx.Rngs):\n    made = [n]\n    return made\n",
        HEAD + "def blocks(n: int, rngs: nnx.Rngs) -> int:\n    return n\n",
        HEAD + "def blocks(n: int, rngs: nnx.Rngs:\n    return n\n",
    ),
    "shop/base.py": (
        HEAD + "class Base(nnx.Module):\n    size: int = 3\n",
        HEAD + "class Base(nnx.Module):\n    size: str = ''\n",
        HEAD + "class Base(nnx.Module):\n    size: int = 3\n    kept: nnx.Param[jax.Array]\n"
        "    def __init__(self) -> None:\n        self.state = []\n        self.state.append(jnp.zeros((2,)))\n",
        HEAD + "class Base:\n    size: int = 3\n",
    ),
    "shop/model.py": (
        HEAD + "from shop.base import Base\nfrom shop.parts import blocks\n"
        "class Model(Base):\n    def __init__(self, rngs: nnx.Rngs) -> None:\n        self.blocks = blocks(2, rngs)\n",
        HEAD + "from shop.base import Base\nfrom shop.parts import blocks\n"
        "class Model(Base):\n    def __init__(self, rngs: nnx.Rngs) -> None:\n"
        "        self.blocks = blocks(2, rngs)  # nnx: ignore[data-in-static-attribute]\n",
        HEAD + "from shop.base import Base\n"
        "class Model(Base):\n    def __init__(self, rngs) -> None:\n"
        "        self.layers = [nnx.Linear(2, 2, rngs=rngs)]\n        self.n: int = self.size\n",
        HEAD + "from shop.base import Base\n"
        "class Model(Base):\n    def __init__(self, rngs) -> None:\n"
        "        self.layers = [nnx.Linear(2, 2, rngs=rngs)]  # type: ignore[nnx-data-in-static-attribute]\n",
    ),
    "shop/train.py": (
        HEAD + "from shop.model import Model\n"
        "model = Model(nnx.Rngs(0))\nnumber: int = model.size\n"
        "graphdef, params, rest = nnx.split(model, nnx.Param, ...)\n",
        HEAD + "from shop.model import Model\n"
        "def loss(model: Model, x: jax.Array) -> jax.Array:\n    return x\n"
        "def step(model: Model) -> None:\n    gradient: int = nnx.grad(loss)(model, jnp.zeros((2,)))\n",
        HEAD + "import shop.model\n"
        "def make():\n    model = shop.model.Model(nnx.Rngs(0))\n    model.extra = [nnx.Param(jnp.zeros((2,)))]\n"
        "    return model\n",
        "x = 1\n",
    ),
}


class Project:
    """The project in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, versions in VERSIONS.items():
            self.write(name, versions[0])

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def edits(self, count: int, seed: int) -> Iterator[str]:
        """Make edits, and say what each was."""
        chosen = random.Random(seed)
        current = dict.fromkeys(VERSIONS, 0)
        for _ in range(count):
            name = chosen.choice(list(VERSIONS))
            number = chosen.choice([each for each in range(len(VERSIONS[name])) if each != current[name]])
            current[name] = number
            self.write(name, VERSIONS[name][number])
            yield f"{name}, version {number}"
