"""Revisions: an edit in one definition leaves the rest as it is known; what is said then is what a fresh run says."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nnx_lint.engine import STACK
from nnx_lint.ide.analysis import Analysis, Cancelled
from nnx_lint.ide.settings import Settings
from nnx_lint.source import SourceFile

if TYPE_CHECKING:
    from pathlib import Path

TEXT = '''\
"""A model and what it is trained with."""
import functools

import jax
import jax.numpy as jnp
import optax
from flax import nnx

WIDTH = 8


class Norm(nnx.Module):
    def __init__(self, width: int):
        self.scale = nnx.Param(jnp.ones((width,)))

    def __call__(self, x):
        return x * self.scale


class Block(nnx.Module):
    """A block."""

    def __init__(self, width: int, *, rngs: nnx.Rngs):
        self.norm = Norm(width)
        self.linear = nnx.Linear(width, width, rngs=rngs)

    def __call__(self, x):
        return x + self.linear(self.norm(x))


class Net(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.blocks = nnx.List([Block(WIDTH, rngs=rngs) for _ in range(2)])
        self.head = nnx.Linear(WIDTH, 1, rngs=rngs)

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def loss_of(model: Net, x, y):
    return jnp.mean((model(x) - y) ** 2)


@nnx.jit
def train_step(model: Net, optimizer: nnx.Optimizer, x, y):
    loss, grads = nnx.value_and_grad(loss_of)(model, x, y)
    optimizer.update(model, grads)
    return loss


def train():
    model = Net(rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
    graphdef, params, rest = nnx.split(model, nnx.Param, ...)
    return train_step(model, optimizer, jnp.ones((2, WIDTH)), jnp.ones((2, 1)))
'''

TUPLE = ("    return jnp.mean((model(x) - y) ** 2)", "    return jnp.mean((model(x) - y) ** 2), x")

CHANGES = [
    ("        self.scale = nnx.Param(jnp.ones((width,)))", "        self.scale = [nnx.Param(jnp.ones((width,)))]"),
    ("        self.norm = Norm(width)\n", "        self.norm = Norm(width\n"),
    ("        self.norm = Norm(width)\n", '        self.norm = Norm(width)\n        self.text = """\n'),
    ("        return x + self.linear", "        # what is left out comes back\n\n        return x + self.linear"),
    ("nnx.Linear(WIDTH, 1, rngs=rngs)", "nnx.Linear(WIDTH + 1, 1, rngs=rngs)"),
    (
        "    graphdef, params, rest = nnx.split(model, nnx.Param, ...)\n",
        "    graphdef, params = nnx.split(model, nnx.Param)\n",
    ),
    ("def loss_of(model: Net, x, y):\n", "def loss_of(model: Net, x, y, scale=1.0):\n"),
    ("WIDTH = 8\n", "WIDTH = 9\n"),
    ("class Block(nnx.Module):", "class Block(Norm):"),
    ("class Block(nnx.Module):", "class Other(nnx.Module):"),
    ("@nnx.jit\n", "@jax.jit\n"),
    ("@nnx.jit\n", "@functools.cache\n"),
    ("\n\ndef train():", "\n\nNet.head = None\n\n\ndef train():"),
    ("\n\ndef train():", "\n\nclass Net(nnx.Module):\n    pass\n\n\ndef train():"),
    ("import jax\n", "import jax  # the library\n\n"),
    ("class Norm(", "# nnx: ignore-file\nclass Norm("),
    ("        return self.head(x)\n", "        self.blocks.append(x)\n        return self.head(x)\n"),
    ("        self.blocks = ", "        # one after the other\n        self.blocks = "),
    ("for _ in range(2)]", "for _ in range(2)  # two\n            ]"),
    ("    def __call__(self, x):\n        for", "    def __call__(self, x): # it all\n        for"),
    ('    """A block."""\n', '    """A block of nnx.ModelAndOptimizer."""\n'),
    TUPLE,
    ("class Norm(nnx.Module):", "class Norm(nnx.Variable):"),
]

FAULTY = (
    (
        TEXT.replace(
            "nnx.List([Block(WIDTH, rngs=rngs) for _ in range(2)])", "[Block(WIDTH, rngs=rngs) for _ in range(2)]"
        )
        .replace(", wrt=nnx.Param)", ")")
        .replace("nnx.split(model, nnx.Param, ...)", "nnx.split(model, nnx.BatchStat, nnx.Dropout)")
        .replace("@nnx.jit\ndef train_step", "@jax.jit\ndef train_step")
    )
    + """

def scaled(x):
    return x * WIDTH
"""
)
"""The same with findings of several rules, some with fixes and related places."""


