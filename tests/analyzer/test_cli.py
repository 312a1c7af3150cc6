"""The command line, in this process and with a stub engine: arguments, streams, exit codes, files that change."""

import codecs
import io
import json
import os
import stat
import sys
import tempfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stub_engine
from nnx_lint.cli import COMMANDS, main
from nnx_lint.config.kinds import Choice
from nnx_lint.config.registry import EXCLUDED, LINE, OPTIONS
from nnx_lint.files import discover, import_roots, rewrite
from nnx_lint.output import FORMATS
from nnx_rules import __version__
from nnx_rules.rules import REGISTRY


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "nnx_lint.engine", stub_engine)
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


def concise(lint, *words):
    """The findings as (path, code)."""
    _, out, _ = lint(*words, "--output-format", "concise", "-q")
    return [(line.split(":")[0], line.split()[1]) for line in out.splitlines()]


class TestWhatIsPrinted:
    def test_version(self, lint):
        assert lint("--version") == (0, f"nnx-lint {__version__}\n", "")

    @pytest.mark.parametrize("words", [["--help"], ["-h"], ["check", "--help"], ["rule", "-h"]])
    def test_help_is_one_screen(self, lint, words):
        code, out, err = lint(*words)
        assert (code, err) == (0, "")
        assert len(out.splitlines()) <= 64
        assert max(map(len, out.splitlines())) <= 120

    def test_help_names_every_option(self, lint):
        _, out, _ = lint("--help")
        for option in OPTIONS:
            if LINE in option.places:
                assert f"{option.flag} " in out
                assert all(choice in out for choice in option.kind.choices or () if isinstance(option.kind, Choice))
        assert all(f"  {command} " in out for command in COMMANDS)

    @pytest.mark.parametrize("key", ["NNX101", "nnx101", "data-in-static-attribute"])
    def test_rule_prints_its_page(self, lint, key):
        code, out, _ = lint("rule", key)
        assert code == 0
        assert "data-in-static-attribute" in out.splitlines()[0] or out.startswith(("---", "#"))

    def test_a_rule_without_a_page_prints_what_the_registry_knows(self, lint, monkeypatch):
        monkeypatch.setattr("nnx_lint.pages.PAGE_FOLDERS", ())
        rule = REGISTRY.get("NNX101")
        _, out, _ = lint("rule", "NNX101")
        assert out.startswith(f"# {rule.name} (NNX101)\n\n{rule.summary}\n")
        assert rule.message in out
        assert rule.help in out

    @pytest.mark.parametrize(
        ("name", "held"),
        [
            ("data-in-static-attribute", "flax from 0.12.0 on and nnxkit"),
            ("sequential-keyword", "flax before 0.12.11"),
            ("checkpoint-exists", "nnxkit"),
        ],
    )
    def test_a_page_has_what_the_registry_knows_before_its_sections(self, lint, name, held):
        rule = REGISTRY.get(name)
        _, out, _ = lint("rule", name)
        head, section, _ = out.partition("\n## Why it matters\n")
        assert section
        assert head.splitlines()[4:8] == [
            f"- Code: {rule.code}",
            f"- Severity: {rule.severity.value}",
            "- Reported by default: yes",
            f"- Fix: {rule.fix.value}",
        ]
        assert f"\n- Holds for: {held}\n" in head

    def test_every_rule_can_be_printed(self, lint):
        for rule in REGISTRY:
            code, out, _ = lint("rule", rule.name)
            assert code == 0
            assert out

    def test_rules_lists_all(self, lint):
        code, out, _ = lint("rules")
        head, *lines = out.splitlines()
        assert code == 0
        assert head.split() == ["code", "name", "default", "fix", "finds"]
        assert [line.split()[:2] for line in lines] == [[rule.code, rule.name] for rule in REGISTRY]


