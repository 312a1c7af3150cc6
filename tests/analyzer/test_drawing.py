"""``nnx-lint graph``: the structure that it reads, and what it can be asked for."""

import json
from textwrap import dedent, indent

import pytest

from drawn import MODEL
from nnx_lint.drawing import draw, run
from nnx_lint.drawing.concrete import MAX_SAME
from nnx_lint.drawing.structure import Kind, Node, Place, path_text
from nnx_lint.drawing.targets import DrawingError, Target, parse
from nnx_rules.attributes import Status


@pytest.fixture
def drawn(tmp_path):
    """Draws a class of a program."""

    def draw_program(program: str, name: str, call: str = "", **options: object) -> Node:
        path = tmp_path / "program.py"
        path.write_text(program, encoding="utf-8")
        return draw(str(path), name, call, **options)

    return draw_program


def at(root: Node, path: str) -> Node:
    """The node at a path as it is written in Python."""
    return next(node for node in root.walk() if path_text(node.path) == path)


def forms(root: Node) -> dict[str, tuple[object, str | None]]:
    """Shape and dtype of every Variable by its path."""
    return {
        path_text(node.path): (node.form.shape, node.form.dtype) for node in root.walk() if node.kind is Kind.VARIABLE
    }


# -- structure


def test_arguments_of_a_call_arrive_at_the_layers_that_they_are_meant_for(drawn):
    root = drawn(MODEL, "Model", "(100)")

    assert at(root, "embed.embedding").form.shape == (100, 8)
    assert at(root, "blocks[0].up.kernel").form.shape == (8, 32)
    assert at(root, "blocks[0].down.bias").form.shape == (8,)
    assert (at(root, "position").form.shape, at(root, "position").form.dtype) == ((16, 8), "bfloat16")


def test_what_the_caller_decides_stays_a_name(drawn):
    root = drawn(MODEL, "Model")

    assert at(root, "embed.embedding").form.shape == ("vocab", "dim")
    assert at(root, "blocks").children[0].count is None
    assert root.total is None


def test_equal_elements_are_one_node_and_all_of_them_are_counted(drawn):
    blocks = at(drawn(MODEL, "Model", "(100)"), "blocks")

    assert [(block.name, block.count) for block in blocks.children] == [("[0…2]", 3)]
    assert blocks.total.parameters == 3 * (8 * 32 + 32 + 32 * 8 + 8)


def test_only_equal_neighbours_are_one_node(drawn):
    program = """\
from flax import nnx
class A(nnx.Module):
    def __init__(self, *, rngs):
        self.layers = nnx.List([nnx.Linear(2, size, rngs=rngs) for size in (3, 3, 4, 3, 3, 3)])
"""
    layers = at(drawn(program, "A"), "layers")

    assert [(layer.name, layer.count) for layer in layers.children] == [("[0…1]", 2), ("[2]", 1), ("[3…5]", 3)]
    assert layers.total.parameters == 5 * 9 + 12


HEIRS = """\
from flax import nnx
class Layers(nnx.List): pass
class Named(nnx.Dict): pass
class Steps(nnx.Sequential): pass
class Dense(nnx.Linear):
    def __call__(self, x): return nnx.relu(super().__call__(x))
class Attention(nnx.MultiHeadAttention): pass
class Net(nnx.Module):
    def __init__(self, rngs):
        self.layers = Layers([Dense(2, 3, rngs=rngs)])
        self.filled = Layers()
        for size in (4, 5):
            self.filled.append(Dense(2, size, use_bias=False, rngs=rngs))
        self.named = Named({"a": Dense(3, 4, rngs=rngs)}, b=Dense(in_features=4, out_features=5, rngs=rngs))
        self.steps = Steps(Dense(5, 6, rngs=rngs), nnx.relu)
        self.attention = Attention(2, 8, rngs=rngs)
"""


def test_heirs_of_library_classes_hold_what_these_hold(drawn):
    root = drawn(HEIRS, "Net", "(nnx.Rngs(0))")
    sizes = {path: at(root, path).total.parameters for path in ("layers", "filled", "named", "steps", "attention")}
    assert sizes == {"layers": 9, "filled": 18, "named": 16 + 25, "steps": 36, "attention": 288}
    assert at(root, "named.b.kernel").form.shape == (4, 5)
    assert root.total.parameters == sum(sizes.values())


@pytest.mark.parametrize("name", ["Layers", "Named", "Steps", "Dense"])
def test_what_an_heir_of_a_library_class_is_given_is_open(drawn, name):
    root = drawn(HEIRS, name)
    assert root.note == "the caller decides what it holds"
    assert root.total is None


