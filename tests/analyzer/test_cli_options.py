"""The command line and its configuration: flags, settings, what is shown, known findings, completion."""

import io
import json
import shutil
import subprocess
import sys

import pytest

import stub_engine
from nnx_lint.cli import COMMANDS, UsageError
from nnx_lint.cli.arguments import parse
from nnx_lint.config.registry import BY_NAME, LINE, OPTIONS


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "nnx_lint.engine", stub_engine)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    for name in ("NO_COLOR", "FORCE_COLOR", "VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def pipe(monkeypatch):
    def pipe(text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return pipe


def concise(lint, *words):
    """The findings as (path, code)."""
    _, out, _ = lint(*words, "--output-format", "concise", "-q")
    return [(line.split(":")[0], line.split()[1]) for line in out.splitlines()]


class TestFlags:
    CHECK = tuple(option for option in OPTIONS if LINE in option.places)

    @pytest.mark.parametrize(
        ("words", "values", "rest"),
        [
            (["a", "--select", "X,Y", "b", "--select=Z"], {"select": ("X", "Y", "Z")}, ["a", "b"]),
            (["--fix", "--no-fix"], {"fix": False}, []),
            (["--no-cache"], {"cache": False}, []),
            (["-n", "-qe"], {"cache": False, "quiet": True, "exit-zero": True}, []),
            (["-j4"], {"jobs": 4}, []),
            (["-j", "4"], {"jobs": 4}, []),
            (["-qj=4"], {"quiet": True, "jobs": 4}, []),
            (["--jobs", "2", "--jobs=4"], {"jobs": 4}, []),
            (["--", "--fix", "-q"], {}, ["--fix", "-q"]),
            (["-", "--stdin-filename", "-x"], {"stdin-filename": "-x"}, ["-"]),
            (["--config", "a=[1, 2]", "--config", "b.toml"], {"config": ("a=[1, 2]", "b.toml")}, []),
            (["--per-file-ignores", "a:X,b:Y"], {"per-file-ignores": (("a", ("X",)), ("b", ("Y",)))}, []),
        ],
    )
    def test_are_read(self, words, values, rest):
        assert parse(words, self.CHECK) == (values, rest)

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--fx"], r"^unknown option --fx; did you mean --fix\?$"),
            (["-z"], r"^unknown option -z; see nnx-lint --help$"),
            (["-qz"], r"^unknown option -qz; see nnx-lint --help$"),
            (["--fix=yes"], r"^--fix takes no value$"),
            (["--jobs"], r"^--jobs needs a value: N$"),
            (["--jobs="], r"^--jobs needs a value: N$"),
            (["-j", "x"], r"^-j must be an integer of at least 1, not 'x'$"),
            (["--target", "flx"], r"^--target must be flax-VERSION or nnxkit, such as flax-0.12, not 'flx'$"),
            (
                ["--output-format", "jsn"],
                r"^--output-format must be one of full, .*, not 'jsn'; did you mean 'json'\?$",
            ),
            (
                ["--per-file-ignores", "tests"],
                r"^--per-file-ignores must be PATTERN:RULE, such as tests/\*:NNX101, not",
            ),
            (["--rules", "x"], r"^--rules is no flag of this command: `nnx-lint config rules` says where"),
        ],
    )
    def test_wrong_ones(self, words, message):
        with pytest.raises(UsageError, match=message):
            parse(words, self.CHECK)

    @pytest.mark.parametrize("option", [option for option in CHECK if option.flags], ids=lambda option: option.name)
    def test_every_flag_is_understood(self, option):
        sample = {
            "jobs": "3",
            "target": "nnxkit",
            "output-format": "json",
            "per-file-ignores": "a:NNX1",
            "extend-per-file-ignores": "a:NNX1",
        }
        for flag in option.flags:
            words = [flag, *([sample.get(option.name, "x")] if option.kind.metavar else [])]
            assert list(parse(words, self.CHECK).values) == [option.name]

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--diff", "--add-ignore"], "--diff and --add-ignore cannot be combined"),
            (["--fix", "--update-baseline"], "--fix and --update-baseline cannot be combined"),
            (["--watch", "--fix"], "--watch cannot be combined with --fix"),
            (["--watch", "-"], "--watch cannot be combined with standard input"),
            (["--statistics", "--output-format", "sarif"], "there are no statistics in the format sarif"),
            (
                ["--update-baseline"],
                "--update-baseline needs a file to write: --baseline FILE, or the option `baseline`",
            ),
            (["--baseline", "gone.json"], "gone.json: there is no such baseline; write it with --update-baseline"),
            (["--config", "gone.toml"], "gone.toml: cannot be read: No such file or directory"),
            (["--config", "selct=1"], "--config selct=1: unknown option `selct`; did you mean `select`?"),
            (["config", "selct"], "there is no option 'selct'; did you mean 'select'?"),
            (["generate-shell-completion", "bsh"], "takes one of bash, zsh, fish; did you mean bash?"),
        ],
    )
    def test_what_makes_no_sense(self, lint, write, words, message):
        write("a.py", "BAD\n")
        code, out, err = lint(*words)
        assert (code, out) == (2, "")
        assert err.startswith("error: ")
        assert message in err
        assert err.count("\n") == 1