class TestWrongUsage:
    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--selct", "ALL"], "error: unknown option --selct; did you mean --select?"),
            (["--selct=ALL"], "error: unknown option --selct; did you mean --select?"),
            (["--zzz"], "error: unknown option --zzz; see nnx-lint --help"),
            (["--select"], "error: --select needs a value: RULES"),
            (["--output-format", "xml"], "error: --output-format must be one of full, concise"),
            (["--select", "NNX1001"], "error: no rule matches 'NNX1001'; did you mean 'NNX101'?"),
            (["--ignore", "data-in-static-atribute"], "did you mean 'data-in-static-attribute'?"),
            (["rule"], "error: `nnx-lint rule` takes one code or name"),
            (["rule", "NNX101", "NNX102"], "error: `nnx-lint rule` takes one code or name"),
            (["rule", "data-in-static-atribute"], "did you mean 'data-in-static-attribute'?"),
            (["rule", "zzz"], "error: there is no rule 'zzz'; see `nnx-lint rules`"),
            (["rules", "x"], "error: `nnx-lint rules` takes no arguments"),
            (["-", "a.py"], "error: standard input (-) cannot be checked together with files"),
            (["rulse"], "rulse: no such file or directory; did you mean `nnx-lint rule`?"),
            (["chekc", "a.py"], "chekc: no such file or directory; did you mean `nnx-lint check`?"),
            (["a.py", "gone.py"], "gone.py: no such file or directory\n"),
            ([""], "'': no such file or directory\n"),
            (["a.py", "a.py/b.py"], "a.py/b.py: cannot be read: Not a directory\n"),
            (["a.py", "a" * 300], f"{'a' * 300}: cannot be read: File name too long\n"),
        ],
    )
    def test_says_what_is_wrong_and_exits_with_2(self, lint, write, words, message):
        write("a.py", "x = 1\n")
        code, out, err = lint(*words)
        assert code == 2
        assert message in err
        assert out == ""


class TestCheck:
    def test_clean(self, lint, write):
        write("a.py", "x = 1\n")
        for words in ([], ["."], ["check"], ["check", "a.py"], ["a.py"]):
            assert lint(*words) == (0, "All checks passed!\n", "")

    def test_nothing_to_check_is_no_success_message(self, lint):
        assert lint(".") == (0, "", "warning: no Python files found under the given paths\n")

    def test_findings(self, lint, write):
        write("a.py", "BAD\nRISKY\nPLAIN\n")
        code, out, err = lint("a.py")
        assert (code, err) == (1, "")
        assert out.endswith("Found 3 errors (1 fixable with --fix, 1 more with --unsafe-fixes).\n")

    @pytest.mark.parametrize(
        ("text", "words", "summary"),
        [
            ("PLAIN\n", [], "Found 1 error."),
            ("RISKY\n", [], "Found 1 error (1 fixable with --fix --unsafe-fixes)."),
            ("BAD\nRISKY\n", ["--unsafe-fixes"], "Found 2 errors (2 fixable with --fix)."),
            ("HAND\n", ["--unsafe-fixes"], "Found 1 error."),
        ],
    )
    def test_summary(self, lint, write, text, words, summary):
        write("a.py", text)
        assert lint("a.py", *words)[1].splitlines()[-1] == summary

    def test_options_and_paths_may_be_mixed(self, lint, write):
        write("a.py", "BAD\nPLAIN\n")
        write("b.py", "BAD\n")
        assert concise(lint, "a.py", "--select", "NNX104,NNX105", "b.py", "--select=NNX101", "--ignore", "NNX104") == [
            ("a.py", "NNX101"),
            ("b.py", "NNX101"),
        ]

    def test_rules_that_are_off_by_default(self, lint, write):
        write("a.py", "QUIET\n")
        assert concise(lint, "a.py") == []
        assert concise(lint, "a.py", "--select", "ALL") == [("a.py", "NNX106")]

    def test_findings_are_in_the_order_of_files_and_places(self, lint, write):
        write("b.py", "RISKY; BAD\n")
        write("a.py", "PLAIN\n")
        assert concise(lint, ".") == [("a.py", "NNX104"), ("b.py", "NNX102"), ("b.py", "NNX101")]

    def test_suppressed(self, lint, write):
        write("a.py", "BAD  # nnx: ignore[NNX101]\n")
        assert lint("a.py") == (0, "All checks passed!\n", "")

    def test_exit_zero_and_quiet(self, lint, write):
        write("a.py", "BAD\n")
        code, out, _ = lint("a.py", "--exit-zero", "-q", "--isolated", "--no-cache")
        assert code == 0
        assert out.startswith("NNX101")
        assert "Found" not in out
        write("a.py", "x\n")
        assert lint("a.py", "-q") == (0, "", "")

    def test_json_has_no_summary(self, lint, write):
        write("a.py", "BAD\n")
        code, out, _ = lint("a.py", "--output-format", "json")
        assert code == 1
        assert [entry["code"] for entry in json.loads(out)] == ["NNX101"]
        assert json.loads(lint("--select", "NNX104", "a.py", "--output-format=json")[1]) == []


