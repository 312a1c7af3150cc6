"""What tests of the linter share: the command line in this process, and files to run it on."""

import pytest

from nnx_lint.cli import main


@pytest.fixture
def lint(capsys):
    """Run the command line: exit code, standard output, standard error."""

    def run(*words):
        code = main(words)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def write(tmp_path):
    """Write a text, or bytes, below the temporary folder; returns the path."""

    def write(name, text=""):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write