def fresh(folder: Path, text: str) -> Analysis:
    made = Analysis(str(folder), Settings())
    made.edit(SourceFile.from_text(text, str(folder / "net.py")))
    return made


def known(made: Analysis, folder: Path) -> tuple[object, ...]:
    """All that is said of the file, and all that is noted of it."""
    path = str(folder / "net.py")
    notes: Any = made.check(path).notes
    findings = [(each.rule.code, each.message, each.span, each.fix, each.related) for each in made.findings(path)]
    return findings, notes.assigned, notes.filters, notes.targets, notes.applied, notes.captured, made.lenses(path)


def edited(made: Analysis, folder: Path, text: str) -> tuple[object, ...]:
    made.edit(SourceFile.from_text(text, str(folder / "net.py")))
    return known(made, folder)


# hypothesis watches the limit, which an engine raises once.
sys.setrecursionlimit(max(sys.getrecursionlimit(), STACK))


def given_up(made: Analysis, folder: Path, patience: int) -> None:
    """Ask for all that is known, and do not wait for it."""

    def pause() -> None:
        nonlocal patience
        patience -= 1
        if patience == 0:
            raise Cancelled

    made.pause = pause
    with contextlib.suppress(Cancelled):
        known(made, folder)
    made.pause = lambda: None


STEPS = st.lists(st.tuples(st.sampled_from(range(len(CHANGES))), st.integers(0, 25)), min_size=1, max_size=10)
"""Changes, and how long somebody waits for an answer before asking again; 0 is forever."""


