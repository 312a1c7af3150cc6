"""Every fix on every rule page, and in programs full of mistakes, keeps its word."""

import pytest

from fix_safety import EVERY_RULE, violations
from hostile import corpus
from nnx_lint.checking import Checker
from nnx_lint.fixes import SAFE, SAFE_AND_UNSAFE, fix_all
from nnx_lint.source import SourceFile

PROGRAMS = corpus()


def commented(program: str) -> str:
    """The program with a comment at the end of every line that certainly can have one."""
    return "".join(
        line.rstrip("\n") + f"  # line {number}\n"
        if line.rstrip().endswith((")", ":", "]")) and '"' not in line
        else line
        for number, line in enumerate(program.splitlines(keepends=True), 1)
    )


@pytest.mark.parametrize("allowed", [SAFE, SAFE_AND_UNSAFE], ids=["safe", "all"])
@pytest.mark.parametrize("change", [commented, lambda text: text.replace("\n", "\r\n")], ids=["comments", "crlf"])
def test_fixes_keep_their_word(allowed, change):
    found = []
    total = 0
    # A quarter of the programs for each of the four: together they see all.
    part = 2 * int(change is commented) + int(allowed is SAFE)
    for number, program in enumerate(PROGRAMS[part::4]):
        path = f"/nowhere/program{number}.py"
        source = SourceFile.from_text(change(program), path)
        if source.error is None:
            count, wrong = violations({path: source}, allowed)
            total += count
            found += [f"{line}\n{source.text}" for line in wrong]
    assert total > 50
    assert not found, "\n".join(found[:3])


CONTRADICTIONS = [
    # What one rule takes for the mistake, another takes for what is meant: neither may mend it into the other's.
    """\
@nnx.dataclass
class Net(nnx.Module):
    name: nnx.Linear = nnx.static(default='net')


Net()
""",
    # What is sharded stands elsewhere than the call that could say otherwise.
    """\
init = nnx.with_partitioning(nnx.initializers.ones, (None, None))
nnx.Linear(2, 2, kernel_init=init, rngs=nnx.with_partitioning(nnx.initializers.ones, (None,)))
""",
    # A keyword that is written twice, and one that nobody can write.
    "nnx.Linear(2, 2, kernel_init=print, rngs=nnx.Rngs(0), kernel_init=nnx.initializers.zeros_init)\n",
    "nnx.metrics.Average('a b').update(loss=1)\n",
]


@pytest.mark.parametrize("program", CONTRADICTIONS)
def test_fixes_of_contradictions_settle(program):
    source = SourceFile.from_text("from flax import nnx\n\n" + program, "/nowhere/program.py")

    def check(files):
        return Checker(EVERY_RULE, []).check(files)

    assert fix_all({source.path: source}, check, SAFE_AND_UNSAFE).problems == []