def test_an_object_that_is_shared_is_drawn_once_and_counted_once(drawn):
    root = drawn(MODEL, "Model", "(100)")
    head = at(root, "head")

    assert (head.kind, path_text(head.target), head.recursive) == (Kind.REFERENCE, "embed", False)
    assert root.total.parameters == 100 * 8 + 3 * 552 + 16 * 8 + 2 * 8
    assert root.total.bytes == 4 * (root.total.parameters - 128) + 2 * 128


def test_parameters_in_a_static_attribute_do_not_count(drawn):
    root = drawn(MODEL, "Model", "(100)")

    assert at(root, "plain").total.parameters == 16
    assert root.total.parameters == sum(node.total.parameters for node in root.children if node.name != "plain")


def test_attributes_say_whether_they_are_data(drawn):
    root = drawn(MODEL, "Mlp")

    assert at(root, "up").status is Status.DATA
    assert at(root, "act").status is Status.STATIC
    assert at(root, "dim").status is Status.STATIC  # a layer takes it as a size, so it is a number

    given = drawn(
        "from flax import nnx\nclass Keeping(nnx.Module):\n    def __init__(self, it):\n        self.it = it\n",
        "Keeping",
    )
    assert at(given, "it").status is Status.UNKNOWN


def test_an_assignment_that_breaks_a_rule_says_so(drawn):
    assert at(drawn(MODEL, "Model"), "plain").rule == "NNX101"


def test_a_variable_that_depends_on_an_unknown_option_may_be_there(drawn):
    root = drawn(MODEL, "Mlp")

    assert at(root, "up.bias").optional == "maybe"
    assert at(root, "up.kernel").optional == ""


def test_conditions_on_literals_are_decided_and_others_leave_a_doubt(drawn):
    assert at(drawn(MODEL, "Model", "(100)"), "norm").optional == ""
    assert at(drawn(MODEL, "Model"), "norm").optional == "or None"
    assert at(drawn(MODEL, "Model", "(100, depth=1)"), "norm").type == "None"


def test_a_name_for_an_instance_is_drawn_with_its_arguments(drawn):
    assert at(drawn(MODEL, "model"), "embed.embedding").form.shape == (100, 8)


def test_places_are_those_of_the_source(drawn):
    root = drawn(MODEL, "Model")

    assert MODEL.splitlines()[root.defined.line - 1] == "class Model(nnx.Module):"
    assert "self.head = self.embed" in MODEL.splitlines()[at(root, "head").assigned.line - 1]


TREE = """\
from flax import nnx
class Tree(nnx.Module):
    def __init__(self, depth, *, rngs):
        if depth > 0:
            self.left = Tree(depth - 1, rngs=rngs)
        self.leaf = nnx.Linear(depth, 2, rngs=rngs)
"""


def test_a_class_inside_of_itself_is_a_reference(drawn):
    left = at(drawn(TREE, "Tree"), "left")

    assert (left.kind, left.recursive, left.target, left.optional) == (Kind.REFERENCE, True, (), "maybe")


def test_a_recursion_over_literals_unfolds(drawn):
    root = drawn(TREE, "Tree", "(2)")

    assert forms(root)["left.left.leaf.kernel"] == ((0, 2), "float32")
    assert "left.left.left" not in {path_text(node.path) for node in root.walk()}


def test_a_recursion_without_end_ends(drawn):
    program = TREE.replace("if depth > 0", "if depth != -1")
    assert max(len(node.path) for node in drawn(program, "Tree", "(5)").walk()) <= MAX_SAME + 2


def test_an_annotation_leaves_open_what_is_below(drawn):
    program = """\
from flax import nnx
class A(nnx.Module):
    def __init__(self, body: nnx.Module, rngs: nnx.Rngs):
        self.body = body
        self.rngs = rngs
"""
    root = drawn(program, "A")

    assert "known by an annotation" in at(root, "body").note
    assert root.total is None


def test_random_streams_hold_no_parameters(drawn):
    program = """\
from flax import nnx
class A(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.rngs = rngs
        self.layer = nnx.Linear(2, 3, rngs=rngs)
"""
    assert drawn(program, "A").total.parameters == 9


def test_what_a_map_makes_has_no_shape(drawn):
    program = """\
from flax import nnx
class Stack(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        @nnx.vmap(in_axes=0, out_axes=0)
        def create(rngs):
            return nnx.Linear(2, 3, rngs=rngs)
        self.layers = create(rngs.fork(split=4))
"""
    root = drawn(program, "Stack")

    assert forms(root)["layers.kernel"] == (None, "float32")
    assert "map" in at(root, "layers").note
    assert root.total is None