class TestWhatFails:
    @pytest.mark.parametrize("exit_zero", [[], ["--exit-zero"]])
    def test_a_syntax_error_is_reported_and_the_rest_is_checked(self, lint, write, exit_zero):
        write("a.py", "x = (\n")
        write("b.py", "BAD\n")
        code, out, err = lint(".", *exit_zero)
        assert code == 2
        assert err == "a.py:1:5: syntax error: '(' was never closed\n"
        assert out.endswith("Found 1 error (1 fixable with --fix).\n")

    def test_bytes_that_are_no_text(self, lint, write):
        write("a.py", "BAD\n".encode("utf-16"))
        assert lint("a.py") == (2, "", "a.py: is not a text file\n")

    def test_a_byte_that_cannot_be_decoded_hides_only_its_line(self, lint, write):
        write("a.py", b"BAD\n\nx = '\xff'\n")
        code, out, err = lint("a.py", "--output-format", "concise")
        assert code == 2
        assert out.startswith("a.py:1:1: NNX101")
        assert err == "a.py:3:6: syntax error: byte 0xff cannot be decoded\n"

    def test_a_crash_of_the_engine_names_the_file_and_the_rest_is_checked(self, lint, write):
        write("a.py", "CRASH\n")
        write("b.py", "BAD\n")
        code, out, err = lint(".", "--output-format", "concise", "-q")
        assert code == 2
        assert out.startswith("b.py:1:1: NNX101")
        assert err.startswith("a.py: internal error: ZeroDivisionError: the stub met CRASH (")
        assert len(err.splitlines()) == 1

    def test_an_unreadable_file(self, lint, write):
        path = write("a.py", "x\n")
        (path.parent / "a.py").unlink()
        path.symlink_to("gone.py")
        assert lint("a.py") == (2, "", "a.py: cannot be read: No such file or directory\n")

    @pytest.mark.parametrize("format", FORMATS)
    def test_every_format_leaves_no_doubt_that_something_was_not_checked(self, lint, write, format):
        write("gone.py").unlink()
        write("bytes.py", b"\x00\x01\x02\xff" * 10)
        write("broken.py", "def f(:\n    pass\n")
        code, _, err = lint("--output-format", format, "--quiet", "bytes.py", "broken.py", "gone.py")
        assert code == 2
        assert all(any(line.startswith(f"{name}:") for line in err.splitlines()) for name in ("bytes.py", "gone.py"))
        assert "broken.py:1:7: " in err