@given(st.sampled_from([TEXT, FAULTY]), STEPS)
@settings(deadline=None, max_examples=16)
def test_any_edits_lead_where_a_fresh_analysis_begins(
    tmp_path_factory: pytest.TempPathFactory, text: str, steps: list[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("revisions")
    made = fresh(folder, text)
    known(made, folder)
    for number, patience in steps:
        old, new = CHANGES[number]
        text = text.replace(old, new, 1) if old in text and new not in text else text.replace(new, old, 1)
        made.edit(SourceFile.from_text(text, str(folder / "net.py")))
        given_up(made, folder, patience)
        assert edited(made, folder, text) == known(fresh(folder, text), folder)


def test_a_name_that_nothing_binds_is_found_while_all_of_the_text_can_be_read(tmp_path: Path) -> None:
    text = TEXT.replace("class Block(", "class Other(")
    broken = text.replace("self.norm = Norm(width)", "self.norm = Norm(width")
    made = fresh(tmp_path, text)
    for now, codes in ((text, ["NNX877"]), (broken, []), (text, ["NNX877"])):
        made.edit(SourceFile.from_text(now, str(tmp_path / "net.py")))
        assert [each.rule.code for each in made.findings(str(tmp_path / "net.py"))] == codes


def kept(made: Analysis, folder: Path, text: str) -> set[str]:
    """The functions and classes whose evaluations an edit leaves."""
    before = set(made.engine.project.evaluations)
    edited(made, folder, text)
    left = before.intersection(made.engine.project.evaluations)
    return {str(getattr(each.subject, "name", "")) for each in left if each.subject is not None}


def test_an_edit_leaves_what_does_not_look_at_it(tmp_path: Path) -> None:
    made = fresh(tmp_path, TEXT)
    known(made, tmp_path)
    text = TEXT.replace("    return jnp.mean((model(x) - y) ** 2)", "    return jnp.sum((model(x) - y) ** 2)")
    assert kept(made, tmp_path, text) >= {"Norm", "Block", "Net", "__call__"}
    text = text.replace("        self.head = nnx", "        self.count = 0\n        self.head = nnx")
    left = kept(made, tmp_path, text)
    assert left >= {"Norm", "Block"}
    assert "Net" not in left
    assert "train" not in left


ATTENTION = """\
import jax
import jax.numpy as jnp
from flax import nnx


@jax.tree_util.register_dataclass
class Batch:
    tokens: jax.Array
    mask: jax.Array


class Attention(nnx.Module):
    def __init__(self, width: int, *, rngs: nnx.Rngs):
        self.query = nnx.Linear(width, width, rngs=rngs)
        self.calls = nnx.Variable(jnp.zeros((), jnp.int32))
        self.table = jnp.linspace(0.0, 1.0, width)

    def __call__(self, x, mask=None):
        scores = jnp.einsum("bqd,bkd->bqk", self.query(x), x * self.table)
        self.calls[...] += 1
        if mask is not None:
            scores = jnp.where(mask, scores, -1e9)
        return jax.nn.softmax(scores) @ x


def loss_of(model: Attention, batch: Batch):
    key = jax.random.key(0)
    noise = jax.random.normal(key, batch.tokens.shape)
    return jnp.mean(model(batch.tokens + noise, batch.mask) ** 2)


def rate(step):
    return 0.1 * step
"""


def test_what_rules_ask_of_usual_code_makes_nothing_depend_on_the_whole_text(tmp_path: Path) -> None:
    made = fresh(tmp_path, ATTENTION)
    known(made, tmp_path)
    left = kept(made, tmp_path, ATTENTION.replace("    return 0.1 * step", "    scale = 0.2\n    return scale * step"))
    assert left >= {"Batch", "Attention", "__call__", "loss_of"}


def test_findings_elsewhere_are_left(tmp_path: Path) -> None:
    made = fresh(tmp_path, FAULTY)
    found = known(made, tmp_path)[0]
    assert isinstance(found, list)
    assert len(found) > 3
    text = FAULTY.replace("return x * WIDTH", "return WIDTH * x")
    left = kept(made, tmp_path, text)
    assert left >= {"train", "Net"}
    text = text.replace("return WIDTH * x", "return (WIDTH * x")  # fixes wait until it is whole again
    assert kept(made, tmp_path, text) >= {"train", "Net"}
    assert all(each.fix is None for each in made.findings(str(tmp_path / "net.py")))
    text = text.replace("return (WIDTH * x", "return WIDTH * x")
    assert edited(made, tmp_path, text) == known(fresh(tmp_path, text), tmp_path)


def test_words_of_the_text_that_a_rule_looked_for_make_it_look_again(tmp_path: Path) -> None:
    text = TEXT.replace(", wrt=nnx.Param)", ", wrt=nnx.Param)\n    optimizer.update(jnp.ones(()))")
    text = text.replace("def train():", "def train(optimizer: nnx.Optimizer):").replace(
        "    optimizer = ", "    other = "
    )
    made = fresh(tmp_path, text)
    before = known(made, tmp_path)
    text = text.replace('"""A block."""', '"""A block of nnx.ModelAndOptimizer."""')
    after = edited(made, tmp_path, text)
    assert after == known(fresh(tmp_path, text), tmp_path)
    assert after[0] != before[0]


def test_what_came_to_its_end_before_an_analysis_was_given_up_is_left(tmp_path: Path) -> None:
    made = fresh(tmp_path, TEXT)
    given_up(made, tmp_path, 8)
    before = set(made.engine.project.evaluations)
    known(made, tmp_path)
    assert {str(getattr(each.subject, "name", "")) for each in before} >= {"Norm", "Block"}
    assert before <= set(made.engine.project.evaluations)


def test_comments_between_definitions_leave_everything(tmp_path: Path) -> None:
    made = fresh(tmp_path, TEXT)
    known(made, tmp_path)
    evaluations = set(made.engine.project.evaluations)
    edited(made, tmp_path, TEXT.replace("\n\nclass Net(", "\n\n# The model.\nclass Net("))
    assert evaluations == set(made.engine.project.evaluations)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("WIDTH = 8\n", "WIDTH = 9\n"),
        ("class Block(nnx.Module):", "class Other(nnx.Module):"),
        ("@nnx.jit\ndef train_step", "def other():\n    pass\n\n\n@nnx.jit\ndef train_step"),
    ],
    ids=["a constant", "another name", "one more"],
)
def test_other_edits_begin_anew(tmp_path: Path, old: str, new: str) -> None:
    made = fresh(tmp_path, TEXT)
    known(made, tmp_path)
    assert kept(made, tmp_path, TEXT.replace(old, new, 1)) == set()


def test_a_definition_that_others_look_at_when_they_are_defined_begins_anew(tmp_path: Path) -> None:
    text = TEXT + "\n\nclass Wide(Net):\n    pass\n"
    made = fresh(tmp_path, text)
    known(made, tmp_path)
    assert (
        kept(made, tmp_path, text.replace("        for block in self.blocks:", "        for block in [*self.blocks]:"))
        == set()
    )


