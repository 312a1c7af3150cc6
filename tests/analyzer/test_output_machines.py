"""Output formats for programs: they validate against the schemas of their readers, and say what they can carry."""

import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import unquote, urlsplit

import jsonschema
import pytest
import xmlschema
from hypothesis import given, settings
from hypothesis import strategies as st

from nnx_lint.diagnostics import Applicability, Diagnostic, Edit, Fix, Related, Span
from nnx_lint.output import FORMATS
from nnx_lint.source import SourceFile
from nnx_rules.registry import Severity
from reports import RULE, Cells, finding, printed

SCHEMAS = Path(__file__).parents[1] / "support" / "schemas"


def validator(name):
    schema = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    return jsonschema.validators.validator_for(schema)(schema)


SARIF, GITLAB, RDFORMAT = map(validator, ("sarif-2.1.0", "gitlab-code-quality", "rdformat"))
JUNIT = xmlschema.XMLSchema(str(SCHEMAS / "junit-10.xsd"))

MACHINES = sorted(FORMATS.keys() - {"full", "concise", "grouped"})


def validate(format, text):
    """Read a report as the program that it is for would; returns what that sees."""
    if format == "junit":
        JUNIT.validate(io.StringIO(text))
        return ET.fromstring(text)
    if format == "github":
        return [
            re.fullmatch(r"::(error|warning|notice) ([^:]*)::(.+)", line).groups() for line in text.split("\n")[:-1]
        ]
    if format == "json-lines":
        return [json.loads(line) for line in text.split("\n")[:-1]]
    content = json.loads(text)
    schema = {"sarif": SARIF, "gitlab": GITLAB, "rdjson": RDFORMAT}.get(format)
    if schema is not None:
        schema.validate(content)
    return content


def read(format, diagnostics, *sources, **more):
    return validate(format, printed(format, diagnostics, *sources, **more))


@pytest.fixture(autouse=True)
def no_ci(monkeypatch):
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    monkeypatch.delenv("CI_PROJECT_DIR", raising=False)


SOURCE = SourceFile.from_text("x = 1\né = bad\n", "pkg/a.py")
MEND = Fix("Mend it", (Edit(Span(0, 0), "import b\n"), Edit(Span(10, 13), "good")))


@pytest.mark.parametrize("format", MACHINES)
@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("level", [None, *Severity])
def test_is_valid_whatever_is_found(format, count, level):
    other = SourceFile.from_text("'<&\">' + bad\n", "pkg/ü b,c:d%20.py")
    related = (Related("pkg/a.py", Span(0, 1), "`x`"), Related("/nowhere/b.py", Span(0, 1), "gone"))
    found = [
        finding(source, "bad", fix=MEND, related=related, help="mend it\nsoon", message='<&">]]>\n', level=level)
        for source in (SOURCE, other)
    ] * count
    content = read(format, found, SOURCE, other, problems=["c.py: cannot be read"])
    if format in ("json", "json-lines", "github", "gitlab"):
        assert len(content) == 2 * count + (format == "github")


@pytest.mark.parametrize("format", MACHINES)
def test_a_notebook_names_its_cell(format):
    source = Cells("n.ipynb", "a\nb\nc\nd\nx = bad\n", "utf-8")
    text = printed(format, [finding(source, "bad", fix=Fix("Mend", (Edit(Span(12, 15), "MENDED"),)))], source)
    content = validate(format, text)
    if format in ("json", "json-lines"):
        assert content[0]["cell"] == 2
        assert content[0]["location"] == {"row": 2, "column": 5}
        assert content[0]["fix"]["edits"][0]["location"] == {"row": 2, "column": 5}
    else:
        assert "cell 2:2:5" in text
        assert "MENDED" not in text
        assert format != "github" or content[0][1] == "title=nnx-lint (NNX101),file=n.ipynb"


