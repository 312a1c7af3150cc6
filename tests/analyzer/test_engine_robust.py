"""The engine ends and never raises, whatever the files say, and what stands beside a strange place is still found."""

import ast
import random
import textwrap
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostile import page_programs
from mutations import mutated_tokens, mutated_tree
from nnx_lint import engine
from nnx_lint.checking import Checker
from nnx_lint.diagnostics import Diagnostic
from nnx_lint.fixes import SAFE_AND_UNSAFE, fix_all
from nnx_lint.model import interpreter
from nnx_lint.selection import Options
from nnx_lint.source import SourceError, SourceFile
from repository import ROOT

EVERY_RULE = Options.everywhere(selected=lambda rule: True)

HEAD = "import functools\nimport jax\nimport jax.numpy as jnp\nfrom flax import nnx\n\n"
FIRST = """
class First(nnx.Module):
    def __init__(self):
        self.first = [jnp.ones(3)]
"""
LAST = FIRST.replace("First", "Last").replace("first", "last")


def check(*texts: str, names: Sequence[str] = ("program.py",)) -> list[Diagnostic]:
    sources = [SourceFile.from_text(text, name) for text, name in zip(texts, names, strict=True)]
    return engine.check(sources, roots=["."], options=EVERY_RULE)


def attributes(findings: Iterable[Diagnostic]) -> set[str]:
    """Which of the planted mistakes are found."""
    return {name for name in ("First.first", "Last.last") for found in findings if f"`{name}`" in found.message}


# -- strange programs --------------------------------------------------------------------------------------------------

