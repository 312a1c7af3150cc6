"""Every fix on every rule page, and in programs full of mistakes, keeps its word."""

import pytest

from fix_safety import violations
from hostile import corpus
from nnx_lint.fixes import SAFE, SAFE_AND_UNSAFE
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
    # Half of the programs for each: both ways to change them together see all, with either set of fixes.
    half = int(change is commented)
    for number, program in enumerate(PROGRAMS[half::2]):
        path = f"/nowhere/program{number}.py"
        source = SourceFile.from_text(change(program), path)
        if source.error is None:
            count, wrong = violations({path: source}, allowed)
            total += count
            found += [f"{line}\n{source.text}" for line in wrong]
    assert total > 50
    assert not found, "\n".join(found[:3])
