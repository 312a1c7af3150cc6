"""The read-only face of the attribute model: status, kinds and the place of every assignment."""

from __future__ import annotations

import textwrap

import pytest

from nnx_lint.model.classes import UserClass
from nnx_lint.model.interpreter import Interpreter
from nnx_lint.model.modules import Project
from nnx_lint.model.values import ClassVal
from nnx_lint.model.views import ClassView, view_class
from nnx_lint.source import SourceFile
from nnx_rules.attributes import Kind, Status
from nnx_rules.rules import attributes as rules


def view(text: str, name: str = "Net") -> ClassView:
    source = SourceFile.from_text("from flax import nnx\n" + textwrap.dedent(text), "net.py")
    project = Project({"net.py": source})
    interp = Interpreter(project, lambda event: None)
    module = project.module("net.py")
    assert module is not None
    interp.load(module)
    value = module.env.names[name]
    assert isinstance(value, ClassVal)
    assert isinstance(value.cls, UserClass)
    return view_class(interp, value.cls)


def written(source: str, place) -> str:
    text = "from flax import nnx\n" + textwrap.dedent(source)
    return text[place.span.start : place.span.end]


def test_every_assignment_has_its_place_its_status_and_its_kind():
    text = """
    class Net(nnx.Module):
        def __init__(self, deep, rngs):
            self.size = 3
            self.head = None
            if deep:
                self.head = nnx.Linear(2, 2, rngs=rngs)
            self.build()

        def build(self):
            self.layers = [nnx.Param(0)]
    """
    found = view(text)
    assert [item.name for item in found.attributes] == ["size", "head", "layers"]
    size, head, layers = found.attributes
    assert (size.status, size.kinds, size.value) == (Status.STATIC, (Kind.OTHER,), "the int 3")
    assert (head.status, head.kinds) == (Status.STATIC, (Kind.PYTREE, Kind.OTHER))
    first, second = head.assignments
    assert (first.certain, first.status, written(text, first.place)) == (True, Status.STATIC, "self.head = None")
    assert (second.certain, second.kinds, second.value) == (False, (Kind.PYTREE,), "a Linear")
    assert second.rule == rules.DATA_TO_STATIC_ATTRIBUTE.code
    assert written(text, layers.assignments[0].place) == "self.layers = [nnx.Param(0)]"
    assert layers.assignments[0].rule == rules.DATA_IN_STATIC_ATTRIBUTE.code


def test_a_class_says_what_it_is():
    found = view("class Base(nnx.Module): pass\nclass Net(Base, pytree=False): pass\n")
    assert (found.name, found.bases) == ("Net", ("Base", "Module", "Pytree"))
    assert (found.is_pytree, found.is_checked, found.complete) == (True, False, True)


def test_declared_statuses_and_fields():
    text = """
    @nnx.dataclass
    class Net(nnx.Module):
        width: int
        layers: nnx.Data[list[nnx.Linear]]
        sizes: list[int] = nnx.static(default_factory=list)
    """
    found = view(text)
    statuses = {item.name: (item.declared, item.status) for item in found.attributes}
    assert statuses == {
        "width": (None, Status.STATIC),
        "layers": (Status.DATA, Status.DATA),
        "sizes": (Status.STATIC, Status.STATIC),
    }


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(depth): setattr(self, f'layer_{i}', nnx.Param(0))",
        "setattr(self, depth, 3)",
        "self.__dict__.update(depth)",
        "vars(self).update(depth)",
        "super().__init__(depth)",
    ],
)
def test_a_model_that_may_lack_attributes_says_so(body):
    text = f"""
    from elsewhere import Base
    class Net({"Base, " if "super" in body else ""}nnx.Module):
        def __init__(self, depth):
            self.size = 3
            {body}
    """
    found = view(text)
    assert not found.complete
    assert found.attribute("size") is not None


def test_computed_names_are_patterns():
    text = """
    class Net(nnx.Module):
        def __init__(self, depth, rngs):
            for i in range(depth):
                name = "layer_" + str(i)
                setattr(self, name, nnx.Linear(2, 2, rngs=rngs))
    """
    found = view(text).attribute("layer_*")
    assert found is not None
    assert (found.status, found.kinds) == (Status.DATA, (Kind.PYTREE,))