class TestConfiguration:
    def test_each_file_by_its_nearest(self, lint, write):
        write("nnx-lint.toml", "select = ['NNX101']")
        write("a.py", "BAD\nPLAIN\n")
        write(
            "p/pyproject.toml", "[tool.nnx-lint]\nselect = ['NNX104']\n[tool.nnx-lint.per-file-ignores]\n'b.py'=['ALL']"
        )
        write("p/a.py", "BAD\nPLAIN\n")
        write("p/b.py", "BAD\nPLAIN\n")
        assert concise(lint) == [("a.py", "NNX101"), ("p/a.py", "NNX104")]
        assert concise(lint, "p/a.py", "a.py") == [("p/a.py", "NNX104"), ("a.py", "NNX101")]
        assert concise(lint, "p/a.py", "--isolated") == [("p/a.py", "NNX101"), ("p/a.py", "NNX104")]

    def test_a_mistake_in_it_ends_the_run(self, lint, write):
        write("a.py", "BAD\n")
        write("p/nnx-lint.toml", "slect = []")
        write("p/a.py", "BAD\n")
        assert lint("a.py")[0] == 1
        message = "error: p/nnx-lint.toml:1: unknown option `slect`; did you mean `select`?\n"
        assert lint(".") == lint("p/a.py") == (2, "", message)

    def test_of_the_run_is_that_of_the_current_folder(self, lint, write, monkeypatch):
        write("nnx-lint.toml", "output-format = 'json'")
        write("p/nnx-lint.toml", "output-format = 'concise'")
        write("p/a.py", "BAD\n")
        assert json.loads(lint("p/a.py")[1])
        monkeypatch.chdir("p")
        assert lint("a.py")[1].startswith("a.py:1:1: NNX101")

    def test_of_the_run_is_that_of_paths_elsewhere(self, lint, write, monkeypatch, tmp_path):
        write("p/nnx-lint.toml", "output-format = 'concise'")
        path = write("p/a.py", "BAD\n")
        write("other/nnx-lint.toml", "output-format = 'json'")
        monkeypatch.chdir("other")
        assert lint(str(path))[1].startswith(f"{path}:1:1: NNX101")

    def test_fix_by_default_and_its_opposite(self, lint, write):
        write("nnx-lint.toml", "fix = true")
        path = write("a.py", "BAD\n")
        lint("a.py", "--no-fix")
        assert path.read_text() == "BAD\n"
        lint("a.py")
        assert path.read_text() == "GOOD\n"

    def test_of_standard_input_is_that_of_its_name(self, lint, write, pipe):
        write("p/nnx-lint.toml", "select = ['NNX104']")
        pipe("BAD\nPLAIN\n")
        assert concise(lint, "--stdin-filename", "p/a.py") == [("p/a.py", "NNX104")]

    def test_standard_input_may_be_excluded(self, lint, write, pipe):
        write("nnx-lint.toml", "extend-exclude = ['p']\nforce-exclude = true")
        pipe("BAD\n")
        assert lint("-", "--stdin-filename", "p/a.py") == (0, "", "")
        pipe("BAD\n")
        assert lint("-", "--stdin-filename", "p/a.py", "--fix") == (0, "BAD\n", "")


