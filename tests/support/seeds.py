"""Run the snippets of a Markdown page as a user would type them, and compare what they print: `seeds.py PAGE`.

A page holds fenced ``python`` blocks in doctest form. They run in order, in one namespace, and an exception that is not
expected fails the page. Old names still warn, which is tested elsewhere, so deprecation warnings are silent here.
"""

import doctest
import re
import sys
import warnings
from pathlib import Path

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_OPTIONS = doctest.ELLIPSIS | doctest.REPORT_NDIFF | doctest.DONT_ACCEPT_TRUE_FOR_1


class Page:
    """A page of snippets."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_text(encoding="utf-8")
        parser = doctest.DocTestParser()
        self.examples: list[doctest.Example] = []
        for block in _BLOCK.finditer(text):
            line = text.count("\n", 0, block.start(1))
            for example in parser.get_examples(block[1], name=path.name):
                example.lineno += line
                self.examples.append(example)

    def run(self) -> str:
        """Run all snippets; returns what differs from the page, empty if nothing does."""
        report: list[str] = []
        test = doctest.DocTest(self.examples, {"__name__": "__main__"}, self.path.name, str(self.path), 0, None)
        runner = doctest.DocTestRunner(optionflags=_OPTIONS, verbose=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            runner.run(test, out=report.append)
        return "".join(report)


if __name__ == "__main__":
    sys.stdout.write(Page(Path(sys.argv[1])).run())
