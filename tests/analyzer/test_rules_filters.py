"""The filter rules where a page cannot say it: several files, versions, many forms of one mistake, and correct code
that looks like a mistake.
"""

from __future__ import annotations

import textwrap

import pytest

from nnx_lint import engine
from nnx_lint.fixes import fix_all
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile
from nnx_rules.registry import Family

HEAD = """\
import functools
import jax
import jax.numpy as jnp
import optax
from flax import nnx

class Special(nnx.Param):
    pass

class Very(Special):
    pass

class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.linear = nnx.Linear(2, 2, rngs=rngs)
        self.norm = nnx.BatchNorm(2, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.blocks = nnx.List([nnx.Linear(2, 2, rngs=rngs) for _ in range(3)])

net = Net(nnx.Rngs(0))
"""


def options(library=None, version=None):
    return Options.everywhere(lambda rule: rule.family is Family.FILTERS and rule.code < "NNX330", library, version)


def check(sources, library=None, version=None):
    return engine.check(sources, roots=["."], options=options(library, version))


def findings(text, **target):
    """The findings in a program after the usual head, as (line after the head, rule) pairs."""
    source = SourceFile.from_text(HEAD + textwrap.dedent(text), "main.py")
    assert source.error is None
    before = HEAD.count("\n")
    return [(source.location(item.span.start)[0] - before, item.rule.name) for item in check([source], **target)]


def rules_of(text, **target):
    return [rule for _, rule in findings(text, **target)]


def messages(text):
    return [item.message for item in check([SourceFile.from_text(HEAD + textwrap.dedent(text), "main.py")])]


def project(folder, **files):
    sources = []
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.write_text(textwrap.dedent(text))
        sources.append(SourceFile.read(str(path)))
    return [(item.path.rpartition("/")[2], item.rule.name) for item in check(sources)]


# -- order -------------------------------------------------------------------------------------------------------------

UNREACHABLE = {
    "a constant tuple": "FILTERS = (nnx.Param, Very, ...)\ngraphdef, a, b, c = nnx.split(net, *FILTERS)",
    "two levels up": "nnx.state(net, nnx.Param, Very)",
    "a tuple before one of its members": "nnx.state(net, (nnx.Param, nnx.BatchStat), nnx.BatchStat)",
    "a combination after its part": "nnx.state(net, Special, nnx.All(Special, nnx.PathContains('norm')))",
    "two filters that cover a third": "nnx.state(net, nnx.Param, nnx.Not(nnx.Param), nnx.BatchStat)",
    "nnx.Variable first": "nnx.state(net, nnx.Variable, nnx.Param, ...)",
    "nnx.Not(None)": "nnx.state(net, nnx.Not(None), nnx.Param)",
    "OfType": "nnx.state(net, nnx.OfType(nnx.Param), Special)",
    "pop": "nnx.pop(net, ..., nnx.Param)",
    "a method of a State": "state = nnx.state(net)\na, b = state.filter(nnx.Param, Special)",
    "a partial": "part = functools.partial(nnx.split, net)\npart(nnx.Param, Special, ...)",
    "a mapping": "axes = nnx.StateAxes({nnx.Param: 0, Special: None, ...: None})",
    "a mapping in a variable": "table = {nnx.Param: 0, Special: None, ...: None}\naxes = nnx.StateAxes(table)",
    "an alias of the function": "from flax.nnx import split as cut\ncut(net, nnx.Param, Special, ...)",
    "compat": "nnx.compat.split(net, nnx.Param, Special, ...)",
    "filterlib": "from flax.nnx import filterlib\nnnx.state(net, filterlib.Any(nnx.Param), Special)",
    "a method": "class T:\n    def f(self, net):\n        return nnx.state(net, nnx.Param, Special)",
    "under a transform": "@nnx.jit\ndef f(net):\n    return nnx.state(net, nnx.Param, Special)",
    "a conditional target": "x = net if net else None\nnnx.state(x, nnx.Param, Special)",
    "a split context": "with nnx.split_context('t') as ctx:\n    ctx.split(net, nnx.Param, Special, ...)",
}


@pytest.mark.parametrize("text", UNREACHABLE.values(), ids=UNREACHABLE.keys())
def test_unreachable_filter(text):
    assert rules_of(text) == ["unreachable-filter"]


