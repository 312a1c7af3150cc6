"""The suite itself: a page that is right passes, and each way of being wrong is found."""

import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import conformance
import programs
from nnx_rules.registry import Fixable
from nnx_rules.rules import attributes
from rule_pages import FLAX, NNXKIT, Page, PageError, read_page

needs_jax = pytest.mark.skipif(programs.missing_for(NNXKIT) is not None, reason="jax is not installed")
needs_flax = pytest.mark.skipif(programs.missing_for(FLAX) is not None, reason="flax is not installed")

RULE = attributes.DATA_IN_STATIC_ATTRIBUTE.name

HEAD = """
import jax.numpy as jnp
import nnxkit as nnx

class Net(nnx.Pytree):
    def __init__(self):
        self.depth = 1
"""
MISTAKE = "self.width = [jnp.ones(3)]"
BAD = HEAD + f'        {MISTAKE}  # error: [{RULE}] "`Net.width`"\n\nNet()\n'
GOOD = HEAD + "        self.bias = nnx.List([jnp.ones(3)])\n\nNet()\n"

Write = Callable[..., Page]


def fenced(info: str, program: str) -> str:
    return f"```python {info}\n{program}```\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a page with these blocks and reads it."""

    def write_page(*blocks: str, name: str = RULE, title: str | None = None, sections: str = "") -> Page:
        path = tmp_path / f"{name}.md"
        sections = sections or "## Why it matters\n\n## Bad\n\n## Good\n\n## What it does not see\n\n## At run time\n\n"
        path.write_text(f"# {title or name}\n\nWhat it finds.\n\n{sections}" + "\n".join(blocks), encoding="utf-8")
        return read_page(path)

    return write_page


# -- a page that is right ----------------------------------------------------------------------------------------------


def test_a_right_page_has_no_problems(write: Write) -> None:
    page = write(fenced("bad raises=AttributeStatusError", BAD), fenced("good", GOOD))

    unfixed = [problem for problem in conformance.page_problems(page) if "fix" not in problem]
    assert unfixed == []
    for block in page.blocks:
        for library in block.libraries:
            assert conformance.lint_problems(block, library) == []


@needs_flax
def test_the_programs_of_a_right_page_run_as_they_say_on_both_libraries(write: Write) -> None:
    page = write(fenced("bad raises=AttributeStatusError", BAD), fenced("good", GOOD))

    for block in page.blocks:
        assert block.libraries == (NNXKIT, FLAX)
        for library in block.libraries:
            assert conformance.run_problems(block, library) == []


def test_the_text_of_a_block_keeps_its_lines_and_loses_its_marks(write: Write) -> None:
    (block,) = write(fenced("bad silent", BAD)).blocks

    assert block.text == BAD.replace(f'  # error: [{RULE}] "`Net.width`"', "")
    (mark,) = block.marks
    assert block.text.split("\n")[mark.line - 1].strip() == MISTAKE
    assert block.page.read_text(encoding="utf-8").split("\n")[block.line + mark.line - 2].strip().startswith(MISTAKE)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("import nnxkit as nnx", "from flax import nnx"),
        ("import nnxkit as nn", "from flax import nnx as nn"),
        ("from nnxkit import Module, Param", "from flax.nnx import Module, Param"),
        ("if True:\n    import nnxkit as nnx", "if True:\n    from flax import nnx"),
    ],
)
def test_a_program_differs_on_flax_in_its_import_only(write: Write, ours: str, theirs: str) -> None:
    rest = "\nprint('import nnxkit as nnx')\n"
    (block,) = write(fenced("good", ours + rest)).blocks

    assert block.source(NNXKIT) == ours + rest
    assert block.source(FLAX) == theirs + rest


