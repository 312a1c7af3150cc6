"""Programs of the rule pages, written otherwise: linter and runtime agree on them as they do on the originals.

A deterministic share of all variants (`variant_checks` judges all of them). Every variant of the share is linted; those
on which linter and page disagree are run to see what they really do, and a part of the others, to see that the ways of
rewriting keep the meaning.
"""

import pytest

import programs
from rule_pages import NNXKIT
from variant_checks import Judge, Judged, pairs, share_of, tally
from variants import WAYS, variant

SHARE, RUN = 0.03, 0.05
PARTS = 2

PLAIN = """
import nnxkit as nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.layers = [nnx.Linear(2, 2, rngs=rngs)]


Net(nnx.Rngs(0))
"""

needs_jax = pytest.mark.skipif(programs.missing_for(NNXKIT) is not None, reason="jax is not installed")


@needs_jax
@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_linter_and_runtime_agree_on_variants(part: int) -> None:
    judge = Judge(RUN)
    chosen = [pair for number, pair in enumerate(pairs(SHARE)) if number % PARTS == part]

    judged = [found for block, way in chosen if (found := judge.judge(block, way)) is not None]

    total = tally(judged)
    assert total.judged > 300
    assert [str(each) for each in total.disagreeing if each.block.role != "bad"] == []
    assert total.agreement >= 0.97, "\n".join(map(str, total.disagreeing))
    assert total.other <= total.judged * 0.02
    assert sum(bool(each.elsewhere) for each in judged) <= total.judged * 0.02


@pytest.mark.parametrize("way", sorted(WAYS))
def test_a_variant_is_a_program_that_knows_where_its_lines_come_from(way: str) -> None:
    made = variant(PLAIN, way)

    for path, text in made.files.items() if made is not None else ():
        compile(text, path, "exec")
        lines = text.splitlines()
        new = next((number for number, line in enumerate(lines, 1) if ".layers = " in line or "'layers'" in line), None)
        if new is not None:
            assert 7 in made.origins[path][new]


def test_a_way_without_anything_to_do_makes_no_variant() -> None:
    assert variant(PLAIN, "comprehensions-as-loops") is None
    assert variant("x = 1\n", "in-function") is not None


def test_a_finding_that_is_lost_or_new_disagrees() -> None:
    block, way = next(pair for pair in pairs(rule="data-in-static-attribute", way="in-function"))
    made = variant(block.source(NNXKIT), way)
    assert made is not None

    def judged(missing: tuple[str, ...] = (), noise: tuple[str, ...] = (), outcome: str | None = "") -> Judged:
        return Judged(block, made, "", outcome, missing, noise, ())

    each = [judged(), judged(missing=("x",)), judged(noise=("y",)), judged(outcome="NameError", missing=("x",))]
    total = tally(each)

    assert (total.judged, total.other, total.disagreeing) == (4, 1, tuple(each[1:3]))
    assert total.agreement == pytest.approx(1 / 3)


def test_a_share_is_the_same_in_every_process_and_part_of_a_bigger_one() -> None:
    small, big = ({(block.name, way) for block, way in pairs(share, rule="^a")} for share in (0.05, 0.2))

    assert small < big
    assert share_of("a", "b") == pytest.approx(0.35038, abs=1e-5)