REACHABLE = {
    "narrow before wide": "nnx.split(net, Very, Special, nnx.Param, nnx.Variable, ...)",
    "a callable first": "nnx.state(net, lambda path, value: True, nnx.Param)",
    "an unknown filter first": "def f(unknown):\n    return nnx.state(net, unknown, nnx.Param)",
    "one of two": "import sys\nwanted = nnx.Param if sys.argv else nnx.BatchStat\nnnx.state(net, wanted, Special)",
    "siblings": "nnx.state(net, nnx.RngKey, nnx.RngCount, nnx.BatchStat)",
    "arrays after Variables": "nnx.state(net, nnx.Variable, ...)",
    "complements": "nnx.state(net, nnx.Param, nnx.Not(nnx.Param))",
    "a rest that is empty": "nnx.state(net, nnx.Param, nnx.Not(nnx.Param), ...)",
    "nothing first": "nnx.state(net, None, ...)",
    "a tag and its type": "nnx.state(net, 'default', nnx.RngState)",
    "paths": "nnx.state(net, nnx.PathContains('linear'), nnx.PathContains('norm'), nnx.Param)",
    "inexact after exact": "nnx.state(net, nnx.PathContains('a'), nnx.PathContains('a', exact=False))",
    "an unknown key": "def f(key):\n    return nnx.state(net, nnx.PathContains(key), nnx.PathContains('x'))",
    "a base that is not known": (
        "from elsewhere import Base\nclass Mine(Base):\n    pass\nnnx.state(net, Mine, nnx.Param)"
    ),
    "streams": "rngs = nnx.Rngs(0)\nrngs.split({'params': 2, ...: None})",
    "a loop fills the list": (
        "filters = []\nfor kind in (nnx.Param, nnx.BatchStat):\n    filters.append(kind)\nnnx.state(net, *filters, ...)"
    ),
    "another function of that name": "def split(model, *filters):\n    pass\nsplit(net, nnx.Param, Special)",
}


@pytest.mark.parametrize("text", REACHABLE.values(), ids=REACHABLE.keys())
def test_reachable_filters(text):
    assert rules_of(text) == []


def test_a_filter_is_reported_where_it_is_written():
    text = """\
    def parts(model, *filters):
        return nnx.split(model, *filters)

    def named(model, first, *, second=...):
        return nnx.state(model, first, second)

    parts(net, nnx.Param, Very, ...)
    named(net, nnx.Param, second=Very)
    named(net, 3)
    parts(net, nnx.Param)
    """

    assert findings(text) == [
        (7, "unreachable-filter"),
        (8, "unreachable-filter"),
        (9, "invalid-filter"),
        (10, "non-exhaustive-split"),
    ]


def test_positions_count_from_one_and_name_what_covers():
    (message,) = messages("nnx.state(net, nnx.Param, nnx.Not(nnx.Param), nnx.BatchStat)")

    assert message.startswith("filter 3, `nnx.BatchStat`, can never match")
    assert "filter 1 (`nnx.Param`) together with filter 2 (`nnx.Not(nnx.Param)`)" in message


# -- several files -----------------------------------------------------------------------------------------------------


def test_classes_and_constants_of_other_modules(tmp_path):
    found = project(
        tmp_path,
        kinds="""\
            from flax import nnx
            class Frozen(nnx.Param):
                pass
            TRAINABLE = (nnx.Param, nnx.BatchStat)
        """,
        models="""\
            from flax import nnx
            class Net(nnx.Module):
                def __init__(self, rngs):
                    self.norm = nnx.BatchNorm(2, rngs=rngs)
        """,
        main="""\
            from flax import nnx
            import kinds
            from kinds import TRAINABLE, Frozen
            from models import Net
            net = Net(nnx.Rngs(0))
            nnx.state(net, TRAINABLE, Frozen)
            nnx.state(net, nnx.Param, kinds.Frozen)
            graphdef, params = nnx.split(net, nnx.Param)
        """,
    )

    assert found == [
        ("main.py", "unreachable-filter"),
        ("main.py", "unreachable-filter"),
        ("main.py", "non-exhaustive-split"),
    ]