# -- pages that cannot be read -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        (fenced("", GOOD), "a Python block says which it is"),
        (fenced("god", GOOD), "not 'god'"),
        (fenced("good quick", GOOD), "a block does not say 'quick'"),
        (fenced("good raise=X", GOOD), "a block does not say 'raise'"),
        (fenced("good on=torch", GOOD), "on=torch is no library"),
        (fenced("good raises=ValueError", GOOD), "a good program runs to its end"),
        (fenced("good silent", GOOD), "a good program runs to its end"),
        (fenced("good unsafe", GOOD), "`unsafe` is for fixed programs"),
        (fenced("good unseen", GOOD), "`unseen` is for bad programs"),
        (fenced("bad silent unseen", BAD), "what the linter cannot see has no marks"),
        (fenced("good", BAD), "a good program has no marks"),
        (fenced("bad", BAD), "a bad program says how it fails"),
        (fenced("bad silent", GOOD), "a bad program marks the lines"),
        (fenced("bad silent", BAD.replace("`Net.width`", "").replace('"', "")), "a mark is"),
        (fenced("bad silent", BAD.replace('width`"', 'width`" and so on')), "a mark is"),
        (fenced("fixed", GOOD), "a fixed program follows the bad program"),
        (fenced("good", "x = 1\n"), "no line is `import nnxkit as nnx`"),
        ("```python good\nx = 1\n", "the block does not end"),
        ("# again\n", "a second title"),
    ],
)
def test_a_page_that_cannot_be_read_is_an_error_that_names_the_line(write: Write, block: str, problem: str) -> None:
    with pytest.raises(PageError, match=rf"{RULE}\.md:\d+: .*{re.escape(problem)}"):
        write(block)


# -- pages that are wrong about their rule -----------------------------------------------------------------------------


def test_a_page_without_a_rule(write: Write) -> None:
    assert conformance.page_problems(write(name="no-such-rule")) == ["there is no rule 'no-such-rule'"]


def test_a_page_with_another_title_and_without_sections_and_programs(write: Write) -> None:
    problems = conformance.page_problems(write(title="other", sections="## Bad\n"))

    assert "the title is 'other'" in problems
    assert "there is no section `## Why it matters`" in problems
    assert {"there is no bad program", "there is no good program"} <= set(problems)


def test_a_fix_that_the_registry_does_not_know_of(write: Write) -> None:
    assert attributes.BOUND_METHOD_ATTRIBUTE.fix is Fixable.NONE
    bad = BAD.replace(RULE, "bound-method-attribute")
    page = write(fenced("bad silent", bad), fenced("fixed", GOOD), name="bound-method-attribute")

    assert "there is a fixed program, but the registry knows of no fix" in conformance.page_problems(page)


def test_a_rule_without_a_fix_says_why_and_one_with_a_fix_does_not(write: Write) -> None:
    sections = "## Why there is no fix\n\n"
    assert attributes.BOUND_METHOD_ATTRIBUTE.fix is Fixable.NONE
    silent = write(name="bound-method-attribute")
    excused = write(name="bound-method-attribute", sections=sections)
    fixable = write(sections=sections)

    missing = "a rule without a fix says why: `## Why there is no fix`"
    assert missing in conformance.page_problems(silent)
    assert missing not in conformance.page_problems(excused)
    assert "there is a fix, and a section `## Why there is no fix`" in conformance.page_problems(fixable)


def test_a_rule_with_a_fix_shows_it_and_says_how_it_works(write: Write) -> None:
    missing = "a rule with a fix shows it, `## Fixed`, and says how it works: `## How the fix works`"
    explained = write(sections="## Fixed\n\n## How the fix works\n\n")
    shown = write(sections="## Fixed\n\n")
    told = write(sections="## How the fix works\n\n")

    assert missing not in conformance.page_problems(explained)
    assert missing in conformance.page_problems(shown)
    assert missing in conformance.page_problems(told)


def test_an_exception_that_no_program_raises(write: Write) -> None:
    problems = conformance.page_problems(write(fenced("bad silent", BAD), fenced("good", GOOD)))

    assert "no program raises AttributeStatusError on nnxkit, as the registry says" in problems


