"""Configuration: which file counts, what it says, how mistakes in it are reported, and what holds for a file."""

import contextlib
import json
import tomllib

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_lint.config.kinds import PerFile, Switch, WrongValue
from nnx_lint.config.reading import ConfigError, Document, find, load, setting
from nnx_lint.config.registry import BY_NAME, EXCLUDED, FILE, LINE, OPTIONS
from nnx_lint.config.schema import literal, schema
from nnx_lint.config.settings import Configuration
from nnx_lint.selection import SelectionError
from nnx_rules.registry import Severity
from nnx_rules.rules import REGISTRY

FIRST, SECOND = REGISTRY.get("NNX101"), REGISTRY.get("NNX102")


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def write(write):
    """As for all tests, with the path as the text that configuration uses."""
    return lambda name, text="": str(write(name, text))


@pytest.fixture
def configuration(tmp_path):
    def configuration(**flags):
        values = {name.replace("_", "-"): value for name, value in flags.items()}
        return Configuration(Document(None, str(tmp_path), values))

    return configuration


def codes(configuration, path):
    return set(configuration.options_for(path).severities)


class TestTheTableOfOptions:
    @pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
    def test_every_option_is_complete(self, option):
        assert option.places
        assert len(option.brief) <= 80
        assert not option.brief.endswith(".")
        assert option.kind.name
        assert (option.default is None) == bool(option.unset)
        assert option.kind.metavar or isinstance(option.kind, Switch) or LINE not in option.places
        assert bool(option.off) == (option.default is True and LINE in option.places)

    def test_names_and_flags_are_unique(self):
        flags = [flag for option in OPTIONS for flag in option.flags]
        assert len(BY_NAME) == len(OPTIONS)
        assert len(set(flags)) == len(flags)

    @pytest.mark.parametrize(
        "option", [option for option in OPTIONS if option.default is not None], ids=lambda o: o.name
    )
    def test_defaults_are_values_that_the_option_may_have(self, option):
        text = f"value = {literal(option.default)}"
        option.kind.read(tomllib.loads(text)["value"])

    @pytest.mark.parametrize(
        ("text", "valid"),
        [
            ("", True),
            ("select = ['NNX1']\nfix = true\njobs = 2\n[rules]\nNNX1 = 'off'\n[per-file-ignores]\n'a' = ['ALL']", True),
            ("slect = []", False),
            ("show-files = true", False),
            ("select = 'NNX1'", False),
            ("fix = 1", False),
            ("jobs = 0", False),
            ("output-format = 'fulll'", False),
            ("rules.NNX1 = 'warn'", False),
            ("per-file-ignores.a = 'ALL'", False),
            ("baseline = ''", False),
        ],
    )
    def test_the_schema_accepts_what_is_read(self, write, text, valid):
        path = write("nnx-lint.toml", text)
        described = json.loads(json.dumps(schema()))
        jsonschema.Draft7Validator.check_schema(described)
        assert jsonschema.Draft7Validator(described).is_valid(tomllib.loads(text)) is valid
        if valid:
            load(path)
        else:
            with pytest.raises(ConfigError, match=r"^nnx-lint\.toml:1: "):
                load(path)

    def test_the_schema_describes_what_a_file_may_say(self):
        described = json.loads(json.dumps(schema()))
        assert set(described["properties"]) == {option.name for option in OPTIONS if FILE in option.places}
        assert described["additionalProperties"] is False
        assert described["properties"]["rules"]["additionalProperties"]["enum"] == ["error", "warning", "info", "off"]
        assert described["properties"]["exclude"]["default"] == list(EXCLUDED)


class TestTheNearestFile:
    def test_own_file_wins_over_pyproject(self, write, tmp_path):
        write("nnx-lint.toml", "target = 'nnxkit'")
        write("pyproject.toml", "[tool.nnx-lint]\ntarget = 'flax-0.11'")
        (document,) = find(str(tmp_path))
        assert document.values == {"target": "nnxkit"}

    def test_a_pyproject_without_our_table_is_none(self, write, tmp_path):
        write("pyproject.toml", "[project]\nname = 'nnx-lint'")
        assert find(str(tmp_path)) == ()

    def test_each_folder_has_the_nearest_and_inherits_nothing(self, write, configuration):
        write("pyproject.toml", "[tool.nnx-lint]\nselect = ['NNX101']")
        write("a/pyproject.toml", "[project]\nname = 'a'")
        write("b/nnx-lint.toml", "ignore = ['NNX102']")
        found = configuration()
        assert codes(found, "x.py") == codes(found, "a/deep/x.py") == {"NNX101"}
        assert "NNX102" not in codes(found, "b/c/x.py")
        assert "NNX103" in codes(found, "b/c/x.py")

    def test_isolated_reads_none(self, write, configuration):
        write("nnx-lint.toml", "select = ['NNX101']")
        assert codes(configuration(isolated=True), "x.py") > {"NNX101", "NNX102"}


