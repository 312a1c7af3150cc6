"""What every variant of a program on a rule page has to prove: that the linter says of it what running it shows.

A page says what happens to its programs; a variant of one (:mod:`variants`) is judged by what happens to *it*. Where it
fails as the original does, the linter has to find in it what it finds in the original; where it runs, it has to be
clean. A variant that does something else altogether says nothing: the way has not kept the meaning.

`python tests/support/variant_checks.py` judges every variant of every program, which takes most of an hour, and prints
what agrees, by way and by rule; `--share 0.1` takes a tenth, `--rule` and `--way` choose, `-v` shows the programs.
"""

import argparse
import contextlib
import gc
import hashlib
import io
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import programs
from nnx_lint.checking import Checker
from nnx_lint.selection import Options
from nnx_lint.source import SourceFile
from nnx_rules.errors import NNXError
from nnx_rules.registry import Family, Rule
from nnx_rules.rules import REGISTRY
from repository import ROOT
from rule_pages import Block, read_page
from variants import PROGRAM, WAYS, Variant, variant

LEAVES_BEHIND = 500
"""After so many programs what JAX has compiled for them is forgotten: it would take gigabytes."""

OPINIONS = {
    ("transform-in-loop", "in-loop"): "a loop of one round is a loop, and costs nothing at run time",
    ("edit-in-loop", "in-loop"): "the same",
    ("sown-not-collected", "in-loop"): "the same",
    (
        "variable-overwritten",
        "by-getattr",
    ): "that a Variable is replaced by its own value is seen where it is written so",
    ("variable-overwritten", "values-from-functions"): "the same",
    ("static-container-filled-late", "bodies-extracted"): "what becomes of an attribute is read off its class",
    ("unsplit-rngs", "arguments-spread"): "what a `with` block has split is read off its arguments",
    ("loss-is-tuple", "definitions-elsewhere"): "that a loss is mapped over examples is read off its file",
    ("loss-is-tuple", "definitions-in-module"): "the same",
    ("loss-is-tuple", "definitions-in-package"): "the same",
    ("missing-rngs", "bodies-extracted"): "an argument by position may be anything where nothing says what it is",
    ("missing-rngs", "values-from-functions"): "the same",
    ("missing-rngs", "statements-in-functions"): "the same",
    ("missing-rngs", "set-up-by-method"): "the same",
    ("unknown-name", "layers-by-functions"): "that a function is called under a condition does not concern its body",
    ("ignored-state", "in-loop"): "a loop of one round is a loop",
    ("ignored-state", "in-function"): "a script may look at what it gets later on, a function does not",
    ("random-key-reused", "in-loop"): "the same",
    ("aliased-snapshot", "in-loop"): "the same",
    ("unused-result", "in-function"): "a script may try what it throws away, a function does not",
    ("unused-result", "script-in-function"): "the same",
    ("unused-result", "script-in-method"): "the same",
    ("unused-result", "constructed-in-init"): "the same",
    ("ignored-state", "script-in-function"): "the same",
    ("layer-input-shape", "definitions-in-package"): "what a class is made with is read off its file",
    ("layer-input-shape", "definitions-in-module"): "the same",
    ("layer-input-shape", "definitions-elsewhere"): "the same",
    ("lost-count", "renamed"): "a number that is called after traces is to count them",
    ("optimizer-transformation", "renamed"): "that a step is to go up is told by its names",
    ("rngs-not-advanced", "definitions-elsewhere"): "that Variables are references is read off the file",
    ("rngs-not-advanced", "definitions-in-module"): "the same",
    ("rngs-not-advanced", "definitions-in-package"): "the same",
    ("same-seed-rngs", "renamed"): "that one network is to follow another is told by their names",
    ("random-key-reused", "constants-elsewhere"): "what stands elsewhere is a seed, and not one to try something",
    ("path-never-matches", "definitions-in-package"): "that an attribute has a slash in its name is read off the file",
    ("unused-result", "in-loop"): "a loop of one round is a loop, in which nothing is called to be compiled",
}
"""Rules that speak of a variant though it runs as the original does, and why they may: (rule, way)."""