class TestFix:
    def test_writes_and_reports_what_is_left(self, lint, write):
        path = write("a.py", "CHAIN\nRISKY\n")
        code, out, _ = lint("a.py", "--fix")
        assert code == 1
        assert path.read_text() == "GOOD\nRISKY\n"
        assert out.endswith("Found 3 errors (2 fixed, 1 remaining).\n")
        code, out, _ = lint("a.py", "--fix", "--unsafe-fixes")
        assert (code, out) == (0, "Found 1 error (1 fixed, 0 remaining).\n")
        assert path.read_text() == "GOOD\nFINE\n"
        assert lint("a.py", "--fix", "--unsafe-fixes") == (0, "All checks passed!\n", "")

    def test_files_without_changes_are_not_touched(self, lint, write):
        path = write("a.py", "PLAIN\n")
        before = path.stat()
        lint("a.py", "--fix")
        assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)

    @pytest.mark.parametrize(
        "data",
        [
            codecs.BOM_UTF8 + "é = BAD\r\n".encode(),
            b"# coding: latin-1\r\n'\xe9'; BAD",
            b"a\rBAD\r",
            "'\u2028'\x0c\nBAD\n\r\n".encode(),
        ],
    )
    def test_encoding_and_newlines_stay(self, lint, write, data):
        path = write("a.py", data)
        assert lint("a.py", "--fix")[0] == 0
        assert path.read_bytes() == data.replace(b"BAD", b"GOOD")

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
    @given(
        st.lists(st.sampled_from(["BAD", "x", "'é'", ""]), min_size=1),
        st.sampled_from(["\n", "\r\n", "\r"]),
        st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "cp1252"]),
        st.sampled_from([0o644, 0o600, 0o755]),
    )
    def test_only_the_edits_change(self, write, lines, newline, encoding, mode):
        text = newline.join(["" if encoding.startswith("utf-8") else f"# coding: {encoding}", *lines])
        path = write("a.py", text.encode(encoding))
        path.chmod(mode)
        main([str(path), "--fix", "-q"])
        assert path.read_bytes() == text.replace("BAD", "GOOD").encode(encoding)
        assert stat.S_IMODE(path.stat().st_mode) == mode

    def test_a_symbolic_link_stays_one(self, lint, write):
        path = write("real.py", "BAD\n")
        link = path.parent / "link.py"
        link.symlink_to("real.py")
        lint("link.py", "--fix")
        assert link.is_symlink()
        assert path.read_text() == "GOOD\n"

    def test_a_failing_write_leaves_the_file_and_no_litter(self, lint, write, monkeypatch):
        path = write("folder/a.py", "BAD\n")

        def fail(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "replace", fail)
        code, _, err = lint("folder", "--fix", "--no-cache")
        assert (code, err) == (2, "folder/a.py: cannot be written: No space left on device\n")
        assert path.read_text() == "BAD\n"
        assert list(path.parent.iterdir()) == [path]

    def test_a_read_only_folder(self, lint, write, monkeypatch):
        path = write("folder/a.py", "BAD\n")

        def fail(**_):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(tempfile, "mkstemp", fail)  # root, which tests may run as, can write to every folder
        code, _, err = lint("folder", "--fix", "--no-cache")
        assert (code, err) == (2, "folder/a.py: cannot be written: Permission denied\n")
        assert path.read_text() == "BAD\n"

    def test_what_could_not_be_written_is_still_found(self, lint, write, monkeypatch):
        write("a.py", "BAD\n")
        write("b.py", "BAD\n")
        ordinary = os.replace

        def fail(old, new):
            if new.endswith("b.py"):
                raise OSError(28, "No space left on device")
            ordinary(old, new)

        monkeypatch.setattr(os, "replace", fail)
        code, out, err = lint(".", "--fix", "--no-cache", "--output-format", "concise")
        assert (code, err) == (2, "b.py: cannot be written: No space left on device\n")
        assert [line.partition(":")[0] for line in out.splitlines()] == [
            "b.py",
            "Found 2 errors (1 fixed, 1 remaining).",
        ]
        code, out, err = lint("b.py", "--add-ignore", "--no-cache")
        assert (code, out, err) == (2, "", "b.py: cannot be written: No space left on device\n")

    def test_a_read_only_file(self, write, monkeypatch):
        path = write("a.py", "BAD\n")
        monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(PermissionError, match="the file is read-only"):
            rewrite(str(path), b"")
        assert path.read_text() == "BAD\n"

    def test_a_fix_that_breaks_the_file(self, lint, write):
        path = write("a.py", "BREAK\n")
        code, _, err = lint("a.py", "--fix")
        assert code == 2
        assert err.startswith("a.py: internal error: the fixes for NNX101 do not parse")
        assert path.read_text() == "BREAK\n"


class TestDiff:
    def test_prints_and_changes_nothing(self, lint, write):
        path = write("a.py", "x\nCHAIN\n")
        code, out, err = lint(".", "--diff")
        assert code == 1
        assert out == "--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n x\n-CHAIN\n+GOOD\n"
        assert err == "Would fix 2 errors.\n"
        assert path.read_text() == "x\nCHAIN\n"

    def test_wins_over_fix(self, lint, write):
        path = write("a.py", "BAD\n")
        assert lint("a.py", "--diff", "--fix", "-q")[0] == 1
        assert path.read_text() == "BAD\n"

    def test_findings_without_a_fix_are_no_change(self, lint, write):
        write("a.py", "PLAIN\nRISKY\n")
        assert lint("a.py", "--diff") == (0, "", "Nothing to fix.\n")
        assert lint("a.py", "--diff", "--unsafe-fixes")[0] == 1