def test_nnx_through_a_module_of_the_project(tmp_path):
    found = project(
        tmp_path,
        compat="from flax import nnx\nfrom flax.nnx import Param as Weight\n",
        main="""\
            from compat import nnx, Weight
            class Special(Weight):
                pass
            def f(model):
                return nnx.state(model, Weight, Special)
        """,
    )

    assert found == [("main.py", "unreachable-filter")]


def test_a_mapping_of_another_module_is_reported_there(tmp_path):
    found = project(
        tmp_path,
        axes="from flax import nnx\nAXES = nnx.StateAxes({nnx.Param: None})\n",
        main="""\
            from flax import nnx
            from axes import AXES
            norm = nnx.BatchNorm(2, rngs=nnx.Rngs(0))
            @nnx.vmap(in_axes=(AXES, 0))
            def f(norm, x):
                return x
            f(norm, 1)
        """,
    )

    assert found == [("axes.py", "non-exhaustive-prefix")]


# -- coverage ----------------------------------------------------------------------------------------------------------

WRAPPED = """\
class Outer(nnx.Module):
    def __init__(self, inner: Net):
        self.inner = inner

def f(outer: Outer):
    return nnx.split(outer, nnx.Param)
"""

LEFT = {
    "a layer's statistics": ("nnx.split(nnx.BatchNorm(2, rngs=nnx.Rngs(0)), nnx.Param)", "`mean` (BatchStat)"),
    "random state of dropout": ("nnx.split(net, nnx.Param, nnx.BatchStat)", "`drop.rngs.key` (RngKey)"),
    "a container of nodes": ("nnx.split((net, 1), nnx.Param)", "`[0].norm.mean` (BatchStat)"),
    "attention with dropout": (
        "nnx.split(nnx.MultiHeadAttention(2, 4, dropout_rate=0.1, rngs=nnx.Rngs(0)), nnx.Param)",
        "`rngs.key` (RngKey)",
    ),
    "a recurrent cell": (
        "nnx.split(nnx.RNN(nnx.LSTMCell(2, 2, rngs=nnx.Rngs(0))), nnx.RngState)",
        "`cell.ii.kernel` (Param)",
    ),
    "streams": ("nnx.split(nnx.Rngs(0, params=1), 'default')", "`params.count` (RngCount)"),
    "metrics": ("nnx.split(nnx.metrics.Average(), nnx.Param)", "`total` (MetricState)"),
    "an optimizer": ("nnx.split(nnx.Optimizer(net, optax.sgd(0.1), wrt=nnx.Param), nnx.Param)", "`step` (OptState)"),
    "a State": ("nnx.split_state(nnx.state(net, nnx.BatchStat), nnx.Param)", "`norm.mean` (BatchStat)"),
    "a subclass": ("class Sub(Net):\n    pass\nnnx.split(Sub(nnx.Rngs(0)), nnx.Param)", "`norm.mean` (BatchStat)"),
    "a wrapped layer": (
        WRAPPED,
        "`inner.norm.mean` (BatchStat)",
    ),
}


@pytest.mark.parametrize(("text", "leaf"), LEFT.values(), ids=LEFT.keys())
def test_a_leaf_that_no_filter_takes(text, leaf):
    (message,) = messages(text)

    assert leaf in message