@dataclass(frozen=True)
class Judged:
    """What running and linting a variant gave.

    Attributes:
        expected: how the original ends: with the name of an error, or `""` at its end; `None` if nothing was run.
        outcome: how the variant ends, likewise.
        missing: rules that mark the original and not the variant, though both fail alike.
        noise: findings in a variant whose original has none of the kind.
        elsewhere: rules that mark the variant on another line than the original.
    """

    block: Block
    variant: Variant
    expected: str | None
    outcome: str | None
    missing: tuple[str, ...]
    noise: tuple[str, ...]
    elsewhere: tuple[str, ...]

    @property
    def kept(self) -> bool:
        """Whether the variant does what the original does, as far as anybody looked."""
        return self.outcome == self.expected

    @property
    def agrees(self) -> bool:
        """Whether linter and runtime agree."""
        return not self.missing and not self.noise

    def __str__(self) -> str:
        words = [f"missing {rule}" for rule in self.missing] + [f"noise: {finding}" for finding in self.noise]
        return f"{self.block.name} {self.variant.way}: {'; '.join(words) or 'agrees'}"


def pairs(share: float = 1.0, rule: str = "", way: str = "") -> Iterator[tuple[Block, str]]:
    """Programs and ways, of which a deterministic share is taken. Not every way has something to do in a program."""
    for path in sorted((ROOT / "tests" / "rules").glob("*.md")):
        if not re.search(rule, path.stem) or _is_about_comments(path.stem):
            continue
        for block in read_page(path).blocks:
            if block.flags & {"norun", "unseen"} or "target" in block.settings:
                continue
            for name in WAYS:
                if re.search(way, name) and share_of(block.name, name) < share:
                    yield block, name


def _is_about_comments(name: str) -> bool:
    rule = REGISTRY.get(name)
    return rule is None or rule.family is Family.COMMENTS


def share_of(*words: str) -> float:
    """A number from 0 to 1 that follows from words alone."""
    return int.from_bytes(hashlib.sha256("\0".join(words).encode()).digest()[:4]) / 2**32


class Judge:
    """Judges variants; ``runs`` is the share of them that is run in any case: one that disagrees always is."""

    def __init__(self, runs: float = 1.0) -> None:
        self.runs = runs
        self._found: dict[str, Counter[str]] = {}
        self._ended: dict[str, str] = {}
        self._programs = 0

    def judge(self, block: Block, way: str) -> Judged | None:
        """Judge the variant of a program in its first library; ``None`` if the way has nothing to do there."""
        library = block.libraries[0]
        made = variant(block.source(library), way)
        if made is None:
            return None
        chosen = {block.page.stem, *(mark.rule for mark in block.marks)}
        before = self._findings(block, library, chosen)
        found = _findings(made.files, chosen)
        names = [rule.name for _, _, rule, _ in found]
        # Where all rules look, another one may have found the mistake first.
        marked = Counter(mark.rule for mark in block.marks) & before
        missing = tuple((marked - Counter(names)).elements())
        usual = set(before) | {rule for rule, where in OPINIONS if where == way}
        noise = tuple(
            f"{path}:{line}: [{rule.name}] {text}" for path, line, rule, text in found if rule.name not in usual
        )
        elsewhere = tuple(
            mark.rule
            for mark in block.marks
            if mark.rule not in missing
            and not any(
                rule.name == mark.rule and mark.line in made.origins[path].get(line, ())
                for path, line, rule, _ in found
            )
        )
        expected = outcome = None
        if missing or noise or share_of("run", block.name, way) < self.runs:
            expected, outcome = self._end(block, library), self._run(made.files, library, block)
        if outcome == "" != expected:
            # It runs, whatever the original does: the linter has to be silent, and is not to be asked for more.
            missing, noise = (), tuple(name for name in names if name in before)
        return Judged(block, made, expected, outcome, missing, noise, elsewhere)

    def _findings(self, block: Block, library: str, chosen: set[str]) -> Counter[str]:
        if block.name not in self._found:
            found = _findings({PROGRAM: block.source(library)}, chosen)
            self._found[block.name] = Counter(rule.name for _, _, rule, _ in found)
        return self._found[block.name]

    def _end(self, block: Block, library: str) -> str:
        if block.name not in self._ended:
            self._ended[block.name] = self._run({PROGRAM: block.source(library)}, library, block)
        return self._ended[block.name]

    def _run(self, files: dict[str, str], library: str, block: Block) -> str:
        self._programs += 1
        if self._programs % LEAVES_BEHIND == 0:
            import jax

            jax.clear_caches()
            gc.collect()
        beside = {path: text for path, text in files.items() if path != PROGRAM}
        with contextlib.redirect_stdout(io.StringIO()):
            error = programs.run(files[PROGRAM], library, Path(f"variant of {block.page.stem}"), 1, beside).error
        if error is None:
            return ""
        rule = error.rule if isinstance(error, NNXError) else None
        return f"{type(error).__name__} {rule.name if rule is not None else ''}".strip()


