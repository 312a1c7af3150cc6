"""No input makes the linter raise, and none is changed by reading it: random damage to real programs and notebooks.

`make fuzz` runs the same inputs by the hundred thousand, and looks at the time that they take.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostile import corpus, hostile, survive

PROGRAMS = corpus()


@pytest.mark.fuzz
@given(seed=st.integers(0, 2**64))
@settings(max_examples=500)
def test_damaged_files(seed: int) -> None:
    survive(*hostile(seed, PROGRAMS))


@given(data=st.binary())
def test_random_bytes(data: bytes) -> None:
    survive("program.py", data)
    survive("program.ipynb", data)


@given(text=st.text(alphabet="ab (){}[]:=.,#'\"\\\n\r\t\f%!?@\0é\udce9<>"))
def test_random_texts(text: str) -> None:
    survive("program.py", text.encode("utf-8", "surrogatepass"))