@pytest.mark.parametrize("format", [*FORMATS])
@settings(max_examples=30)
@given(
    st.text(max_size=30), st.text(max_size=30), st.text(min_size=1, max_size=10).filter(lambda name: "\0" not in name)
)
def test_every_text_can_be_written(format, text, message, name):
    source = SourceFile.from_text(text.encode("utf-8", "replace").decode(), name)
    found = [Diagnostic(RULE, name, Span(0, len(source.text)), message or "m", message)]
    out = printed(format, found, source)
    if format in MACHINES:
        validate(format, out.encode("utf-8", "replace").decode())
    else:
        assert not set(out) & {"\x1b", "\r", "\x9b", "\u202e"}


class TestJsonLines:
    def test_is_the_json_array_one_a_line(self):
        found = [finding(SOURCE, "bad", fix=MEND), finding(SOURCE, "x")]
        assert read("json-lines", found, SOURCE) == read("json", found, SOURCE)

    @pytest.mark.parametrize(
        ("text", "row"), [("bad\n", 1), ("bad \\\n + 1\n", 2), ("bad + '''\n\n'''\n", 3), ("bad \\", 1)]
    )
    def test_noqa_row_is_where_a_comment_silences_the_finding(self, text, row):
        source = SourceFile.from_text(text, "a.py")
        (entry,) = read("json-lines", [finding(source, "bad")], source)
        assert entry["noqa_row"] == row


class TestGithub:
    def test_a_finding(self):
        assert printed("github", [finding(SOURCE, "bad", help="mend: it")], SOURCE) == (
            "::error title=nnx-lint (NNX101),file=pkg/a.py,line=2,endLine=2,col=5,endColumn=8"
            "::pkg/a.py:2:5: NNX101 [data-in-static-attribute] it is wrong%0A  help: mend: it\n"
        )

    @pytest.mark.parametrize(("level", "command"), [("error", "error"), ("warning", "warning"), ("info", "notice")])
    def test_levels(self, level, command):
        ((found, _, _),) = read("github", [finding(SOURCE, "bad", level=Severity(level))], SOURCE)
        assert found == command

    def test_a_span_of_several_lines_has_no_columns(self):
        ((_, properties, _),) = read("github", [finding(SOURCE, "1\né")], SOURCE)
        assert properties == "title=nnx-lint (NNX101),file=pkg/a.py,line=1,endLine=2"

    def test_a_file_is_named_from_the_root_of_the_checkout(self, monkeypatch):
        monkeypatch.setenv("GITHUB_WORKSPACE", str(Path.cwd().parent))
        assert f"file={Path.cwd().name}/pkg/a.py" in printed("github", [finding(SOURCE, "bad")], SOURCE)

    def test_an_incomplete_run_says_so(self):
        problem = "a.py:1:5: syntax error: 100%"
        assert printed("github", [], problems=[problem]) == f"::error title=nnx-lint::{problem}25\n"

    def test_nothing_in_a_finding_ends_the_command(self):
        source = SourceFile.from_text("bad\n", "a,b:c%\n.py")
        ((_, properties, message),) = read("github", [finding(source, "bad", message="50%\n::error::")], source)
        assert "file=a%2Cb%3Ac%25%0A.py," in properties
        assert message.endswith("50%25%0A::error::")