class TestWhatIsShown:
    def test_files(self, lint, write):
        write("a.py", "BAD\n")
        write("p/b.ipynb")
        assert lint("--show-files") == (0, "a.py\np/b.ipynb\n", "")
        assert lint("--show-files", "a.py", "gone.py") == (2, "a.py\n", "gone.py: no such file or directory\n")

    def test_settings(self, lint, write):
        write("base.toml", "select = ['NNX101', 'NNX104']")
        write("nnx-lint.toml", "extend = 'base.toml'\nrules.NNX104 = 'info'\n[per-file-ignores]\n'a.py' = ['NNX101']")
        write("requirements.txt", "flax==0.12.1")
        write("a.py")
        code, out, err = lint("--show-settings", "a.py")
        assert (code, err) == (0, "")
        lines = out.splitlines()
        assert lines[:3] == [
            "# settings of a.py",
            "# configuration: nnx-lint.toml, which extends base.toml",
            "# runs on: flax-0.12.1 (requirements.txt)",
        ]
        assert 'select = ["NNX101", "NNX104"]' in lines
        assert 'per-file-ignores = {"a.py" = ["NNX101"]}' in lines
        assert [line.split("  #")[0] for line in lines[lines.index("[rules]") + 1 :]] == ['NNX104 = "info"']

    def test_the_settings_are_a_configuration(self, lint, write):
        write("a.py")
        write("shown.toml", lint("--show-settings", "a.py")[1])
        before = lint("--show-settings", "a.py")[1].splitlines()[3:]
        assert lint("--show-settings", "a.py", "--config", "shown.toml")[1].splitlines()[3:] == before

    def test_no_file(self, lint):
        assert lint("--show-settings") == (2, "", "no file to show the settings of\n")

    def test_options(self, lint):
        code, out, err = lint("config")
        assert (code, err) == (0, "")
        assert [line.split()[0] for line in out.splitlines()[: len(OPTIONS)]] == list(BY_NAME)

    @pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
    def test_each_option(self, lint, option):
        code, out, _ = lint("config", option.name)
        assert code == 0
        assert out.startswith(f"{option.name}\n\n{option.brief}\n")
        assert f"Type:     {option.kind.name}"[:60] in out
        assert "Default:  " in out
        assert all(flag in out for flag in option.flags)

    def test_the_schema(self, lint):
        described = json.loads(lint("config", "--schema")[1])
        assert "select" in described["properties"]


class TestKnownFindings:
    def test_a_baseline(self, lint, write, tmp_path):
        write("nnx-lint.toml", "baseline = 'known.json'")
        path = write("a.py", "def f():\n    BAD\n")
        assert lint("--update-baseline") == (0, "Wrote 1 error to known.json.\n", "")
        assert lint() == (0, "All checks passed!\n", "")
        path.write_text("\n\ndef f():\n    BAD\n    PLAIN\n")
        assert concise(lint) == [("a.py", "NNX104")]
        path.write_text("x\n")
        code, _, err = lint()
        assert code == 0
        assert "the baseline names a finding that is not there any more: a.py: NNX101 in f: `BAD`\n" in err
        lint("--update-baseline")
        assert lint() == (0, "All checks passed!\n", "")

    def test_known_findings_are_not_fixed(self, lint, write):
        path = write("a.py", "BAD\n")
        lint("--baseline", "known.json", "--update-baseline")
        path.write_text("BAD\n\n\nCHAIN\n")
        lint("--baseline", "known.json", "--fix")
        assert path.read_text().startswith("BAD\n")
        assert "CHAIN" not in path.read_text()

    def test_a_baseline_is_not_written_from_half_a_run(self, lint, write, tmp_path):
        write("a.py", "BAD\n")
        write("b.py", "CRASH\n")
        code, _, err = lint("--baseline", "known.json", "--update-baseline")
        assert code == 2
        assert "error: the baseline is not written" in err
        assert not (tmp_path / "known.json").exists()
        code, _, err = lint("--baseline", "known.json", "--update-baseline", "a.py", "gone.py")
        assert (code, err.count("gone.py: no such file")) == (2, 1)
        assert not (tmp_path / "known.json").exists()

    def test_nothing_is_called_stale_after_half_a_run(self, lint, write):
        path = write("a.py", "BAD\n")
        lint("--baseline", "known.json", "--update-baseline")
        path.write_text("x\n")
        assert "not there any more" in lint("--baseline", "known.json")[2]
        write("b.py", "CRASH\n")
        assert "not there any more" not in lint("--baseline", "known.json")[2]

    def test_ignores_are_added(self, lint, write):
        path = write("a.py", "BAD\nx\nPLAIN\n")
        assert lint("--add-ignore") == (0, "Silenced 2 errors.\n", "")
        assert path.read_text().splitlines()[1] == "x"
        assert path.read_text().count("# nnx: ignore[") == 2
        assert lint() == (0, "All checks passed!\n", "")
        assert lint("--add-ignore") == (0, "Nothing to silence.\n", "")

    def test_ignores_are_added_to_standard_input(self, lint, pipe):
        pipe("BAD\n")
        code, out, err = lint("-", "--add-ignore")
        assert (code, err) == (0, "Silenced 1 error.\n")
        assert out.startswith("BAD  # nnx: ignore[")
        pipe("x\n")
        assert lint("-", "--add-ignore")[:2] == (0, "x\n")