def test_modules_of_other_files_are_followed(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "layers.py").write_text(MODEL, encoding="utf-8")
    (package / "net.py").write_text(
        "from flax import nnx\nfrom .layers import Mlp\n"
        "class Net(nnx.Module):\n    def __init__(self, *, rngs):\n        self.mlp = Mlp(2, 3, rngs=rngs)\n"
    )
    root = draw(str(package / "net.py"), "Net")

    assert at(root, "mlp.up.kernel").form.shape == (2, 3)
    assert at(root, "mlp").defined.path.endswith("layers.py")


CONSTRUCTORS = {
    "a loop that sets attributes by name": (
        """
        for i in range(3):
            setattr(self, f"layer{i}", nnx.Linear(i, 2, rngs=rngs))
        """,
        {"layer2.kernel": (2, 2)},
    ),
    "sizes in pairs": (
        """
        sizes = (4, 5, 6)
        self.layers = nnx.List([nnx.Linear(a, b, rngs=rngs) for a, b in zip(sizes[:-1], sizes[1:])])
        """,
        {"layers[0].kernel": (4, 5), "layers[1].kernel": (5, 6)},
    ),
    "a loop that goes on": (
        """
        self.layers = nnx.List()
        for i, size in enumerate([3, 4, 5]):
            if i == 0:
                continue
            self.layers.append(nnx.Linear(size, i, rngs=rngs))
            if size > 3:
                break
        """,
        {"layers[0].kernel": (4, 1)},
    ),
    "a sequence of starred layers": (
        "self.seq = nnx.Sequential(*[nnx.Linear(2, 2 + i, rngs=rngs) for i in range(2)])",
        {"seq.layers[1].bias": (3,)},
    ),
    "a dict of layers": (
        "self.heads = nnx.Dict({'a': nnx.Linear(1, 2, rngs=rngs)})",
        {"heads.a.kernel": (1, 2)},
    ),
    "arithmetic": (
        """
        size = max(2, 3) * len([1, 1])
        size += 1
        self.layer = nnx.Linear(size, size // 2, rngs=rngs)
        """,
        {"layer.kernel": (7, 3)},
    ),
    "a scaled array": (
        "self.w = nnx.Param(jax.random.normal(rngs.params(), (3, 4)) * 0.02)",
        {"w": (3, 4)},
    ),
    "an initializer": (
        "self.w = nnx.Param(nnx.initializers.lecun_normal()(rngs.params(), (3, 4)))",
        {"w": (3, 4)},
    ),
    "a size that may be a pair": (
        """
        k = 3
        k = (k, k) if isinstance(k, int) else k
        self.conv = nnx.Conv(3, 8, k, rngs=rngs)
        """,
        {"conv.kernel": (3, 3, 3, 8)},
    ),
}


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_constructors_are_executed(drawn, name):
    body, shapes = CONSTRUCTORS[name]
    head = "import jax\nfrom flax import nnx\nclass A(nnx.Module):\n    def __init__(self, *, rngs):\n"
    found = forms(drawn(head + indent(dedent(body), " " * 8), "A"))

    assert {path: found[path][0] for path in shapes} == shapes


def test_an_unknown_condition_in_a_loop_leaves_the_number_open(drawn):
    program = """\
from flax import nnx
class A(nnx.Module):
    def __init__(self, flag, *, rngs):
        self.layers = nnx.List()
        for i in range(3):
            if flag:
                self.layers.append(nnx.Linear(2, 2, rngs=rngs))
"""
    assert {child.count for child in at(drawn(program, "A"), "layers").children} == {None}


def test_the_depth_can_be_limited(drawn):
    root = drawn(MODEL, "Model", "(100)", depth=1)

    assert at(root, "embed").folded
    assert at(root, "embed").children == []
    assert not root.folded
    assert root.total == drawn(MODEL, "Model", "(100)").total


def test_a_budget_ends_what_unfolds_without_end(drawn, monkeypatch):
    monkeypatch.setattr("nnx_lint.model.interpreter.STEPS_PER_MODULE", 10_000)
    program = """\
from flax import nnx
class A(nnx.Module):
    def __init__(self, *, rngs):
        self.layers = nnx.List()
        for a in range(250):
            for b in range(250):
                for c in range(250):
                    self.layers.append(nnx.Linear(a, b, rngs=rngs))
"""
    root = drawn(program, "A")

    assert "not followed to the end" in root.note or root.children
    assert root.total is None