USERS = {
    "named.py": """\
from flax import nnx
from net import Block, Net, loss_of, train_step

class Wide(Block):
    def __init__(self, width, *, rngs):
        super().__init__(width, rngs=rngs)
        self.more = [nnx.Linear(width, width, rngs=rngs)]

model = Net(rngs=nnx.Rngs(0))

def use(optimizer: nnx.Optimizer, x):
    model.head.scale
    loss, grads = nnx.value_and_grad(loss_of)(model, x, x)
    return train_step(model, optimizer, x, x)
""",
    "whole.py": """\
import net
from flax import nnx

def split():
    model = net.Net(rngs=nnx.Rngs(0))
    loss, grads = nnx.value_and_grad(net.loss_of)(model, 1.0, 1.0)
    return nnx.split(model, nnx.Param, net.Norm), nnx.jit(lambda x: net.scaled(model(x)))

class Kept:
    def __init__(self):
        self.loss = net.loss_of
""",
    "star.py": """\
from net import *

def width(model):
    loss, grads = nnx.value_and_grad(loss_of)(model, 1.0, 1.0)
    return nnx.state(model, Norm), Linear(WIDTH, 1) if WIDTH else Norm(WIDTH).scaled
""",
    "local.py": """\
from flax import nnx

def run(x):
    from net import Norm, train
    norm = Norm(3)
    norm.items = [nnx.Param(0)]
    return norm(x), train()
""",
    "second.py": """\
from named import Wide, use
from flax import nnx

def last(model: Wide):
    return nnx.state(model, nnx.BatchStat), use(None, model.more), model.linear.kernel.value
""",
}
"""Files that use it in all the ways there are."""

CYCLE = (
    ("import jax\n", "import jax\nfrom named import Wide\n\n"),
    ("def train():\n", "def train():\n    wide = Wide(WIDTH, rngs=nnx.Rngs(1))\n    nnx.state(wide, nnx.BatchStat)\n"),
)
"""What makes it use one of them."""


def all_known(made: Analysis, folder: Path) -> list[object]:
    """What is said of all files, and what is noted of them."""
    said: list[object] = []
    for name in ("net.py", *USERS):
        path = str(folder / name)
        notes: Any = made.check(path).notes
        said.append([(each.rule.code, each.message, each.span, each.fix, each.related) for each in made.findings(path)])
        said.append((notes.assigned, notes.filters, notes.targets, notes.applied, notes.captured))
    return said


def opened(folder: Path, text: str) -> Analysis:
    made = fresh(folder, text)
    for name, user in USERS.items():
        made.edit(SourceFile.from_text(user, str(folder / name)))
    return made


@given(
    st.sampled_from([TEXT, FAULTY]),
    st.booleans(),
    st.lists(st.sampled_from(range(len(CHANGES))), min_size=1, max_size=6),
)
@example(TEXT, True, [CHANGES.index(TUPLE)] * 2)
@settings(deadline=None, max_examples=12)
def test_files_that_use_it_are_told(
    tmp_path_factory: pytest.TempPathFactory, text: str, cycle: bool, changes: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("revisions")
    for old, new in CYCLE if cycle else ():
        text = text.replace(old, new, 1)
    made = opened(folder, text)
    assert any(all_known(made, folder)[2:])
    for number in changes:
        old, new = CHANGES[number]
        text = text.replace(old, new, 1) if old in text and new not in text else text.replace(new, old, 1)
        made.edit(SourceFile.from_text(text, str(folder / "net.py")))
        assert all_known(made, folder) == all_known(opened(folder, text), folder)


def test_files_that_use_something_else_leave_it_as_it_is(tmp_path: Path) -> None:
    made = opened(tmp_path, TEXT)
    all_known(made, tmp_path)
    text = TEXT.replace("    graphdef, params, rest = ", "    count = 0\n    graphdef, params, rest = ")
    before = set(made.engine.project.evaluations)
    edited(made, tmp_path, text)
    names = [
        module.name for path in ("named.py", "whole.py") if (module := made.engine.project.loaded(str(tmp_path / path)))
    ]
    assert names == ["named", "whole"]
    left = {each for each in before.intersection(made.engine.project.evaluations) if each.module is not None}
    assert {str(getattr(each.subject, "name", "")) for each in left} >= {
        "Net",
        "Block",
        "loss_of",
        "use",
        "split",
        "Wide",
    }
    assert not {"train", "run"} & {str(getattr(each.subject, "name", "")) for each in left}


def test_a_file_that_uses_the_definition_goes_alone(tmp_path: Path) -> None:
    made = opened(tmp_path, TEXT)
    all_known(made, tmp_path)
    text = TEXT.replace("        return x + self.linear", "        y = x\n        return x + self.linear")
    assert kept(made, tmp_path, text) >= {"Norm"}
    assert made.engine.project.loaded(str(tmp_path / "named.py")) is None
    assert all_known(made, tmp_path) == all_known(opened(tmp_path, text), tmp_path)