class TestHowARunEnds:
    def test_exit_non_zero_on_fix(self, lint, write):
        write("a.py", "BAD\n")
        assert lint("--fix", "--exit-non-zero-on-fix")[0] == 1
        assert lint("--fix", "--exit-non-zero-on-fix")[0] == 0
        write("a.py", "BAD\n")
        assert lint("--fix", "--exit-non-zero-on-fix", "--exit-zero")[0] == 0

    @pytest.mark.parametrize("level", ["error", "warning", "info"])
    def test_every_finding_counts_whatever_its_level(self, lint, write, level):
        write("nnx-lint.toml", f"rules.ALL = '{level}'")
        write("a.py", "BAD\n")
        assert lint()[0] == 1

    def test_statistics_instead_of_findings(self, lint, write):
        write("a.py", "BAD\nBAD\nPLAIN\n")
        code, out, _ = lint("--statistics")
        assert code == 1
        assert "2" in out.splitlines()[0]
        assert "NNX101" in out.splitlines()[0]
        assert "a.py" not in out


class TestClean:
    def test_removes_the_cache(self, lint, write, tmp_path):
        write("a.py", "BAD\n")
        assert lint("clean") == (0, "Removed 0 files.\n", "")
        before = lint()
        assert (tmp_path / ".nnx_lint_cache").is_dir()
        assert lint("clean") == (0, "Removed 1 file.\n", "")
        assert not (tmp_path / ".nnx_lint_cache").exists()
        assert lint() == before

    def test_the_cache_of_a_project_lies_beside_its_configuration(self, lint, write, monkeypatch, tmp_path):
        write("nnx-lint.toml", "cache-dir = 'kept'")
        write("p/a.py", "BAD\n")
        monkeypatch.chdir("p")
        lint()
        assert (tmp_path / "kept").is_dir()
        assert lint("clean", "--isolated") == (0, "Removed 0 files.\n", "")
        assert lint("clean") == (0, "Removed 1 file.\n", "")

    def test_what_it_does_not_understand(self, lint, write):
        write("nnx-lint.toml", "slect = []")
        assert lint("clean")[2] == "error: nnx-lint.toml:1: unknown option `slect`; did you mean `select`?\n"
        assert lint("clean", "p")[2].startswith("error: `nnx-lint clean` takes no paths")


class TestVerbosity:
    def test_verbose_says_what_was_read(self, lint, write):
        write("nnx-lint.toml", "select = ['NNX101']")
        write("a.py", "x\n")
        code, out, err = lint("-v")
        assert (code, out) == (0, "All checks passed!\n")
        assert err == "verbose: read the configuration nnx-lint.toml\nverbose: checked 1 file\n"

    def test_verbose_says_why_there_is_no_cache(self, lint, write):
        write("a.py", "x\n")
        write("file", "")
        assert "file/cache: the cache cannot be written" in lint("-v", "--cache-dir", "file/cache")[2]
        assert lint("--cache-dir", "file/cache") == (0, "All checks passed!\n", "")

    def test_quiet_says_nothing_but_what_is_found(self, lint):
        assert lint("-q") == (0, "", "")
        assert lint() == (0, "", "warning: no Python files found under the given paths\n")