# -- programs that the linter sees differently -------------------------------------------------------------------------


def test_a_mark_that_the_linter_does_not_report(write: Write) -> None:
    clean = BAD.replace(MISTAKE, "self.width = [2]")
    (block,) = write(fenced("bad silent", clean)).blocks

    (problem,) = conformance.lint_problems(block, NNXKIT)
    assert problem.startswith("is marked, but not found:")


def test_a_finding_in_a_program_that_the_linter_cannot_see(write: Write) -> None:
    unmarked = BAD.split("  # error:")[0] + "\n\nNet()\n"
    unseen = unmarked.replace("[jnp.ones(3)]", "nnx.static([jnp.ones(3)])")
    (seen,) = write(fenced("bad unseen raises=AttributeStatusError", unmarked)).blocks
    (not_seen,) = write(fenced("bad unseen raises=AttributeStatusError", unseen)).blocks

    (problem,) = conformance.lint_problems(seen, NNXKIT)
    assert problem.startswith("is not marked:")
    assert conformance.lint_problems(not_seen, NNXKIT) == []


def test_a_message_that_reads_differently(write: Write) -> None:
    (block,) = write(fenced("bad silent", BAD.replace("`Net.width`", "`Net.height`"))).blocks

    unmarked, not_found = conformance.lint_problems(block, NNXKIT)
    assert unmarked.startswith("is not marked:")
    assert not_found.startswith("is marked, but not found:")


def test_a_finding_that_is_not_marked(write: Write) -> None:
    (block,) = write(fenced("bad silent", BAD.replace("\nNet()", f"        {MISTAKE}\n\nNet()"))).blocks

    (problem,) = conformance.lint_problems(block, FLAX)
    assert problem.startswith("is not marked:")
    line = int(problem.split(":")[2])
    assert block.page.read_text(encoding="utf-8").split("\n")[line - 1].strip() == MISTAKE


def test_a_good_program_that_the_linter_marks(write: Write) -> None:
    marked = GOOD.replace("nnx.List([jnp.ones(3)])", "[jnp.ones(3)]")
    (block,) = write(fenced("good", marked)).blocks

    (problem,) = conformance.lint_problems(block, FLAX)
    assert problem.startswith("should be clean, but:")


# -- programs that run differently -------------------------------------------------------------------------------------


@needs_jax
@pytest.mark.parametrize(
    ("info", "program", "problem"),
    [
        (
            "bad raises=AttributeStatusError",
            BAD.replace("\nNet()\n", "\n"),
            "should raise AttributeStatusError, but",
        ),
        ("bad raises=TraceContextError", BAD, r"should raise nnx_rules\.errors\.TraceContextError, but:"),
        ("bad raises=ValueError", BAD, "should raise ValueError itself, but raises AttributeStatusError"),
        ("bad silent", BAD + "assert True\n", "should run to its end, but:"),
        ("bad silent", BAD.replace("\nNet()\n", "\n"), "a program that fails silently proves it by an assert"),
        ("good", GOOD + "assert False\n", "should run to its end, but:"),
        ("good", GOOD + "import warnings\nwarnings.warn('old')\n", "warns: UserWarning: old"),
        ("good warns=DeprecationWarning", GOOD, "does not warn of a DeprecationWarning"),
    ],
)
def test_a_program_that_does_not_run_as_it_says(write: Write, info: str, program: str, problem: str) -> None:
    (block,) = write(fenced(info, program)).blocks

    (found,) = conformance.run_problems(block, NNXKIT)
    assert re.match(problem, found)


@needs_jax
def test_the_error_of_another_rule(write: Write) -> None:
    name = attributes.DATA_MARKED_STATIC.name
    (block,) = write(fenced("bad raises=AttributeStatusError", BAD.replace(RULE, name)), name=name).blocks

    (problem,) = conformance.run_problems(block, NNXKIT)
    assert problem.startswith(f"the error is of the rule {RULE}")


