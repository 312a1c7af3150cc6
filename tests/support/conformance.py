"""What every rule page has to prove, as functions that return what is wrong.

A page holds a rule to three things that must agree: what the linter says about a program, what happens when the program
runs on nnxkit, and what happens when it runs on flax. Each function judges one block on one library, or one page, and
returns problems in words, so that a test of the suite can ask for them and a failing test shows them all.
"""

import builtins
import re
import string
import traceback
from collections import Counter
from collections.abc import Callable, Iterable

import programs
from nnx_lint.checking import Checker
from nnx_lint.diagnostics import Diagnostic
from nnx_lint.fixes import SAFE, SAFE_AND_UNSAFE, fix_all, is_fixable
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile
from nnx_lint.target import parse
from nnx_rules import errors
from nnx_rules.errors import NNXError
from nnx_rules.registry import Family, Fixable, Rule
from nnx_rules.rules import REGISTRY
from rule_pages import FIXED, FIXING, FLAX, NNXKIT, SECTIONS, UNFIXED, Block, Mark, Page

Problems = list[str]
FILE = "program.py"


# -- the page ----------------------------------------------------------------------------------------------------------


def page_problems(page: Page) -> Problems:
    """Title, sections, and which programs there are."""
    rule = REGISTRY.get(page.rule)
    if rule is None or rule.name != page.rule:
        return [f"there is no rule {page.rule!r}"]
    problems = [f"there is no section `## {name}`" for name in SECTIONS if name not in page.sections]
    if page.title != page.rule:
        problems.append(f"the title is {page.title!r}")
    if not page.summary:
        problems.append("no sentence after the title says what the rule finds")
    problems += (f"there is no {role} program" for role in ("bad", "good") if role not in {b.role for b in page.blocks})

    safe = {"unsafe" not in block.flags for block in page.blocks if block.role == "fixed"}
    if rule.fix is Fixable.NONE and safe:
        problems.append("there is a fixed program, but the registry knows of no fix")
    elif rule.fix is Fixable.NONE and UNFIXED not in page.sections:
        problems.append(f"a rule without a fix says why: `## {UNFIXED}`")
    elif rule.fix is not Fixable.NONE and UNFIXED in page.sections:
        problems.append(f"there is a fix, and a section `## {UNFIXED}`")
    elif rule.fix is not Fixable.NONE and not {FIXED, FIXING} <= set(page.sections):
        problems.append(f"a rule with a fix shows it, `## {FIXED}`, and says how it works: `## {FIXING}`")
    elif rule.fix is Fixable.SAFE and True not in safe:
        problems.append("the registry says that there is a safe fix, but no fixed program shows it")
    elif rule.fix is Fixable.UNSAFE and safe != {False}:
        problems.append("the registry says that there is an unsafe fix: show it by a program `fixed unsafe`")

    run_on_nnxkit = [b for b in page.blocks if b.role == "bad" and NNXKIT in b.libraries and "norun" not in b.flags]
    raised = {block.setting("raises", NNXKIT) for block in run_on_nnxkit}
    if rule.exception is not None and run_on_nnxkit and rule.exception.__name__ not in raised:
        problems.append(f"no program raises {rule.exception.__name__} on nnxkit, as the registry says")
    return problems


# -- the linter --------------------------------------------------------------------------------------------------------


def lint_problems(block: Block, library: str) -> Problems:
    """A bad program has the marked findings and no others; the others are clean."""
    if block.role == "bad":
        chosen = _chosen(block, *(mark.rule for mark in block.marks))
        return _against_marks(block, _lint(block, library, chosen))
    found = _lint(block, library, _chosen(block) if block.role == "fixed" else _is_default)
    return [f"should be clean, but: {finding}" for finding in _shown(block, library, found)]


def fix_problems(block: Block, library: str) -> Problems:
    """A fixed program is what fixing makes of the bad one, and there is nothing left to fix in it."""
    assert block.before is not None
    allowed = SAFE_AND_UNSAFE if "unsafe" in block.flags else SAFE
    checker = _checker(_chosen(block), block)
    once = fix_all(_sources(block.before.source(library)), checker.check, allowed)
    problems = [*once.problems, *checker.problems]
    text = once.sources[FILE].text
    if text != block.source(library):
        problems.append(f"fixing makes something else of {block.before.name}:\n{text}")
    twice = fix_all(once.sources, checker.check, allowed)
    if twice.sources[FILE].text != text:
        problems.append(f"fixing it again changes it again:\n{twice.sources[FILE].text}")
    return problems


def _chosen(block: Block, *names: str) -> Callable[[Rule], bool]:
    """The rules that a block is about: that of its page, and some by name; comments are about all other rules."""
    rule = REGISTRY.get(block.page.stem)
    if rule is not None and rule.family is Family.COMMENTS:
        return _is_default
    return lambda rule: rule.name in (block.page.stem, *names)


def _is_default(rule: Rule) -> bool:
    return rule.default