# -- targets


@pytest.mark.parametrize(
    ("word", "target"),
    [
        ("a.py", Target("a.py")),
        ("a.py:A", Target("a.py", "A")),
        ("a.py:A.B", Target("a.py", "A.B")),
        ("a.py:A(1, b='x:y')", Target("a.py", "A", "(1, b='x:y')")),
        (r"C:\models\a.py:A", Target(r"C:\models\a.py", "A")),
        (r"C:\models\a.py", Target(r"C:\models\a.py")),
        ("package.module:A", Target("package.module", "A")),
    ],
)
def test_targets(word, target):
    assert parse(word) == target


def test_classes_inside_of_classes_and_functions_are_found(drawn):
    program = """\
from flax import nnx
class Outer(nnx.Module):
    class Inner(nnx.Module):
        def __init__(self): self.x = 1
def make():
    class Hidden(nnx.Module):
        def __init__(self): self.y = 2
    return Hidden()
"""
    assert at(drawn(program, "Outer.Inner"), "x").type == "1"
    assert at(drawn(program, "make.Hidden"), "y").type == "2"


@pytest.mark.parametrize("word", ["model.py:", "model.py:Mlp(", "model.py:Outer.Mlp(64, 2"])
def test_a_target_that_is_not_complete(word):
    with pytest.raises(DrawingError, match=r"is no FILE:Class$"):
        parse(word)


TAKING = """\
from flax import nnx
class Net(nnx.Module):
    def __init__(self, width: int, /, depth: int = 2, *, rngs: nnx.Rngs):
        self.layer = nnx.Linear(width, depth, rngs=rngs)
class Open(nnx.Module):
    def __init__(self, *args, **kwargs): self.x = 1
@nnx.dataclass
class Record(nnx.Pytree):
    width: int
    height: int = 3
class Heir(nnx.Linear):
    pass
"""


@pytest.mark.parametrize(
    ("name", "call", "problem"),
    [
        ("Net", "(3, x=1)", "Net has no parameter x; its parameters are width, depth, rngs"),
        ("Net", "(3, dept=1)", r"Net has no parameter dept; did you mean depth\?"),
        ("Net", "(width=3)", "Net has no parameter width"),
        ("Net", "(3, 4, 5)", "Net takes 2 by position, not 3"),
        ("Net", "(3, 4, depth=5)", "Net is given depth twice"),
        ("Record", "(3, size=4)", "Record has no parameter size"),
        ("Heir", "(3, 4, biased=True)", "Heir has no parameter biased"),
    ],
)
def test_arguments_that_a_constructor_does_not_take_are_an_error(drawn, name, call, problem):
    with pytest.raises(DrawingError, match=problem):
        drawn(TAKING, name, call)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("Net", "(3)"),
        ("Net", "()"),
        ("Net", "(depth=4)"),
        ("Net", "(*sizes, **{'depth': 2})"),
        ("Open", "(1, 2, x=3)"),
        ("Record", "(3, height=4)"),
        ("Heir", "(3, 4, use_bias=False)"),
    ],
)
def test_arguments_may_be_left_out(drawn, name, call):
    assert drawn(TAKING, name, call).name


def test_a_class_that_is_no_module_is_an_error(tmp_path):
    path = tmp_path / "plain.py"
    path.write_text("import unknown\nclass A: pass\nclass B(unknown.C): pass\n")

    with pytest.raises(DrawingError, match=r"A in .* is not a Module: it does not derive from nnx\.Module"):
        draw(str(path), "A")
    with pytest.raises(DrawingError, match=r"B in .* is not a Module: a base class of it is not known"):
        draw(str(path), "B")


def test_a_dotted_module_name_is_found_below_the_folder_and_below_src(tmp_path, monkeypatch, capsys):
    (tmp_path / "src" / "package").mkdir(parents=True)
    (tmp_path / "src" / "package" / "nets.py").write_text(MODEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    assert run(["package.nets:Mlp"]) == 0
    assert capsys.readouterr().out.startswith("Mlp\n")


def test_classes_of_a_notebook_are_found_in_its_cells(tmp_path, capsys):
    cells = [["%time\n", "from flax import nnx"], ["class A(nnx.Module):\n", "    def __init__(self): self.x = 1"]]
    notebook = {
        "cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in cells],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path = tmp_path / "notebook.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")

    assert run([str(path)]) == 0
    assert capsys.readouterr().out == f"A  nnx.Module  {path}:cell 2:1\n"
    assert at(draw(str(path), "A"), "x").assigned == Place(str(path), 2, 2)