class TestExtend:
    def test_what_the_file_gives_replaces_what_the_other_gives(self, write, configuration, tmp_path):
        write("base.toml", "target = 'nnxkit'\nselect = ['NNX1']\nexclude = ['a']")
        path = write("p/nnx-lint.toml", "extend = '../base.toml'\nexclude = ['b']\nextend-exclude = ['c']")
        base, own = load(path)
        assert base.values["select"] == ("NNX1",)
        assert own.values["exclude"] == ("b",)
        settings = configuration().at(str(tmp_path / "p"))
        assert settings.get("target") == "nnxkit"
        assert settings.get("exclude") == ("b",)
        assert [name for name in "abc" if settings.excludes(str(tmp_path / "p" / name), True)] == ["b", "c"]

    def test_names_are_excluded_wherever_a_walk_begins(self, write, configuration, tmp_path):
        write("p/base.toml", "extend-exclude = ['gen', '/top', 'x/deep']")
        write("q/nnx-lint.toml", "extend = '../p/base.toml'")
        settings = configuration().at(str(tmp_path / "q"))
        names = [".venv", "build", "gen", "top", "x/deep", "src"]
        assert [name for name in names if settings.excludes(str(tmp_path / "q" / name), True)] == names[:3]
        # a file that is named may lie anywhere
        assert not settings.excludes_named(str(tmp_path.parent / ".build" / "gen" / "a.py"), False)

    def test_rules_add_up(self, write, configuration):
        write("base.toml", "select = ['NNX101', 'NNX102']")
        write("nnx-lint.toml", "extend = 'base.toml'\nignore = ['NNX101']\nextend-select = ['NNX103']")
        assert codes(configuration(), "x.py") == {"NNX102", "NNX103"}

    def test_paths_are_relative_to_the_file_that_names_them(self, write, configuration, tmp_path):
        write("base/base.toml", "baseline = 'known.json'\nsrc = ['lib']")
        write("p/pyproject.toml", "[tool.nnx-lint]\nextend = '../base/base.toml'")
        settings = configuration().at(str(tmp_path / "p"))
        assert settings.location("baseline") == str(tmp_path / "base" / "known.json")
        assert settings.locations("src") == [str(tmp_path / "base" / "lib")]
        assert settings.location("cache-dir") == str(tmp_path / "p" / ".nnx_lint_cache")

    def test_a_circle_is_an_error(self, write):
        path = write("a.toml", "extend = 'b.toml'")
        write("b.toml", "extend = 'a.toml'")
        with pytest.raises(ConfigError, match=r"^b\.toml: `extend` leads in a circle: a\.toml -> b\.toml -> a\.toml$"):
            load(path)

    def test_a_missing_file_names_who_asked(self, write):
        path = write("a.toml", "extend = 'gone.toml'")
        with pytest.raises(ConfigError, match=r"^a\.toml: extends gone\.toml: cannot be read: No such file"):
            load(path)