def _findings(files: dict[str, str], chosen: set[str]) -> list[tuple[str, int, Rule, str]]:
    """The findings in a project of some files: (path, line, rule, message), of the default rules and of some others."""
    options = Options.everywhere(selected=lambda rule: rule.default or rule.name in chosen)
    with contextlib.ExitStack() as stack:
        # Imports are resolved by what lies in folders; one file imports nothing of its own.
        root = Path(stack.enter_context(tempfile.TemporaryDirectory())) if len(files) > 1 else Path()
        for path, text in files.items() if len(files) > 1 else ():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        sources = {str(root / path): SourceFile.from_text(text, str(root / path)) for path, text in files.items()}
        checker = Checker(options, roots=[str(root)] if len(files) > 1 else [])
        found = checker.check(sources)
    assert not checker.problems, checker.problems
    return [
        (
            str(Path(finding.path).relative_to(root)),
            sources[finding.path].location(finding.span.start)[0],
            finding.rule,
            finding.message,
        )
        for finding in found
    ]


@dataclass
class Tally:
    """How many variants were judged, and which of them disagree."""

    judged: int = 0
    other: int = 0
    disagreeing: tuple[Judged, ...] = ()

    @property
    def agreement(self) -> float:
        """The share of the variants that do what their original does on which linter and runtime agree."""
        return 1 - len(self.disagreeing) / max(self.judged - self.other, 1)


def tally(judged: Iterable[Judged]) -> Tally:
    """Count."""
    everything = list(judged)
    kept = [each for each in everything if each.kept or each.outcome == ""]
    return Tally(len(everything), len(everything) - len(kept), tuple(each for each in kept if not each.agrees))


def main() -> int:
    """Judge what the command line asks for, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0, help="of all variants")
    parser.add_argument("--runs", type=float, default=1.0, help="the share of variants that is run in any case")
    parser.add_argument("--rule", default="", help="a pattern for names of rules")
    parser.add_argument("--way", default="", help="a pattern for names of ways")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the programs that disagree")
    options = parser.parse_args()

    judge = Judge(options.runs)
    judged = [
        found
        for block, way in pairs(options.share, options.rule, options.way)
        if (found := judge.judge(block, way)) is not None
    ]
    total = tally(judged)
    for each in judged:
        if not (each.kept and each.agrees):
            print(each if each.kept else f"{each}: {each.expected or 'runs'} -> {each.outcome or 'runs'}")
            if options.verbose:
                print(*(f"--- {path}\n{text}" for path, text in each.variant.files.items()), sep="\n")
    for title, key in (("way", lambda each: each.variant.way), ("rule", lambda each: each.block.page.stem)):
        print(f"\n| {title} | variants | do something else | disagree | elsewhere |\n|---|---|---|---|---|")
        for name in sorted({key(each) for each in judged}):
            own = [each for each in judged if key(each) == name]
            counted = tally(own)
            if title == "way" or counted.disagreeing or counted.other:
                print(
                    f"| {name} | {counted.judged} | {counted.other} | {len(counted.disagreeing)} "
                    f"| {sum(bool(each.elsewhere) for each in own)} |"
                )
    good = [each for each in total.disagreeing if each.block.role != "bad"]
    print(f"\n{total.judged} variants, {total.other} do something else; agreement {total.agreement:.2%}")
    print(f"noisy on correct programs: {len(good)}")
    return 0 if total.agreement >= 0.95 and not good else 1


if __name__ == "__main__":
    sys.exit(main())