class TestWatch:
    def test_it_looks_at_all_that_decides(self, lint, write, monkeypatch, tmp_path):
        write("nnx-lint.toml", "baseline = 'known.json'")
        write("known.json", '{"format": 1, "findings": []}')
        write("a.py", "BAD\n")
        seen = []

        def watch(look, check, stream):
            seen.append(set(look()))
            check(None)
            write("nnx-lint.toml", "slect = []")  # half written
            seen.append(set(look()))
            check(frozenset(["nnx-lint.toml"]))
            write("nnx-lint.toml", "select = ['NNX104']")
            write("b.py", "PLAIN\n")
            seen.append(set(look()))
            check(frozenset(["b.py"]))

        monkeypatch.setattr("nnx_lint.watch.watch", watch)
        code, out, err = lint("--watch", "--output-format", "concise")
        assert code == 0
        files = [str(tmp_path / name) for name in ("nnx-lint.toml", "known.json")]
        assert {"a.py", *files} <= seen[0] == seen[1]
        assert {"a.py", "b.py"} <= seen[2]
        assert [line.split()[:2] for line in out.splitlines() if "NNX" in line] == [
            ["a.py:1:1:", "NNX101"],
            ["b.py:1:1:", "NNX104"],
        ]
        assert err == "error: nnx-lint.toml:1: unknown option `slect`; did you mean `select`?\n"


class TestCompletion:
    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_every_command_and_flag_is_offered(self, lint, shell):
        code, out, err = lint("generate-shell-completion", shell)
        assert (code, err) == (0, "")
        assert all(command in out for command in COMMANDS)
        for option in OPTIONS:
            if LINE in option.places:
                assert (f"-l {option.flag[2:]}" if shell == "fish" else option.flag) in out

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_the_shell_reads_it(self, lint, write, shell):
        program = shutil.which(shell)
        if program is None:
            pytest.skip(f"{shell} is not here")
        path = write("completion", lint("generate-shell-completion", shell)[1])
        done = subprocess.run([program, "-n", str(path)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")

    @pytest.mark.parametrize(
        ("line", "offered"),
        [
            ("--exit-n", {"--exit-non-zero-on-fix"}),
            ("check --output-format js", {"json", "json-lines"}),
            ("--output-format=js", {"--output-format=json", "--output-format=json-lines"}),
            ("--select NNX101,NNX10", {"NNX101,NNX102"}),
            ("rule NNX10", {"NNX101", "NNX102", "NNX103"}),
            ("graph --format ", {"text", "mermaid", "svg", "html", "json"}),
        ],
    )
    def test_fish_completes(self, lint, write, line, offered):
        fish = shutil.which("fish")
        if fish is None:
            pytest.skip("fish is not here")
        path = write("completion", lint("generate-shell-completion", "fish")[1])
        program = f"source {path}; complete -C 'nnx-lint {line}'"
        done = subprocess.run([fish, "--no-config", "-c", program], capture_output=True, text=True, check=True)
        assert offered <= {found.partition("\t")[0] for found in done.stdout.splitlines()}

    @pytest.mark.parametrize(
        ("words", "offered"),
        [
            (["--exit-n"], {"--exit-non-zero-on-fix"}),
            (["check", "--output-format", "js"], {"json", "json-lines"}),
            (["rule", "NNX10"], {"NNX101", "NNX102", "NNX103"}),
            (["gener"], {"generate-shell-completion"}),
            (["generate-shell-completion", ""], {"bash", "zsh", "fish"}),
            (["config", "sel"], {"select"}),
            (["--output-format", "=", "js"], {"json", "json-lines"}),
            (["--output-format", "="], {"json", "full"}),
            (["--select", "NNX101,NNX10"], {"NNX101,NNX102"}),
            (["graph", "--f"], {"--format"}),
            (["graph", "--format", ""], {"text", "mermaid", "svg", "html", "json"}),
            (["graph", "completion w"], {"completion with spaces.py"}),
        ],
    )
    def test_bash_completes(self, lint, write, words, offered):
        bash = shutil.which("bash")
        if bash is None:
            pytest.skip("bash is not here")
        write("completion with spaces.py")
        path = write("completion", lint("generate-shell-completion", "bash")[1])
        line = " ".join(f"'{word}'" for word in ["nnx-lint", *words])
        show = "printf '%s\\n' \"${COMPREPLY[@]}\""
        program = f"source {path}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _nnx_lint; {show}"
        done = subprocess.run([bash, "-c", program], capture_output=True, text=True, check=True)
        found = done.stdout.splitlines()
        assert offered <= set(found)
        assert all(word.startswith(words[-1].removeprefix("=")) for word in found)