class TestMistakes:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("slect = ['NNX1']", ":1: unknown option `slect`; did you mean `select`?"),
            ("\n\nzzzz = 1", ":3: unknown option `zzzz`; see `nnx-lint config`"),
            ("show-files = true", ":1: `show-files` is a flag of the command line, not an option of a configuration"),
            ("select = 'NNX1'", ":1: `select` must be a list of rules, not 'NNX1'"),
            ("select = [1]", ":1: `select` must be a list of rules, not this list"),
            ("fix = 1", ":1: `fix` must be true or false, not 1"),
            ("jobs = true", ":1: `jobs` must be an integer of at least 1, not true"),
            ("jobs = 0", ":1: `jobs` must be an integer of at least 1, not 0"),
            ("target = 'falx-0.12'", ":1: `target` must be flax-VERSION or nnxkit, such as flax-0.12, not 'falx-0.12'"),
            ("output-format = 'fulll'", ", sarif, not 'fulll'; did you mean 'full'?"),
            ("select = ['NNX1001']", ":1: no rule matches 'NNX1001'; did you mean 'NNX101'?"),
            (
                "fix = true\n[rules]\nNNX101 = 'warn'",
                ":3: `NNX101` in `rules` must be one of error, warning, info, off",
            ),
            ("[rules]\nNNX1x = 'off'", ":2: no rule matches 'NNX1x'"),
            ("rules.NNX1x = 'off'", ":1: no rule matches 'NNX1x'"),
            ("[per-file-ignores]\n'a.py' = ['ALL']\n'tests/*' = ['no']", ":3: no rule matches 'no'"),
            ("[per-file-ignores]\n'tests/*' = 'ALL'", ":2: `tests/*` in `per-file-ignores` must be a list of rules"),
            ("rules = 1", ":1: `rules` must be a table from rules to error, warning, info, off, not 1"),
            ("select = [}", ":1:11: is not valid TOML: Invalid value"),
        ],
    )
    def test_are_reported_with_place_and_mend(self, write, text, message):
        path = write("nnx-lint.toml", text)
        with pytest.raises(ConfigError, match=r"^nnx-lint\.toml") as caught:
            load(path)
        assert message in str(caught.value)

    def test_the_line_in_a_pyproject(self, write):
        path = write(
            "pyproject.toml",
            "[project]\nselct = 1\n\n[tool.other]\nselct = 2\n[tool.nnx-lint]\n# selct\nignore = [\n]\nselct = 3\n",
        )
        with pytest.raises(ConfigError, match=r"^pyproject\.toml:10: unknown option `selct`; did you mean `select`\?$"):
            load(path)

    def test_what_is_no_text(self, tmp_path):
        path = tmp_path / "nnx-lint.toml"
        path.write_bytes(b"fix = true\n# \xff\n")
        with pytest.raises(ConfigError, match=r"^nnx-lint\.toml:2: is not valid UTF-8$"):
            load(str(path))

    def test_a_pyproject_that_was_named_but_says_nothing(self, write):
        path = write("pyproject.toml", "[project]\nname = 'a'")
        with pytest.raises(ConfigError, match=r"^pyproject\.toml: has no table \[tool\.nnx-lint\]$"):
            load(path)

    @pytest.mark.parametrize("name", ["nnx_lint", "nnxlint", "'NNX-Lint'"])
    def test_a_table_that_is_called_otherwise(self, write, tmp_path, name):
        write("pyproject.toml", f"[project]\nname = 'nnx_lint'\n[tool.{name}]\nselect = ['NNX101']\n")
        with pytest.raises(ConfigError, match=r"^pyproject\.toml:3: the table must be called \[tool\.nnx-lint\]$"):
            find(str(tmp_path))

    def test_a_name_that_is_no_table(self, write, tmp_path):
        write("pyproject.toml", "[tool]\nnnx-lint = 3\n")
        with pytest.raises(ConfigError, match=r"^pyproject\.toml: has no table \[tool\.nnx-lint\]$"):
            find(str(tmp_path))

    def test_the_table_of_a_pyproject_in_our_own_file(self, write):
        path = write("nnx-lint.toml", "# ours\n[tool.nnx-lint]\nselect = ['NNX101']\n")
        with pytest.raises(ConfigError, match=r"^nnx-lint\.toml:2: \[tool\.nnx-lint\] is for pyproject\.toml; remove"):
            load(path)

    def test_a_flag_that_names_no_rule(self, configuration):
        with pytest.raises(SelectionError, match=r"^no rule matches 'NNX1001'; did you mean 'NNX101'\?$"):
            configuration(select=("NNX1001",))

    @given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)))
    def test_any_value_is_read_or_refused(self, value):
        for option in OPTIONS:
            with contextlib.suppress(WrongValue):
                option.kind.read(value)