COVERED = {
    "a rest": "nnx.split(net, nnx.Param, ...)",
    "no filters": "nnx.split(net)",
    "all types": "nnx.split(net, nnx.Param, nnx.BatchStat, nnx.RngState)",
    "state needs no rest": "nnx.state(net, nnx.Param)",
    "an unknown object": "def f(model: nnx.Module):\n    return nnx.split(model, nnx.Param)",
    "dropout without randomness": "nnx.split(nnx.Dropout(0.5), nnx.Param)",
    "attention without dropout": "nnx.split(nnx.MultiHeadAttention(2, 4, rngs=nnx.Rngs(0)), nnx.Param)",
    "a condition": (
        "class C(nnx.Module):\n    def __init__(self, rngs, norm):\n        self.a = nnx.Linear(2, 2, rngs=rngs)\n"
        "        self.b = nnx.BatchNorm(2, rngs=rngs) if norm else None\n"
        "nnx.split(C(nnx.Rngs(0), False), nnx.Param)"
    ),
    "optional randomness": (
        "class C(nnx.Module):\n    def __init__(self, rngs=None):\n        self.a = nnx.Dropout(0.5, rngs=rngs)\n"
        "nnx.split(C(), nnx.Param)"
    ),
    "an attribute that is taken away": (
        "class C(Net):\n    def __init__(self, rngs):\n        super().__init__(rngs)\n"
        "        self.norm = None\n        del self.drop\n"
        "nnx.split(C(nnx.Rngs(0)), nnx.Param)"
    ),
    "an object that is changed": "net.norm = None\nnet.drop = None\nnnx.split(net, nnx.Param)",
    "a function": "nnx.split(net, lambda path, value: True)",
    "unknown filters": "def f(*filters):\n    return nnx.split(net, *filters)",
    "a static attribute": (
        "class C(nnx.Module):\n    def __init__(self, size: int):\n        self.size, self.act = size, nnx.relu\n"
        "nnx.split(C(3), nnx.Param)"
    ),
    "an expected error": "import pytest\nwith pytest.raises(ValueError):\n    nnx.split(net, nnx.Param)",
}


@pytest.mark.parametrize("text", COVERED.values(), ids=COVERED.keys())
def test_nothing_is_left(text):
    assert rules_of(text) == []


# -- values ------------------------------------------------------------------------------------------------------------

INVALID = {
    "a union": "nnx.state(net, nnx.Param | nnx.BatchStat | Special)",
    "typing.Union": "from typing import Union\nnnx.state(net, Union[nnx.Param, nnx.BatchStat])",
    "an alias": "nnx.state(net, nnx.Param[jax.Array])",
    "a nested one": "nnx.state(net, nnx.All(nnx.Param, (3, ...)))",
    "an instance": "weight = nnx.Param(1)\nnnx.state(net, weight)",
    "a set": "nnx.state(net, {nnx.Param})",
    "a dict": "nnx.state(net, {'a': nnx.Param})",
    "wrt": "nnx.Optimizer(net, optax.sgd(0.1), wrt=nnx.Param | nnx.BatchStat)",
    "wrt by position": "nnx.Optimizer(net, optax.sgd(0.1), 0)",
    "DiffState": "nnx.DiffState(0, nnx.Param[jax.Array])",
    "a mapping": "nnx.StateAxes({nnx.Param | nnx.BatchStat: 0, ...: None})",
    "set_attributes": "net.set_attributes(nnx.Dropout | nnx.BatchNorm, deterministic=True)",
}


@pytest.mark.parametrize("text", INVALID.values(), ids=INVALID.keys())
def test_invalid_filter(text):
    assert set(rules_of(text)) == {"invalid-filter"}


FINE = {
    "modules for set_attributes": "net.set_attributes(nnx.Dropout, deterministic=True)",
    "modules for view": "nnx.view(net, only=nnx.Dropout, deterministic=True)",
    "modules for find_duplicates": "nnx.find_duplicates(net, only=nnx.Linear)",
    "a callable object": (
        "class Wanted:\n    def __call__(self, path, value):\n        return True\nnnx.state(net, Wanted())"
    ),
    "a stream of a model without it": "nnx.state(nnx.Linear(2, 2, rngs=nnx.Rngs(0)), 'dropout')",
    "a tag in metadata": (
        "class T(nnx.Module):\n    def __init__(self):\n        self.a = nnx.Param(1, tag='kernel')\n"
        "nnx.state(T(), 'kernel')"
    ),
    "a dotted key": (
        "class D(nnx.Module):\n    def __init__(self):\n        self.d = nnx.Dict({'a.b': nnx.Param(1)})\n"
        "nnx.state(D(), nnx.PathContains('a.b'))"
    ),
    "a dotted part of a key": "nnx.PathContains('v1.0', exact=False)",
    "digits in an unknown object": "def f(state):\n    return nnx.filter_state(state, nnx.PathContains('0'))",
    "an array type": "nnx.state(net, jax.Array)",
    "tuples that the program makes": "def f():\n    a, b = nnx.split(net)\n    return a, b\nc, d = f()",
    "the keys of a State in a loop": "for key in nnx.state(net, nnx.Param):\n    print(key)",
    "a starred merge": "parts = nnx.split(net)\nnnx.merge(*parts)",
    "a predicate with defaults": "nnx.state(net, lambda path, value, key='a': key in path)",
}