class TestGitlab:
    def test_a_finding(self):
        (issue,) = read("gitlab", [finding(SOURCE, "bad", level=Severity.WARNING)], SOURCE)
        assert re.fullmatch(r"[0-9a-f]{16}", issue.pop("fingerprint"))
        assert issue == {
            "description": "NNX101 [data-in-static-attribute] it is wrong",
            "check_name": "data-in-static-attribute",
            "severity": "minor",
            "location": {
                "path": "pkg/a.py",
                "positions": {"begin": {"line": 2, "column": 5}, "end": {"line": 2, "column": 8}},
            },
        }

    def test_a_fingerprint_stays_while_lines_move_and_is_never_shared(self):
        def prints(text):
            source = SourceFile.from_text(text, "a.py")
            places = [match.start() for match in re.finditer("bad", text)]
            found = [Diagnostic(RULE, "a.py", Span(place, place + 3), "it is wrong") for place in places]
            return [issue["fingerprint"] for issue in read("gitlab", found, source)]

        before = prints("def f():\n    x = bad\n    x = bad\n\n\nx = bad\n")
        assert len(set(before)) == 3
        assert prints("import a\n\n\ndef f():\n  y = 1\n  x  =  bad  # why\n  x = bad\nx = bad\n") == before

    def test_a_file_is_named_from_the_root_of_the_project(self, monkeypatch):
        monkeypatch.setenv("CI_PROJECT_DIR", str(Path.cwd().parent))
        (issue,) = read("gitlab", [finding(SOURCE, "bad")], SOURCE)
        assert issue["location"]["path"] == f"{Path.cwd().name}/pkg/a.py"


class TestJunit:
    def test_a_suite_for_each_file_and_a_test_for_each_finding(self):
        other = SourceFile.from_text("bad\n", "b.py")
        found = [finding(SOURCE, "bad", help="mend it"), finding(SOURCE, "x"), finding(other, "bad")]
        suites = read("junit", found, SOURCE, other)
        assert [(suite.get("name"), len(suite)) for suite in suites] == [("pkg/a.py", 2), ("b.py", 1)]
        assert suites.attrib == {"name": "nnx-lint", "tests": "3", "failures": "3", "errors": "0"}
        case = suites[0][0]
        assert case.attrib == {"name": "nnx_lint.NNX101.data-in-static-attribute", "classname": "pkg/a"}
        (failure,) = case
        assert failure.attrib == {"type": "error", "message": "it is wrong"}
        assert failure.text == "pkg/a.py:2:5: NNX101 [data-in-static-attribute] it is wrong\nhelp: mend it"

    def test_a_clean_run_is_one_test_that_passes(self):
        (suite,) = read("junit", [])
        (case,) = suite
        assert (suite.get("failures"), len(case)) == ("0", 0)

    def test_an_incomplete_run_does_not_pass(self):
        suites = read("junit", [finding(SOURCE, "bad")], SOURCE, problems=["a.py: <gone>", "b.py: cannot be read"])
        assert suites.attrib == {"name": "nnx-lint", "tests": "3", "failures": "1", "errors": "2"}
        assert [(suite.get("name"), suite.get("errors")) for suite in suites] == [("nnx-lint", "2"), ("pkg/a.py", "0")]
        assert [case[0].get("message") for case in suites[0]] == ["a.py: <gone>", "b.py: cannot be read"]
        (suite,) = read("junit", [], problems=["a.py: cannot be read"])
        assert [each.tag for case in suite for each in case] == ["error"]


class TestRdjson:
    def test_a_finding_with_everything(self):
        related = (Related("pkg/a.py", Span(0, 1), "here"),)
        content = read("rdjson", [finding(SOURCE, "bad", fix=MEND, help="mend it", related=related)], SOURCE)
        path = str(Path.cwd() / "pkg" / "a.py")
        here = {"start": {"line": 2, "column": 6}, "end": {"line": 2, "column": 9}}  # `é` has two bytes
        top = {"start": {"line": 1, "column": 1}, "end": {"line": 1, "column": 1}}
        first = {"start": {"line": 1, "column": 1}, "end": {"line": 1, "column": 2}}
        assert content == {
            "source": {"name": "nnx-lint"},
            "diagnostics": [
                {
                    "message": "[data-in-static-attribute] it is wrong\nmend it",
                    "location": {"path": path, "range": here},
                    "severity": "ERROR",
                    "code": {"value": "NNX101"},
                    "suggestions": [{"range": top, "text": "import b\n"}, {"range": here, "text": "good"}],
                    "related_locations": [{"message": "here", "location": {"path": path, "range": first}}],
                }
            ],
        }

    def test_a_fix_with_a_hole_is_no_suggestion(self):
        fix = Fix("Fill in", (Edit(Span(10, 13), "..."),), Applicability.DISPLAY)
        (diagnostic,) = read("rdjson", [finding(SOURCE, "bad", fix=fix)], SOURCE)["diagnostics"]
        assert "suggestions" not in diagnostic