class TestTheCommandLine:
    def test_wins_over_the_file(self, write, configuration, tmp_path):
        write("nnx-lint.toml", "select = ['NNX1']\ntarget = 'flax-0.11'\noutput-format = 'json'")
        found = configuration(select=("NNX101",), target="nnxkit")
        assert codes(found, "x.py") == {"NNX101"}
        assert found.options_for("x.py").library == "nnxkit"
        assert found.at(str(tmp_path)).get("output-format") == "json"

    def test_a_setting_wins_over_the_file_and_a_flag_over_that(self, write, configuration, tmp_path):
        write("nnx-lint.toml", "target = 'flax-0.10'\njobs = 1")
        found = configuration(config=("target = 'flax-0.11'", "jobs=2"), jobs=3)
        assert found.options_for("x.py").version[:2] == (0, 11)
        assert found.at(str(tmp_path)).get("jobs") == 3

    def test_a_file_that_is_named_is_read_instead(self, write, configuration, tmp_path):
        write("nnx-lint.toml", "select = ['NNX101']")
        write("ci/lint.toml", "select = ['NNX102']\nbaseline = 'known.json'")
        found = configuration(config=("ci/lint.toml",))
        assert codes(found, "x.py") == {"NNX102"}
        assert found.at(str(tmp_path)).location("baseline") == str(tmp_path / "known.json")

    def test_paths_of_a_file_that_it_extends_start_there(self, write, configuration, tmp_path):
        write("base/base.toml", "src = ['lib']")
        write("ci/lint.toml", "extend = '../base/base.toml'")
        found = configuration(config=("ci/lint.toml",))
        assert found.at(str(tmp_path)).locations("src") == [str(tmp_path / "base" / "lib")]

    @pytest.mark.parametrize("text", ["target=nnxkit", "target = 'nnxkit'", 'target="nnxkit"', "target =nnxkit "])
    def test_quotes_of_a_setting_may_be_missing(self, text):
        assert setting(text, "").values == {"target": "nnxkit"}

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("selct=[]", r"^--config selct=\[\]: unknown option `selct`; did you mean `select`\?$"),
            ("jobs=x", r"^--config jobs=x: `jobs` must be an integer of at least 1, not 'x'$"),
            ("a b=c", r"^--config a b=c: is neither a file nor a setting KEY=VALUE$"),
            ("jobs=", r"^--config jobs=: is neither a file nor a setting KEY=VALUE$"),
        ],
    )
    def test_a_wrong_setting(self, text, message):
        with pytest.raises(ConfigError, match=message):
            setting(text, "")

    def test_a_file_that_is_missing(self, configuration):
        with pytest.raises(ConfigError, match=r"^gone\.toml: cannot be read: No such file"):
            configuration(config=("gone.toml",))


class TestWhatHoldsForAFile:
    def test_levels(self, write, configuration):
        write("nnx-lint.toml", "[rules]\nNNX1 = 'warning'\nNNX101 = 'info'\nNNX103 = 'off'")
        options = configuration().options_for("x.py")
        assert options.severity(FIRST) is Severity.INFO
        assert options.severity(SECOND) is Severity.WARNING
        assert not options.selected(REGISTRY.get("NNX103"))

    def test_per_file_ignores(self, write, configuration):
        write(
            "p/nnx-lint.toml", "[per-file-ignores]\n'tests/' = ['NNX101']\n'*_gen.py' = ['ALL']\n'!src/**' = ['NNX102']"
        )
        found = configuration()
        everything = codes(found, "x.py")
        assert codes(found, "p/src/a.py") == everything
        assert codes(found, "p/src/tests/a.py") == everything - {"NNX101"}
        assert codes(found, "p/tests/deep/a.py") == everything - {"NNX101", "NNX102"}
        assert codes(found, "p/src/a_gen.py") == set()

    def test_per_file_ignores_win_over_a_selection_of_the_command_line(self, write, configuration):
        write("nnx-lint.toml", "[per-file-ignores]\n'a.py' = ['NNX1']")
        assert codes(configuration(select=("NNX101",)), "a.py") == set()

    def test_more_of_them(self, write, configuration):
        write("base.toml", "[per-file-ignores]\n'a.py' = ['NNX101']\n[extend-per-file-ignores]\n'a.py' = ['NNX102']")
        write("nnx-lint.toml", "extend = 'base.toml'\n[per-file-ignores]\n'a.py' = ['NNX103']")
        everything = codes(configuration(isolated=True), "a.py")
        assert codes(configuration(), "a.py") == everything - {"NNX102", "NNX103"}
        flags = {"extend_per_file_ignores": (("a.py", ("NNX105",)),)}
        assert codes(configuration(**flags), "a.py") == everything - {"NNX102", "NNX103", "NNX105"}

    def test_equal_files_share_their_options(self, write, configuration):
        write("nnx-lint.toml", "[per-file-ignores]\n'b.py' = ['NNX1']")
        options = configuration().options(["a.py", "b.py", "c.py"])
        assert options.for_path("a.py") is options.for_path("c.py")
        assert options.for_path("a.py") is not options.for_path("b.py")
        assert options.for_path("elsewhere.py").selected(FIRST)


def test_patterns_with_rules_on_the_command_line():
    with pytest.raises(WrongValue, match=r"^PATTERN:RULE, such as tests/\*:NNX101$"):
        PerFile().parse("tests")
    assert PerFile().parse("a:b.py:NNX1, c:ALL") == (("a:b.py", ("NNX1",)), ("c", ("ALL",)))