def _against_marks(block: Block, found: list[tuple[int, Diagnostic]]) -> Problems:
    problems: Problems = []
    missing = list(block.marks)
    for line, finding in found:
        mark = next((mark for mark in missing if _is_marked(line, finding, mark)), None)
        if mark is not None:
            missing.remove(mark)
        else:
            problems.append(f"is not marked: {_describe(block, line, finding)}")
        if finding.rule.fix is Fixable.NONE and is_fixable(finding, SAFE_AND_UNSAFE):
            problems.append(f"has a fix that the registry does not know of: {_describe(block, line, finding)}")
    problems += (
        f'is marked, but not found: {block.page}:{block.line + mark.line - 1}: [{mark.rule}] "{mark.part}"'
        for mark in missing
    )
    return problems


def _is_marked(line: int, finding: Diagnostic, mark: Mark) -> bool:
    return line == mark.line and finding.rule.name == mark.rule and mark.part in finding.message


def _describe(block: Block, line: int, finding: Diagnostic) -> str:
    return f"{block.page}:{block.line + line - 1}: [{finding.rule.name}] {finding.message}"


def _shown(block: Block, library: str, found: Iterable[tuple[int, Diagnostic]]) -> list[str]:
    return [f"{_describe(block, line, finding)} (on {library})" for line, finding in found]


def _lint(block: Block, library: str, selected: Callable[[Rule], bool]) -> list[tuple[int, Diagnostic]]:
    """The findings in a program, with the lines on which they begin."""
    checker = _checker(selected, block)
    sources = _sources(block.source(library))
    assert sources[FILE].error is None, sources[FILE].error
    found = checker.check(sources)
    assert not checker.problems, checker.problems
    return [(sources[FILE].location(finding.span.start)[0], finding) for finding in found]


def _checker(selected: Callable[[Rule], bool], block: Block) -> Checker:
    target = parse(block.settings["target"]) if "target" in block.settings else None
    library, version = (target.library, target.version) if target is not None else (None, None)
    return Checker(Options.everywhere(selected=selected, library=library, version=version), roots=[])


def _sources(text: str) -> dict[str, SourceFile]:
    return {FILE: SourceFile.from_text(text, FILE)}


# -- the runs ----------------------------------------------------------------------------------------------------------


def run_problems(block: Block, library: str) -> Problems:
    """A bad program fails as it says, the others run to their end."""
    outcome = programs.run(block.source(library), library, block.page, block.line)
    expected = block.setting("raises", library)
    if expected == "silent":
        expected = None
    problems = _about_warnings(block, library, outcome.warnings)
    if block.role == "bad" and expected is None and not programs.asserts(block.text):
        problems.append("a program that fails silently proves it by an assert")
    if expected is not None:
        return problems + _about_error(block, library, expected, outcome.error)
    if outcome.error is not None:
        problems.append(f"should run to its end, but:\n{_traceback(outcome.error)}")
    return problems


def _about_warnings(block: Block, library: str, warned: Iterable[object]) -> Problems:
    expected = block.setting("warns", library)
    seen = Counter((w.category.__name__, str(w.message)) for w in warned)  # type: ignore[attr-defined]
    problems = [f"warns: {category}: {text}" for category, text in seen if category != expected]
    if expected is not None and not any(category == expected for category, _ in seen):
        problems.append(f"does not warn of a {expected}")
    return problems


def _about_error(block: Block, library: str, name: str, error: BaseException | None) -> Problems:
    if error is None:
        return [f"should raise {name}, but runs to its end"]
    expected = _exception(name, library)
    if not isinstance(error, expected):
        return [f"should raise {expected.__module__}.{expected.__name__}, but:\n{_traceback(error)}"]
    if not isinstance(error, NNXError):
        return []
    public = next(kind for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
    if public is not expected:
        return [f"should raise {name} itself, but raises {public.__name__}"]
    named = block.settings.get("rule", block.page.stem)
    if error.rule is None or error.rule.name != named:
        return [f"the error is of the rule {error.rule.name if error.rule else None}:\n{_traceback(error)}"]
    return _from_one_template(block, library, error.rule, error.message)


def _from_one_template(block: Block, library: str, rule: Rule, raised: str) -> Problems:
    """The traceback and the finding are the same sentence."""
    pattern = _pattern(rule.message)
    linted = [finding.message for _, finding in _lint(block, library, lambda other: other is rule)]
    return [f"is not of the rule's template: {text}" for text in (raised, *linted) if not pattern.fullmatch(text)]


def _pattern(template: str) -> re.Pattern[str]:
    pieces = (
        re.escape(text) + ("" if slot is None else ".*") for text, slot, _, _ in string.Formatter().parse(template)
    )
    return re.compile("".join(pieces), re.DOTALL)


def _exception(name: str, library: str) -> type[BaseException]:
    """The class that a page names: of nnx_rules, Python or jax, and on flax what stands for it there."""
    import jax

    first: object = errors
    if library == FLAX:
        import flax.errors as first

        bases = getattr(errors, name, object).__mro__
        builtin = next(base for base in bases if base.__module__ == "builtins")
        if builtin not in (Exception, object):
            return builtin
    for namespace in (first, builtins, jax.errors):
        found = getattr(namespace, name, None)
        if isinstance(found, type) and issubclass(found, BaseException):
            return found
    raise LookupError(
        f"no exception is called {name!r}, in {'flax.errors' if library == FLAX else 'nnx_rules.errors'}, Python or jax"
    )


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))