@needs_jax
def test_a_message_that_is_not_of_the_template(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = write(fenced("bad raises=AttributeStatusError", BAD)).blocks
    monkeypatch.setattr(conformance, "_pattern", lambda template: re.compile("something else"))

    raised, linted = conformance.run_problems(block, NNXKIT)
    assert "`Net.width`" in raised
    assert "`Net.width`" in linted


@needs_flax
def test_a_block_may_say_something_else_of_each_library(write: Write) -> None:
    program = GOOD + f'\nassert nnx.__name__ == "nnxkit"  # error: [{RULE}] "x"\n'
    (block,) = write(fenced("bad silent flax-raises=AssertionError", program)).blocks

    assert conformance.run_problems(block, NNXKIT) == []
    assert conformance.run_problems(block, FLAX) == []


@needs_jax
def test_an_exception_that_nobody_knows(write: Write) -> None:
    (block,) = write(fenced("bad raises=AttributeStatsError", BAD)).blocks

    with pytest.raises(LookupError, match="no exception is called 'AttributeStatsError'"):
        conformance.run_problems(block, NNXKIT)


# -- fixed programs ----------------------------------------------------------------------------------------------------


def test_a_fixed_program_that_fixing_does_not_make(write: Write) -> None:
    _, fixed = write(fenced("bad silent", BAD), fenced("fixed unsafe", GOOD)).blocks

    assert fixed.before is not None
    (problem,) = conformance.fix_problems(fixed, NNXKIT)
    assert problem.startswith(f"fixing makes something else of {RULE}/bad-1:")


def test_fixed_programs_are_of_the_library_of_their_bad_one(write: Write) -> None:
    bad, safe, unsafe = write(
        fenced("bad silent on=flax", BAD), fenced("fixed", GOOD), fenced("fixed unsafe", GOOD)
    ).blocks

    assert bad.libraries == safe.libraries == unsafe.libraries == (FLAX,)
    assert safe.before is bad
    assert unsafe.before is bad


# -- programs are apart ------------------------------------------------------------------------------------------------


def run(source: str, library: str = NNXKIT, path: Path = Path("page.md"), line: int = 1) -> BaseException | None:
    return programs.run(textwrap.dedent(source), library, path, line).error


@needs_flax
@pytest.mark.parametrize("library", [NNXKIT, FLAX])
def test_what_a_program_sets_for_good_is_gone_with_it(library: str) -> None:
    nnx = "import nnxkit as nnx" if library == NNXKIT else "from flax import nnx"
    source = f"""
        import jax
        {nnx}

        class Mine(nnx.Variable): ...

        assert nnx.set_graph_mode.current_value()
        assert nnx.using_eager_sharding()
        assert not jax.config.jax_debug_nans
        nnx.register_variable_name("mine", Mine)
        nnx.set_graph_mode(False)
        nnx.use_eager_sharding(False)
        jax.config.update("jax_debug_nans", True)
    """

    assert run(source, library) is None
    assert run(source, library) is None


@needs_jax
def test_a_program_is_a_module_while_it_runs() -> None:
    before = set(sys.modules)
    source = """
        import copyreg, pickle
        class Point: ...
        assert isinstance(pickle.loads(pickle.dumps(Point())), Point)
    """

    assert run(source) is None
    assert not {name for name in set(sys.modules) - before if name.startswith("program_")}


@needs_jax
def test_a_traceback_shows_the_line_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# page\n\n```python bad\nx = 1\nx / 0  # here\n```\n")

    error = run("x = 1\nx / 0\n", path=page, line=4)

    assert isinstance(error, ZeroDivisionError)
    assert error.__traceback__ is not None
    assert error.__traceback__.tb_next is not None
    assert error.__traceback__.tb_next.tb_lineno == 5
    assert "x / 0  # here" in conformance._traceback(error)