STRANGE = {
    "a class that derives from itself": """
        class Loop(Loop): ...
        class Again(nnx.Module): ...
        class Again(Again):
            def __init__(self): self.x = Again()
        """,
    "classes that derive from each other": """
        class A(B): ...
        class B(A):
            def __init__(self): self.x = [A()]
        class A(B): ...
        """,
    "bases that are no classes": """
        class A(1, "x", None, *[nnx.Module], **{}, metaclass=lambda *a: 3): ...
        class B(nnx.Linear(2, 3, rngs=nnx.Rngs(0)), nnx.jit, A()): ...
        class C((lambda: C)()): ...
        C()(B())
        """,
    "a module that constructs many of itself": """
        class Tree(nnx.Module):
            def __init__(self, depth, rngs):
                self.linear = nnx.Linear(2, 2, rngs=rngs)
                self.first = Tree(depth - 1, rngs)
                self.second = Tree(depth - 1, rngs)
                self.others = nnx.List([Tree(depth - 1, rngs)])
        nnx.pop(Tree(3, nnx.Rngs(0)), nnx.Intermediate)
        """,
    "a module that constructs itself": """
        class Deep(nnx.Module):
            child: "Deep"
            def __init__(self, n):
                self.child = Deep(n - 1)
                self.me = self
                self.all = nnx.List([self, Deep(n), self.child])
            def __call__(self, x): return self(x) + self.child(x)
        Deep(3)(Deep(Deep))
        """,
    "a constructor that defines its class anew": """
        class A(nnx.Module):
            def __init__(self):
                class B(A):
                    def __init__(self): super().__init__(); self.a = A()
                self.b = B()
        """,
    "containers that hold themselves": """
        items = []
        items.append(items)
        items += items
        table = {"items": items}
        table["table"] = table
        table[table] = table
        pair = (items, table)
        class Net(nnx.Module):
            def __init__(self):
                self.items, self.table, self.pair = items, table, pair
                self.items.append(self.table)
                self.own = nnx.List([])
                self.own.append(self.own)
        nnx.split(Net(), items, table)
        """,
    "functions that call each other and themselves": """
        def f(x=lambda: f): return g(f, g)(f(x))
        def g(*a, **k): return f(*a, **k) or h(f)
        h = functools.partial(functools.partial(f, g), x=lambda: h)
        h(h)(f)(g)(h)
        @h
        @f(h)
        def i(): return i
        i = jax.jit(i)(jax.jit)(i)
        """,
    "transforms of transforms": """
        t = nnx.jit
        for _ in range(100): t = nnx.jit(t)
        t = jax.jit(jax.grad(jax.vmap(t)))
        t(t)(t, t=t)
        jax.jit(nnx.Linear(2, 3, rngs=nnx.Rngs(0)))(jax.jit)
        jax.lax.scan(jax.lax.scan, jax.lax.cond, None)
        nnx.scan(*t, **t)
        functools.partial(nnx.jit)(functools.partial)()
        """,
    "wrong numbers and kinds of arguments": """
        class Net(nnx.Module):
            def __init__(self, *, rngs): self.w = nnx.Param(rngs)
            def __call__(): return self.w
            @staticmethod
            def s(self): return self.w
            @classmethod
            def c(): ...
            @property
            def p(a, b, c): return a.p
        Net(1, 2, 3)(4)
        Net().s().c().p.p.p
        nnx.split(); nnx.merge(); nnx.state(); nnx.Param(); nnx.Rngs()()(); nnx.data(); nnx.static(1, 2, 3)
        nnx.split(1, 2, 3, 4, 5); nnx.List(1, 2); nnx.Dict(1); nnx.Linear(); nnx.jit(); jax.lax.scan(); nnx.update(1)
        a, b, c = nnx.split(Net())
        (a, *b, c), [d], = nnx.split(Net(), ...), nnx.state
        """,
    "names that are not there": """
        del missing, also.missing, nnx
        nnx.no.such.thing(nnx[nnx], nnx @ nnx, -nnx, not nnx)
        missing += also
        missing[0].x[1:2, ...]: int = 3
        global_ = nonlocal_
        from flax import nnx
        """,
    "a shadowed nnx and builtins": """
        def f(nnx, list, tuple, super, self):
            class X(nnx.Module):
                def __init__(self): super().__init__(); self.x = list(tuple([nnx.Param(1)]))
            return X()
        super = print = range = len = isinstance = None
        f(f, f, f, f, f)
        """,
    "every kind of comprehension, with walrus": """
        a = [b := [c for c in (d := [c, a])] for a in a if (e := b)]
        f = {**{k: v for k, v in f}, **a, **{}}
        g = {*{x async for x in y} for x in y} if False else (yield_ for yield_ in f)
        self = [lambda x=x: [self for _ in x] for x in self]
        """.replace("{*{x async for x in y} for x in y}", "{x for x in y}"),
    "every kind of statement": """
        async def a():
            async with a() as b, b as (c, *d): yield (await b)
            async for c in a(): return
        def f():
            global x, nnx; nonlocal_ = 1
            try: x = yield from f()
            except* (ValueError, f()) as e: raise e from x
            finally: x = 2
            for x[0].y, *z in f(): break
            else: continue_ = 1
            while (x := f()): continue
            else: assert x, f()
            with f() as x.y[0], (yield): pass
            match f():
                case {"a": [1, *rest], **others} if others: pass
                case nnx.Param(value=0 | 1 as v) | [nnx.Linear(), -1, 1 + 2j, "s", None]: pass
                case _: del rest, others
            return lambda *a, b=(yield), **k: (a, b, k)
        """,
    "odd classes": """
        class A(nnx.Module):
            x: nnx.Data[int] = nnx.data(default=1)
            x: nnx.Static["A"] = nnx.static(x)
            y: "nonsense[" = 3
            z: 1 + 2
            if x: w = nnx.Param
            else: w: int
            for x in y: locals()[x] = y
            class A(A):
                class A(A): ...
            def __setattr__(self, name, value): setattr(self, name, value); super().__setattr__(name, self)
            def __getattr__(self, name): return getattr(self, name)
            def __new__(cls): return cls
            __init__ = lambda self, x=nnx.data: self.__init__(self.x)
            __call__ = property(__init__)
            __slots__ = __slots__
        A.A.A.A().x = A.x = A().y.z
        del A.A, A().x, A
        """,
    "strings that are not annotations": """
        def f(x: "nnx.Linear(", y: "int if", z: "\\n\\n", w: "list[" * 200) -> "": return x.y
        class A(nnx.Module):
            a: "A"
            b: "'A'"
            c: "list['A' | \\"A\\"]"
        """,
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_program_hides_nothing_beside_it(name: str) -> None:
    text = HEAD + FIRST + textwrap.dedent(STRANGE[name]) + HEAD + LAST
    ast.parse(text)

    assert attributes(check(text)) == {"First.first", "Last.last"}


# -- too much of something ---------------------------------------------------------------------------------------------


def nested(before: str, inside: str, after: str, times: int) -> str:
    return before * times + inside + after * times


DEEP = {
    "brackets": "x = " + nested("[", "nnx.Param(1)", "]", 150),
    "calls": "x = " + nested("jax.jit(", "nnx", ")", 90),
    "attributes and calls": "x = nnx" + ".f()[0]" * 800,
    "operators": "x = " + " + ".join(["nnx.Param(1)"] * 900),
    "comparisons": "x = " + " < ".join(["nnx"] * 5000),
    "conditions": "x = " + nested("(nnx if ", "x", " else nnx)", 90),
    "lambdas": "x = " + nested("(lambda x: ", "x", ")(nnx)", 90),
    "elif": "if nnx: pass\n" + "".join(f"elif nnx.f{i}: x = {i}\n" for i in range(900)),
    "functions": "".join(f"{' ' * i}def f{i}(x):\n" for i in range(90)) + " " * 90 + "return f0",
    "classes": "".join(f"{' ' * i}class A{i}(nnx.Module):\n" for i in range(90)) + " " * 90 + "x = A0()",
    "loops": "".join(f"{' ' * i}for x{i} in nnx.f(x):\n" for i in range(19)) + " " * 19 + "x = [x, nnx.Param(1)]",
    "strings": "x = f'" + nested('{f"{', "nnx", '}"}', 1) + "'" + " + f'{x!r:{x}}'" * 500,
    "a chain of bases": "class A0(nnx.Module): ...\n" + "".join(f"class A{i + 1}(A{i}): ...\n" for i in range(200)),
    "annotations": "def f(x: " + nested("list[", "nnx.Linear", "]", 150) + "): return x[0][0]",
}

LARGE = {
    "a list": f"x = [{'nnx, ' * 50_000}]",
    "a dict": f"x = {{{''.join(f'{i}: nnx, ' for i in range(20_000))}}}",
    "a string": f"x = {'a' * 1_000_000!r}\nnnx.Param(x)",
    "a number": f"x = {'9' * 4_000}\nnnx.Param(x)",
    "arithmetic on literals": "x = [0] * 10**12\ny = 'x' * 10**12\nz = 10**10**10\nw = 1 << 10**10\n"
    "nnx.List([x]) * 10**9",
    "a list in itself, over and over": "x = [nnx.Param(0)]\n"
    + "x = [x, [x], *x]\nx = {0: x, 1: (x, x)}\n" * 60
    + "class A(nnx.Module):\n    def __init__(self): self.x = x",
    "ranges": "x = [nnx.Linear(i, i, rngs=nnx.Rngs(0)) for i in range(10**15)]\nx = list(range(10**15)) + [x] * 10**15",
    "lines": "x = [nnx.Param(0)]\n" * 10_000,
    "functions": "".join(f"def f{i}(x): return nnx.Param(x)\n" for i in range(4_000)),
    "callers": "def f0(x): x.a = nnx\n"
    + "".join(f"def f{i + 1}(x):\n    f{i}(x)\n    f{i}(x)\n    x(f{i})\n" for i in range(60)),
    "branches": "def f(x):\n"
    + "".join(f"    if x.a{i}: y{i} = nnx.Param({i})\n    else: y{i % 7} = [y{i % 5}]\n" for i in range(400)).replace(
        "[y", "[x, y"
    )
    + "    return y0",
    "arguments": f"def f({', '.join(f'a{i}=nnx' for i in range(2_000))}): return a0\nf({', '.join(['nnx'] * 3_000)})",
    "attributes": "class A(nnx.Module):\n    def __init__(self):\n"
    + "".join(f"        self.a{i} = nnx.Param({i})\n" for i in range(3_000)),
    "decorators": "@nnx.jit\n" * 500 + "def f(x): return x\nf(f)",
}


@pytest.mark.parametrize("name", DEEP)
def test_depth(name: str) -> None:
    text = HEAD + FIRST + DEEP[name] + "\n" + LAST
    if SourceFile.from_text(text).error is not None:
        pytest.skip("this Python cannot parse it")

    assert "First.first" in attributes(check(text))


@pytest.mark.parametrize("name", LARGE)
def test_size(name: str) -> None:
    text = HEAD + FIRST + LARGE[name] + "\n" + LAST
    ast.parse(text)

    assert "First.first" in attributes(check(text))


@pytest.mark.parametrize("steps", [0, 1, 5, 10, 20, 40])
def test_a_spent_budget_ends_the_run_silently(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD + FIRST + "for x in range(3): x = x\n" + LAST
    everything = check(text)
    monkeypatch.setattr(interpreter, "STEPS_PER_MODULE", steps)

    assert set(check(text)) <= set(everything)
    assert steps or not check(text)


def test_the_budget_is_that_of_one_module(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = HEAD + "def f(x): return nnx.Param(x)\n" + "f(1)\n" * 500
    monkeypatch.setattr(interpreter, "STEPS_PER_MODULE", 100)

    assert attributes(check(endless, HEAD + LAST, names=["endless.py", "last.py"])) == {"Last.last"}


# -- several files -----------------------------------------------------------------------------------------------------

PROJECTS = {
    "a cycle of star imports": {
        "a.py": "from b import *\nclass A(B): ...",
        "b.py": "from c import *\nclass B(C): ...",
        "c.py": "from a import *\nclass C(A): ...\nfrom c import *",
    },
    "a cycle of imports of names": {
        "a.py": "from b import x\ny = x",
        "b.py": "from a import y\nx = y",
        "c.py": "import c, a, b\nc.a.b.c.x = c\nfrom c import c as d",
    },
    "a package that imports itself": {
        "p/__init__.py": "from . import q\nfrom .q import *\nfrom p import p\n__all__ = ['q', 'missing', *q.__all__]",
        "p/q.py": "from . import *\nfrom .. import p\nfrom ... import far\nfrom .p import q\n__all__ = p.__all__ + [1]",
    },
    "files that are not there": {
        "a.py": "from . import b\nfrom .b import c\nimport b.c.d as e\nfrom flax.nnx.nowhere import Module\n"
        "from nnxkit.nowhere import *\nfrom flax.nnx import Nothing\nclass A(Module, c, e.f, Nothing): ...\nA()(b)",
    },
    "a module that hides the libraries": {
        "jax.py": "import jax\njit = jax.jit",
        "flax/nnx.py": "from flax import nnx",
        "a.py": "import jax, flax\n@jax.jit\ndef f(x): return flax.nnx.Module(x)",
    },
    "bases across files in a circle": {
        "a.py": "import b\nclass A(b.B): ...",
        "b.py": "import a\nclass B(a.A):\n    def __init__(self): super().__init__(); self.x = [a.A()]",
    },
}


@pytest.mark.parametrize("name", PROJECTS)
@pytest.mark.parametrize("backwards", [False, True])
def test_strange_projects(name: str, backwards: bool) -> None:
    files = {path: f"from flax import nnx\n{text}\n" for path, text in PROJECTS[name].items()}
    files["last.py"] = (
        HEAD + "".join(f"from {path.split('/')[0].removesuffix('.py')} import *\n" for path in files) + LAST
    )
    paths = sorted(files, reverse=backwards)

    found = check(*(files[path] for path in paths), names=paths)

    assert attributes(found) == {"Last.last"}


@pytest.mark.parametrize(
    "text", ["", "\n", "# nnx", '"""nnx"""', "\ufefffrom flax import nnx", "nnx\f\r\r\nnnx", "nnx;" * 9]
)
def test_files_with_nothing_in_them(text: str) -> None:
    assert check(text) == []


def test_a_broken_file_hides_nothing_in_others() -> None:
    found = check(
        HEAD + LAST, "from flax import nnx\nclass (", "\ud800 nnx", names=["last.py", "broken.py", "surrogate.py"]
    )

    assert attributes(found) == {"Last.last"}


def test_a_file_that_vanishes_is_a_problem_of_reading(tmp_path) -> None:
    path = tmp_path / "gone.py"

    with pytest.raises(SourceError, match="cannot be read"):
        SourceFile.read(str(path))


# -- random programs ---------------------------------------------------------------------------------------------------


def corpus() -> list[str]:
    """The programs of the rule pages, on flax, and the examples."""
    examples = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").rglob("*.py"))]
    return [*examples, *page_programs()]


CORPUS = corpus()


def check_mutation(seed: int, by_tree: bool, times: int) -> None:
    """Check a mutated program, and fix what can be fixed in it."""
    chance = random.Random(seed)
    mutate = mutated_tree if by_tree else mutated_tokens
    text = mutate(chance.choice(CORPUS), CORPUS, chance, times)
    source = SourceFile.from_text(text, "program.py")
    engine.check([source], roots=["."], options=EVERY_RULE)
    checker = Checker(EVERY_RULE, roots=["."])
    outcome = fix_all({"program.py": source}, checker.check, SAFE_AND_UNSAFE)
    assert outcome.problems == [], text
    assert all("syntax error" in problem for problem in checker.problems), text
    assert bool(checker.problems) == bool(source.errors), text


mutations = given(seed=st.integers(0, 2**64), by_tree=st.booleans(), times=st.integers(1, 8))


@mutations
@settings(max_examples=150)
def test_mutated_programs(seed: int, by_tree: bool, times: int) -> None:
    check_mutation(seed, by_tree, times)


@pytest.mark.fuzz
@mutations
@settings(max_examples=1000)
def test_many_mutated_programs(seed: int, by_tree: bool, times: int) -> None:
    check_mutation(seed, by_tree, times)


def test_tree_mutations_are_programs_and_change_something() -> None:
    chance = random.Random(0)
    texts = {mutated_tree(HEAD + FIRST, [HEAD + LAST], chance, 2) for _ in range(50)}

    assert len(texts) > 25
    for text in texts:
        ast.parse(text)


def test_token_mutations_keep_the_rest_of_the_text() -> None:
    program = HEAD + "x = (  1 +\n\t2)  # comment\n" + FIRST

    assert mutated_tokens(program, [LAST], random.Random(0), 0).rstrip() == program.rstrip()
    assert mutated_tokens(program, [LAST], random.Random(0), 3) != program