class TestStdin:
    @pytest.fixture
    def pipe(self, monkeypatch):
        def pipe(data):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

        return pipe

    def test_check(self, lint, pipe):
        pipe(b"BAD\n")
        code, out, _ = lint("-", "--output-format", "concise")
        assert code == 1
        assert out.startswith("<stdin>:1:1: NNX101")

    def test_filename(self, lint, pipe):
        pipe(b"x = (\n")
        assert lint("check", "-", "--stdin-filename", "src/a.py")[2].startswith("src/a.py:1:5: syntax error")

    def test_fix_writes_the_text_and_reports_aside(self, lint, pipe):
        pipe(codecs.BOM_UTF8 + b"BAD\r\nPLAIN\r\n")
        code, out, err = lint("-", "--fix", "--output-format", "concise")
        assert code == 1
        assert out == "\ufeffGOOD\r\nPLAIN\r\n"
        assert err.splitlines() == [
            "<stdin>:2:1: NNX104 [static-container-filled] `PLAIN` is wrong",
            "Found 2 errors (1 fixed, 1 remaining).",
        ]

    def test_fix_of_a_broken_text_gives_it_back(self, lint, pipe):
        pipe(b"x = (\n")
        code, out, _ = lint("-", "--fix")
        assert (code, out) == (2, "x = (\n")

    def test_diff(self, lint, pipe):
        pipe(b"BAD\n")
        assert lint("-", "--diff", "-q")[1] == "--- <stdin>\n+++ <stdin>\n@@ -1 +1 @@\n-BAD\n+GOOD\n"


class TestColour:
    @pytest.mark.parametrize(
        ("environment", "terminal", "coloured"),
        [
            ({}, False, False),
            ({"TERM": "xterm"}, True, True),
            ({"TERM": "dumb"}, True, False),
            ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
            ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
            ({"FORCE_COLOR": "1"}, False, True),
            ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ],
    )
    def test_on_a_terminal_unless_the_environment_says_otherwise(
        self, lint, write, monkeypatch, environment, terminal, coloured
    ):
        write("a.py", "BAD\n")
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
        assert ("\033[" in lint("a.py")[1]) is coloured


class TestDiscovery:
    def test_walks_without_what_nobody_writes_by_hand(self, write):
        for name in (
            "b.py",
            "a/c.py",
            "a/.hidden/x.py",
            ".hidden.py",
            "data.txt",
            "stub.pyi",
            *(f"{folder}/x.py" for folder in EXCLUDED if folder != ".*"),
        ):
            write(name, "")
        assert discover(["."]).files == ["a/c.py", "b.py"]

    def test_named_paths_are_always_read(self, write):
        for name in ("build/x.py", ".venv/lib/y.py", "script", ".hidden.py"):
            write(name, "")
        found = discover(["build", ".venv", "script", ".hidden.py"])
        assert found.files == ["build/x.py", ".venv/lib/y.py", "script", ".hidden.py"]
        assert found.problems == []

    def test_each_file_once(self, write, tmp_path):
        write("a/b.py", "")
        assert discover(["a/b.py", "a", ".", "./a", str(tmp_path / "a" / "b.py")]).files == ["a/b.py"]

    def test_links_in_a_circle_end(self, write, tmp_path):
        write("a/b.py", "")
        (tmp_path / "a" / "loop").symlink_to("..", target_is_directory=True)
        (tmp_path / "a" / "itself.py").symlink_to("itself.py")
        assert discover(["."]).files == ["a/b.py"]

    def test_a_file_named_like_a_python_file_but_a_folder(self, write):
        write("odd.py/inner.py", "")
        assert discover(["."]).files == ["odd.py/inner.py"]

    def test_import_roots_are_above_packages(self, write, tmp_path):
        for name in ("src/p/__init__.py", "src/p/q/__init__.py", "src/p/q/m.py", "script/s.py"):
            write(name, "")
        roots = import_roots(["src/p/q/m.py", "script/s.py"], [])
        assert roots == (str(tmp_path / "script"), str(tmp_path / "src"))
        assert import_roots(["src/p/q/m.py", "script/s.py"], ["script"]) == roots
        assert import_roots(["src/p/q/m.py", "script/s.py"], ["."]) == (str(tmp_path),)