@pytest.mark.parametrize("text", FINE.values(), ids=FINE.keys())
def test_correct_code_that_looks_wrong(text):
    assert rules_of(text) == []


def test_a_filter_that_does_not_look_like_one_type():
    assert rules_of("nnx.state(net, nnx.Everything)") == ["module-type-filter"]
    assert rules_of("nnx.state(net, nnx.RngStream)") == ["module-type-filter"]


# -- versions ----------------------------------------------------------------------------------------------------------

SHARED = """\
class Two(nnx.Module):
    def __init__(self):
        self.a = nnx.Intermediate(jnp.ones(2))
        self.b = self.a
nnx.pop(Two(), nnx.Intermediate)
"""


def test_nnxkit_pops_every_reference():
    assert rules_of(SHARED) == ["pop-shared-variable"]
    assert rules_of(SHARED, library="nnxkit") == []


# -- fixes -------------------------------------------------------------------------------------------------------------


def fixed(text):
    source = SourceFile.from_text(HEAD + textwrap.dedent(text), "main.py")
    outcome = fix_all({"main.py": source}, lambda sources: check(list(sources.values())))
    assert outcome.problems == []
    return outcome.sources["main.py"].text.removeprefix(HEAD)


def test_filters_move_with_their_names_and_comments_stay():
    before = """\
    graphdef, params, special, rest = nnx.split(
        net,
        nnx.Param,  # first
        Special,  # second
        ...,
    )
    """
    after = """\
    graphdef, special, params, rest = nnx.split(
        net,
        Special,  # first
        nnx.Param,  # second
        ...,
    )
    """

    assert fixed(before) == textwrap.dedent(after)


NOT_FIXED = {
    "a parameter that may be path or value": "nnx.state(net, lambda p: True)\n",
    "a target that is no name": "box = [0, 0]\nbox[0], box[1] = nnx.state(net, nnx.Param, Special)\n",
    "a result that goes elsewhere": "print(nnx.state(net, nnx.Param, Special))\n",
    "filters of a constant": "ALL = (nnx.Param, Special)\na, b = nnx.state(net, *ALL)\n",
    "no order helps": "a, b = nnx.state(net, nnx.Variable, (nnx.Param, nnx.Variable))\n",
    "a graphdef that goes elsewhere": "graphdef, params = nnx.split(net, nnx.Param)\nprint(graphdef)\n",
    "a name that is taken": "rest = 1\n_, params = nnx.split(net, nnx.Param)\n",
}


@pytest.mark.parametrize("text", NOT_FIXED.values(), ids=NOT_FIXED.keys())
def test_what_is_not_certain_is_not_fixed(text):
    assert findings(text) != []
    assert fixed(text) == text


FIXED = {
    "nnx.state(net, lambda path: 'a' in path)\n": "nnx.state(net, lambda path, _value: 'a' in path)\n",
    "path = 1\nnnx.state(net, lambda v: v.size > path)\n": "path = 1\nnnx.state(net, lambda _path, v: v.size > path)\n",
    "nnx.Not(nnx.Param,\n    nnx.BatchStat,)\n": "nnx.Not((nnx.Param,\n    nnx.BatchStat),)\n",
    "nnx.state(net, Special|nnx.Cache|nnx.Param)\n": "nnx.state(net, (Special, nnx.Cache, nnx.Param))\n",
    "nnx.split(net, nnx.Param,)\n": "nnx.split(net, nnx.Param, ...,)\n",
}


@pytest.mark.parametrize(("before", "after"), FIXED.items())
def test_fixes(before, after):
    assert fixed(before) == after


def test_a_mapping_is_reordered_as_whole_entries():
    text = "axes = nnx.StateAxes({...: None, nnx.Param: 0, Special: 1})\n"

    assert fixed(text) == "axes = nnx.StateAxes({Special: 1, nnx.Param: 0, ...: None})\n"


# -- what the engine must not believe ----------------------------------------------------------------------------------