class TestSarif:
    def run(self, diagnostics, *sources, **more):
        (run,) = read("sarif", diagnostics, *sources, **more)["runs"]
        return run

    def test_a_finding_with_everything(self):
        related = (Related("pkg/a.py", Span(0, 1), "here"),)
        run = self.run([finding(SOURCE, "bad", fix=MEND, help="mend it", related=related)], SOURCE)
        artifact = {"uri": "pkg/a.py", "uriBaseId": "%SRCROOT%"}
        here = {"startLine": 2, "startColumn": 5, "endLine": 2, "endColumn": 8}
        top = {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1}
        first = {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 2}
        (result,) = run["results"]
        assert re.fullmatch(r"[0-9a-f]{16}", result.pop("partialFingerprints")["nnxLint/v1"])
        assert result == {
            "ruleId": "NNX101",
            "ruleIndex": 0,
            "level": "error",
            "message": {"text": "it is wrong\nmend it"},
            "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": here}}],
            "relatedLocations": [
                {
                    "id": 0,
                    "message": {"text": "here"},
                    "physicalLocation": {"artifactLocation": artifact, "region": first},
                }
            ],
            "fixes": [
                {
                    "description": {"text": "Mend it"},
                    "artifactChanges": [
                        {
                            "artifactLocation": artifact,
                            "replacements": [
                                {"deletedRegion": top, "insertedContent": {"text": "import b\n"}},
                                {"deletedRegion": here, "insertedContent": {"text": "good"}},
                            ],
                        }
                    ],
                }
            ],
        }
        (rule,) = run["tool"]["driver"]["rules"]
        assert (rule["id"], rule["name"]) == ("NNX101", "data-in-static-attribute")
        assert rule["help"]["markdown"].startswith("# data-in-static-attribute")
        assert run["columnKind"] == "unicodeCodePoints"

    def test_a_fix_with_a_hole_is_no_fix(self):
        fix = Fix("Fill in", (Edit(Span(10, 13), "..."),), Applicability.DISPLAY)
        (result,) = self.run([finding(SOURCE, "bad", fix=fix)], SOURCE)["results"]
        assert "fixes" not in result

    def test_the_root_and_the_name_are_the_file(self):
        source = SourceFile.from_text("bad\n", "ü b#?%.py")
        run = self.run([finding(source, "bad")], source)
        (location,) = run["results"][0]["locations"]
        root = run["originalUriBaseIds"]["%SRCROOT%"]["uri"]
        whole = urlsplit(root + location["physicalLocation"]["artifactLocation"]["uri"])
        assert (whole.scheme, unquote(whole.path)) == ("file", str(Path.cwd() / "ü b#?%.py"))

    def test_a_file_elsewhere_has_an_address_of_its_own(self):
        source = SourceFile.from_text("bad\n", "/else where/a.py")
        (result,) = self.run([finding(source, "bad")], source)["results"]
        artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
        assert artifact == {"uri": "file:///else%20where/a.py"}

    @pytest.mark.parametrize(("level", "said"), [("error", "error"), ("warning", "warning"), ("info", "note")])
    def test_levels(self, level, said):
        (result,) = self.run([finding(SOURCE, "bad", level=Severity(level))], SOURCE)["results"]
        assert result["level"] == said

    def test_an_incomplete_run_says_so(self):
        (invocation,) = self.run([], problems=["a.py: cannot be read"])["invocations"]
        assert invocation["executionSuccessful"] is False
        assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "a.py: cannot be read"
        (invocation,) = self.run([])["invocations"]
        assert invocation["executionSuccessful"] is True