UNCERTAIN = {
    "a list that is put in another order": ("wanted = [nnx.Param, Special]\nwanted.reverse()\nnnx.state(net, *wanted)"),
    "a filter that goes to the front": "wanted = [nnx.Param]\nwanted.insert(0, Special)\nnnx.state(net, *wanted)",
    "several filters at once": (
        "wanted = [nnx.Param]\nwanted.extend([nnx.BatchStat, ...])\ngraphdef, a, b, c = nnx.split(net, *wanted)"
    ),
    "a Variable that was popped": "nnx.pop(net, nnx.BatchStat)\nnnx.split(net, nnx.Param, nnx.RngState)",
    "an element that was replaced": (
        "layers = nnx.List([nnx.BatchNorm(2, rngs=nnx.Rngs(0))])\nlayers[0] = nnx.Linear(2, 2, rngs=nnx.Rngs(0))\n"
        "nnx.split(layers, nnx.Param)"
    ),
    "a layer that only some instances have": (
        "class C(nnx.Module):\n    def __init__(self, rngs, norm):\n        layers = {}\n        if norm:\n"
        "            layers['norm'] = nnx.BatchNorm(2, rngs=rngs)\n        self.layers = nnx.Dict(layers)\n"
        "nnx.split(C(nnx.Rngs(0), False), nnx.Param)"
    ),
    "a layer after an early return": (
        "class C(nnx.Module):\n    def __init__(self, rngs, norm):\n        if not norm:\n            return\n"
        "        self.norm = nnx.BatchNorm(2, rngs=rngs)\n"
        "nnx.split(C(nnx.Rngs(0), False), nnx.Param)"
    ),
    "a layer after an early round": (
        "class C(nnx.Module):\n    def __init__(self, rngs, norm):\n        self.layers = nnx.List([])\n"
        "        for i in range(3):\n            if not norm:\n                continue\n"
        "            self.layers.append(nnx.BatchNorm(2, rngs=rngs))\n"
        "nnx.split(C(nnx.Rngs(0), False), nnx.Param)"
    ),
    "a layer of some rounds": (
        "class C(nnx.Module):\n    def __init__(self, rngs, norm):\n        self.layers = nnx.List([])\n"
        "        for i in range(3):\n            if norm:\n"
        "                self.layers.append(nnx.BatchNorm(2, rngs=rngs))\n"
        "nnx.split(C(nnx.Rngs(0), False), nnx.Param)"
    ),
}


@pytest.mark.parametrize("text", UNCERTAIN.values(), ids=UNCERTAIN.keys())
def test_uncertain_facts_are_no_ground(text):
    assert rules_of(text) == []


LOOPS = {
    "a comprehension": "self.layers = nnx.List([nnx.BatchNorm(2, rngs=rngs) for _ in range(n)])",
    "append to a library list": (
        "self.layers = nnx.List([])\n        for _ in range(n):\n"
        "            self.layers.append(nnx.BatchNorm(2, rngs=rngs))"
    ),
    "a sequence of layers": (
        "layers = []\n        for _ in range(n):\n            layers.append(nnx.Linear(2, 2, rngs=rngs))\n"
        "            layers.append(nnx.BatchNorm(2, rngs=rngs))\n        self.seq = nnx.Sequential(*layers, nnx.relu)"
    ),
    "append to a plain list": (
        "layers = []\n        for _ in range(n):\n            layers.append(nnx.BatchNorm(2, rngs=rngs))\n"
        "        self.layers = nnx.List(layers)"
    ),
}


@pytest.mark.parametrize("build", LOOPS.values(), ids=LOOPS.keys())
def test_layers_that_a_loop_makes(build):
    head = "class C(nnx.Module):\n    def __init__(self, n, rngs):\n"
    text = f"{head}        {build}\ndef parts(n):\n    return nnx.split(C(n, nnx.Rngs(0)), nnx.Param)"

    (message,) = messages(text)
    assert "layers[...].mean` (BatchStat)" in message


def test_layers_that_a_loop_makes_so_many_times():
    text = f"""
    class C(nnx.Module):
        def __init__(self, n, rngs):
            {LOOPS["a comprehension"]}
    nnx.split(C(2, nnx.Rngs(0)), nnx.Param)
    """

    (message,) = messages(textwrap.dedent(text))
    assert "`layers[0].mean` (BatchStat)" in message
    assert "`layers[1].mean` (BatchStat)" in message
