"""The target: what requirements, locks and installed metadata say, and which of them counts."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnx_lint.cli import main
from nnx_lint.target import Detector, beside, parse
from nnx_lint.target.requirements import (
    environment,
    installed_in,
    lines,
    locked,
    metadata,
    pyproject,
    requirement,
    strings,
)
from nnx_lint.target.versions import ANY, LAST, Range, allowed, release
from nnx_rules.registry import Versions

SINCE, BEFORE = Versions(flax_since=(0, 12)), Versions(flax_before=(0, 12))


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setattr("sys.prefix", "/base")
    monkeypatch.setattr("sys.base_prefix", "/base")


@pytest.fixture
def target(tmp_path):
    def target(folder="."):
        return Detector().target(str(tmp_path / folder) if folder != "." else str(tmp_path))

    (tmp_path / ".git").mkdir()  # nothing above the test's folder counts
    return target


class TestNames:
    @pytest.mark.parametrize(
        ("text", "library", "version"),
        [
            ("flax-0.12", "flax", (0, 12, LAST)),
            ("flax-0.10", "flax", (0, 10, LAST)),
            ("flax-1.0", "flax", (1, 0, LAST)),
            ("flax-0.12.3", "flax", (0, 12, 3)),
            ("flax-0.12.0", "flax", (0, 12)),
            ("flax", "flax", None),
            ("nnxkit", "nnxkit", None),
        ],
    )
    def test_are_read(self, text, library, version):
        assert parse(text)[:2] == (library, version)

    @pytest.mark.parametrize(
        "text", ["", "jax-0.4", "flax-", "flax-0.x", "flax-0.12.*", "nnxkit-1", "flax>=0.12", "Flax-0.12"]
    )
    def test_or_refused(self, text):
        with pytest.raises(ValueError, match=r"is neither$"):
            parse(text)

    @pytest.mark.parametrize("text", ["flax-0.12", "flax-0.12.3", "flax", "nnxkit"])
    def test_are_shown_as_they_are_written(self, text):
        assert str(parse(text)) == text


class TestSpecifiers:
    @pytest.mark.parametrize(
        ("text", "oldest", "newest"),
        [
            ("", None, None),
            ("*", None, None),
            (">=0.10", (0, 10), None),
            (">=0.10,<0.12", (0, 10), (0, 11, LAST)),
            ("<0.12.3", None, (0, 12, 2, LAST)),
            ("<1.0", None, (0, LAST)),
            ("<=0.12.0", None, (0, 12)),
            ("<=0.12.3,!=0.12.3", None, (0, 12, 2, LAST)),
            ("==0.10.4", (0, 10, 4), (0, 10, 4)),
            ("===0.10.4", (0, 10, 4), (0, 10, 4)),
            ("==0.12.*", (0, 12), (0, 12, LAST)),
            ("~=0.12.1", (0, 12, 1), (0, 12, LAST)),
            ("~=0.12", (0, 12), (0, LAST)),
            ("^0.12.1", (0, 12, 1), (0, 12, LAST)),
            ("^0.0.3", (0, 0, 3), (0, 0, 3, LAST)),
            ("^1.2", (1, 2), (1, LAST)),
            ("~0.12.1", (0, 12, 1), (0, 12, LAST)),
            ("0.12.1", (0, 12, 1), (0, 12, 1)),
            ("^0.10 || ^0.12", (0, 10), (0, 12, LAST)),
            ("^0.10 || >=0.12", (0, 10), None),
            (">0.10, <0.12, <0.11", (0, 10), (0, 10, LAST)),
            ("==0.12.0rc1", (0, 12), (0, 12)),
            ("=0.10", (0, 10), (0, 10, LAST)),
            ("not a version", None, None),
            ("<0", None, None),
        ],
    )
    def test_what_they_allow(self, text, oldest, newest):
        assert allowed(text) == Range(oldest, newest)

    @given(st.lists(st.integers(0, 30), min_size=1, max_size=4))
    def test_a_release_lies_where_it_says(self, numbers):
        text = ".".join(map(str, numbers))
        version = release(text)
        for specifier in ("==", ">=", "<=", "~=", "^", "~"):
            assert allowed(f"{specifier}{text}").allows(version)
        below = allowed(f"<{text}")
        assert below == ANY or not below.allows(version)

    def test_zeros_at_the_end_change_nothing(self):
        assert release("0.12.0") == release("0.12") == (0, 12)
        assert allowed("<=0.12").allows(release("0.12.0"))

    @pytest.mark.parametrize(
        ("line", "specifiers"),
        [
            ("flax", ""),
            ("Flax == 0.10.4", "==0.10.4"),
            ("flax[all]>=0.10,<0.12; python_version > '3.10'", ">=0.10,<0.12"),
            ("flax (>=0.10)", ">=0.10"),
            ("flax==0.10.4 --hash=sha256:00", "==0.10.4"),
            ("flax==0.10.4 \\", "==0.10.4"),
            ("flax>=0.10  # the newest", ">=0.10"),
            ("flax @ git+https://example.org/flax@v0.10", ""),
        ],
    )
    def test_requirements(self, line, specifiers):
        assert requirement(line) == allowed(specifiers)

    @pytest.mark.parametrize(
        "line", ["flax-metrics==1.0", "flaxen", "jax>=0.4", "# flax", "", "my-flax==1", "flax_x==1"]
    )
    def test_requirements_on_other_things(self, line):
        assert requirement(line) is None


class TestFiles:
    @pytest.mark.parametrize(
        ("text", "specifiers"),
        [
            ('[project]\ndependencies = ["jax", "flax>=0.10,<0.11"]', ">=0.10,<0.11"),
            ('[project.optional-dependencies]\nnn = ["flax<0.11"]', "<0.11"),
            ('[dependency-groups]\ndev = ["flax<0.11", {include-group = "x"}]', "<0.11"),
            ('[tool.poetry.dependencies]\nflax = "^0.10"', "^0.10"),
            ('[tool.poetry.dependencies]\nflax = {version = "^0.10", extras = ["all"]}', "^0.10"),
            ('[tool.poetry.group.dev.dependencies]\nflax = "^0.10"', "^0.10"),
            (
                '[tool.poetry.dependencies]\nflax = [{version = "^0.8"}, {version = "^0.10"}]',
                "^0.8||^0.10",
            ),
            ('[tool.pixi.pypi-dependencies]\nflax = "*"', ""),
            ('[pypi-dependencies]\nflax = "<0.11"\n[feature.x.dependencies]\nflax = "0.12.*"', "<0.11"),
            ('[feature.x.dependencies]\nflax = {version = "0.10.*", channel = "conda-forge"}', "==0.10.*"),
            ('[packages]\nflax = "==0.10.5"\n[dev-packages]\nflax = "*"', "==0.10.5"),
            (
                '[project]\ndependencies = ["flax<0.11"]\n[project.optional-dependencies]\nx = ["flax==0.12.1"]',
                "<0.11",
            ),
        ],
    )
    def test_pyproject(self, text, specifiers):
        assert pyproject(text) == allowed(specifiers)

    @pytest.mark.parametrize(
        ("item", "specifiers"),
        [
            ("flax=0.10", "==0.10.*"),
            ("conda-forge::flax=0.10.4=pyhd8ed1ab_0", "==0.10.4.*"),
            ('"flax >=0.10,<0.11"', ">=0.10,<0.11"),
            ("flax", ""),
            ("pip:\n    - flax==0.10.4  # the last", "==0.10.4"),
        ],
    )
    def test_environments_of_conda(self, item, specifiers):
        assert environment(f"name: flax\ndependencies:\n  - python=3.11\n  - {item}\n") == allowed(specifiers)

    @pytest.mark.parametrize(
        "text",
        ["[project]\nname = 'flax'\nkeywords = ['flax']", "[tool.uv.sources]\nflax = {git = 'x'}", "[broken", ""],
    )
    def test_a_pyproject_that_requires_nothing(self, text):
        assert pyproject(text) is None

    def test_locks(self):
        uv = '[[package]]\nname = "flax-extra"\nversion = "9"\n\n[[package]]\nname = "flax"\nversion = "{}"\nx = 1\n'
        assert locked(uv.format("0.10.4")) == (0, 10, 4)
        assert locked(uv.format("0.10.4") + uv.format("0.12.1")) == (0, 12, 1)
        assert locked('[[package]]\nname = "flax"\n\n[[package]]\nname = "jax"\nversion = "1"\n') is None
        assert locked('[[packages]]\nname = "flax"\nmarker = "x"\nversion = "0.12.3"\n') == (0, 12, 3)

    def test_locks_that_are_no_toml(self, target, write):
        host = "https://example.org/noarch"
        write("pixi.lock", f"- conda: {host}/flax-extra-9-x_0.conda\n- conda: {host}/flax-0.10.7-pyhd8ed1ab_0.conda\n")
        assert target().version == (0, 10, 7)
        write("pixi.lock", f"- pypi: {host}/flax-0.9.2-py3-none-any.whl\n  name: flax\n")
        assert target().version == (0, 9, 2)
        write("a/Pipfile.lock", '{"default": {"flax": {"hashes": [\n"x"], "version": "==0.10.6"}, "jax": {}}}')
        assert target("a").version == (0, 10, 6)

    def test_setup_files(self):
        cfg = "[options]\ninstall_requires =\n    jax\n    flax >=0.10, <0.11\n"
        assert lines(cfg) == lines("install_requires = flax>=0.10,<0.11") == allowed(">=0.10,<0.11")
        assert strings("setup(install_requires=['jax', \"flax>=0.10\"])") == allowed(">=0.10")
        assert strings("setup(install_requires=['jax'])") is None

    @pytest.mark.parametrize(
        ("required", "specifiers"),
        [
            (["jax", "flax>=0.10,<0.12"], ">=0.10,<0.12"),
            (["flax (==0.8.2)"], "==0.8.2"),
            (["flax<0.11; extra == 'nn'", "flax<0.11.3; extra == 'x'"], "<0.11.3"),
            (["flax<0.12; extra == 'nn'", "flax<0.11; python_version > '3.10'"], "<0.11"),
        ],
    )
    def test_metadata(self, required, specifiers):
        head = "Metadata-Version: 2.1\nName: flaxen\n" + "".join(f"Requires-Dist: {line}\n" for line in required)
        assert metadata(head) == metadata(f"{head}\nRequires-Dist: flax==0.1\n") == allowed(specifiers)

    def test_metadata_that_require_nothing(self):
        assert metadata("Name: flax\nVersion: 0.12.1\nRequires-Dist: jax\n\nRequires-Dist: flax==0.8\n") is None

    def test_what_is_installed(self, write, tmp_path):
        write("env/lib/python3.12/site-packages/flax-0.10.4.dist-info/METADATA", "Name: flax\nVersion: 0.10.4\n")
        write("env/lib/python3.12/site-packages/flax_x-1.dist-info/METADATA", "Name: flax-x\nVersion: 1\n")
        version, path = installed_in(str(tmp_path / "env"))
        assert version == (0, 10, 4)
        assert path.endswith("METADATA")
        assert installed_in(str(tmp_path / "none")) is None


def install(write, version, environment=".venv"):
    write(
        f"{environment}/lib/python3.12/site-packages/flax-{version}.dist-info/METADATA",
        f"Name: flax\nVersion: {version}\n",
    )


class TestWhichOneCounts:
    def test_nothing_says_nothing(self, target):
        assert target()[:2] == (None, None)
        assert str(target()) == "the newest flax"

    def test_the_newest_release_that_a_requirement_allows(self, target, write):
        write("requirements.txt", "flax>=0.8,<0.12\n")
        assert target("src/deep").version == (0, 11, LAST)
        assert target().source.endswith("requirements.txt")

    def test_so_rules_speak_where_they_hold_for_what_an_installation_gets(self, target, write):
        write("requirements.txt", "flax>=0.8\n")
        assert SINCE.holds("flax", target().version)
        assert not BEFORE.holds("flax", target().version)
        write("requirements.txt", "flax>=0.8,<0.12\n")
        assert not SINCE.holds("flax", target().version)
        assert BEFORE.holds("flax", target().version)

    def test_a_lock_before_a_range(self, target, write):
        write("pyproject.toml", '[project]\ndependencies = ["flax>=0.8"]')
        write("uv.lock", '[[package]]\nname = "flax"\nversion = "0.10.4"\n')
        assert target().version == (0, 10, 4)

    def test_a_list_that_allows_one_release_is_a_lock(self, target, write):
        write("pyproject.toml", '[project]\ndependencies = ["flax>=0.8,<0.11"]')
        write("requirements.txt", "jax\nflax==0.10.4\n    # via x\n")
        assert target().version == (0, 10, 4)
        write("constraints.txt", "flax==0.10.3\n")
        assert target().version == (0, 10, LAST)
        write("requirements.txt", "flax==0.12.1\n")
        assert target().version == (0, 10, LAST)
        write("a/requirements.txt", "flax\n")
        write("a/constraints.txt", "flax==0.9.0\n")
        write("a/requirements-oldest.txt", "flax==0.8.0\n")
        assert target("a").version == (0, 9)

    def test_a_lock_of_the_workspace_refines_a_range_that_allows_it(self, target, write):
        write("uv.lock", '[[package]]\nname = "flax"\nversion = "0.10.4"\n')
        write("a/pyproject.toml", '[project]\ndependencies = ["flax>=0.8"]')
        write("b/requirements.txt", "flax<0.10")
        write("c/requirements.txt", "flax==0.8.5")
        assert target("a/src").version == (0, 10, 4)
        assert target("b").version == (0, 9, LAST)
        assert target("c").version == (0, 8, 5)

    def test_what_is_installed_if_the_project_allows_it(self, target, write):
        install(write, "0.10.4")
        assert target("src").version == (0, 10, 4)
        write("requirements.txt", "flax")
        assert target("src").version == (0, 10, 4)
        write("requirements.txt", "flax>=0.11")
        assert target("src").version is None

    def test_the_active_environment(self, target, write, monkeypatch, tmp_path):
        install(write, "0.10.4", "elsewhere")
        monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "elsewhere"))
        assert target().version == (0, 10, 4)
        install(write, "0.11.1", "venv")
        assert target().version == (0, 11, 1)

    def test_the_nearest_folder_that_speaks_of_flax(self, target, write):
        write("requirements.txt", "flax==0.12.1")
        write("examples/requirements.txt", "jax\n")
        write("examples/old/requirements/base.txt", "flax==0.8.5")
        assert target("examples").version == (0, 12, 1)
        assert target("examples/old").version == (0, 8, 5)

    def test_a_package_of_a_wheel_is_held_against_what_the_wheel_requires(self, target, write):
        for name, version in (("one", "==0.11.1"), ("two", "==0.8.5"), ("none", "")):
            write(f"{name}-1.0.dist-info/METADATA", f"Name: {name}\nRequires-Dist: jax\nRequires-Dist: flax{version}\n")
            write(f"{name}-1.0.dist-info/RECORD", f"{name}/__init__.py,,\n{name}-1.0.dist-info/METADATA,,\n")
        assert [target(f"{name}/deep").version for name in ("one", "two", "none")] == [(0, 11, 1), (0, 8, 5), None]
        assert target("other/one").version is None
        assert target("one").source.endswith("METADATA")

    def test_the_metadata_of_a_source_archive_count_last(self, target, write):
        write("PKG-INFO", "Name: x\nRequires-Dist: flax==0.11.1\n")
        assert target("src").version == (0, 11, 1)
        write("pyproject.toml", '[project]\ndependencies = ["flax==0.8.5"]')
        assert target("src").version == (0, 8, 5)

    def test_nothing_above_the_repository_counts(self, target, write):
        write("requirements.txt", "flax==0.8.5")
        write("inner/.git")
        assert target("inner").version is None

    def test_broken_files_say_nothing(self, target, write, tmp_path):
        write("pyproject.toml", "flax = [")
        write("uv.lock", "\0flax")
        (tmp_path / "setup.cfg").mkdir()
        (tmp_path / "requirements.txt").write_bytes(b"\xff flax==0.8.5\nflax==0.10.4\n")
        assert target().version == (0, 10, 4)


def test_no_file_makes_it_fail(write, tmp_path):
    write("pyproject.toml", json.dumps({"dependencies": {"flax": [1, None]}}))
    write("b/pyproject.toml", 'dependencies = {flax = 1}\n[x.dependencies]\nflax = [1, "^0.10"]')
    assert Detector().target(str(tmp_path / "b")).version == (0, 10, LAST)


class TestRulesByVersion:
    """With the real engine: a list of layers is an error since flax 0.12."""

    @pytest.fixture
    def reported(self, write, target, monkeypatch, tmp_path, capsys):
        monkeypatch.chdir(tmp_path)
        program = "from {} import nnx\n\nclass Net(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n"
        program += "        self.layers = [nnx.Linear(2, 2, rngs=rngs)]\n"

        def reported(*words, library="flax"):
            write("net.py", program.format(library).replace("from nnxkit import nnx", "import nnxkit as nnx"))
            main(["net.py", "--no-cache", "-q", "--output-format", "concise", *words])
            return [line.split()[1] for line in capsys.readouterr().out.splitlines()]

        return reported

    @pytest.mark.parametrize(
        ("requirement", "codes"),
        [
            ("flax", ["NNX101"]),
            ("flax>=0.8", ["NNX101"]),
            ("flax>=0.8,<0.12", []),
            ("flax==0.11.2", []),
            ("flax==0.12.0", ["NNX101"]),
            ("jax", ["NNX101"]),
        ],
    )
    def test_a_requirement_decides(self, reported, write, requirement, codes):
        write("requirements.txt", requirement)
        assert reported() == codes

    def test_an_option_wins(self, reported, write):
        write("requirements.txt", "flax==0.11.2")
        assert reported("--target", "flax-0.12") == ["NNX101"]
        write("nnx-lint.toml", "target = 'flax-0.12'")
        assert reported() == ["NNX101"]
        assert reported("--target", "flax-0.10") == []

    def test_code_on_nnxkit_has_its_semantics_whatever_flax_is_required(self, reported, write):
        write("requirements.txt", "flax==0.10.4")
        assert reported(library="nnxkit") == ["NNX101"]
        assert reported() == []


@pytest.mark.parametrize(("target", "found"), [("flax-0.10.7", 0), ("flax-0.11.0", 1), ("nnxkit", 1)])
def test_a_dropout_layer_asked_for_its_stream_when_it_was_called(target, found, tmp_path):
    path = tmp_path / "program.py"
    library = "import nnxkit as nnx" if target == "nnxkit" else "from flax import nnx"
    path.write_text(f"{library}\n\nnnx.Dropout(0.5, rngs=nnx.Rngs(params=0))\n")

    assert main(["check", "--isolated", "--no-cache", "--target", target, str(path)]) == found


class TestJax:
    """The version of jax beside the target: found as that of flax is, else the oldest one that this flax takes."""

    PROGRAM = "import jax\nfrom flax import nnx\n\njax.tree_map(print, nnx.Rngs(0))\n"  # gone since 0.6

    @pytest.fixture
    def found(self, write, target, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        write("program.py", self.PROGRAM)

        def found(*words):
            return main(["check", "--no-cache", "-q", "--select", "NNX915", *words, "program.py"]) == 1

        return found

    @pytest.mark.parametrize(
        ("requirements", "gone"),
        [
            ("", True),
            ("jax", True),
            ("jax[cuda12]>=0.4", True),
            ("jax<0.6", False),
            ("jax<0.5\nflax>=0.12", False),
            ("jax==0.6.0", True),
            ("jaxtyping<0.5\nflax", True),
            ("flax==0.10.6", False),
            ("flax<=0.10.7", True),
            ("flax==0.10.4\njax", True),
        ],
    )
    def test_a_requirement_decides(self, found, write, requirements, gone):
        write("requirements.txt", requirements)
        assert found() is gone

    def test_a_lock_decides(self, found, write):
        write("pyproject.toml", '[project]\ndependencies = ["flax", "jax"]')
        write(
            "uv.lock", '[[package]]\nname = "flax"\nversion = "0.12.8"\n[[package]]\nname = "jax"\nversion = "0.5.3"\n'
        )
        assert not found()
        write("uv.lock", '[[package]]\nname = "jax"\nversion = "0.7.1"\n')
        assert found()

    def test_an_option_names_flax_only(self, found, write):
        write("requirements.txt", "jax==0.5.3\nflax==0.10.6")
        assert not found("--target", "flax")
        write("requirements.txt", "flax==0.12.8")
        assert found()
        assert not found("--target", "flax-0.10.5")

    def test_files_that_speak_of_jax_only_are_asked(self, target, write, tmp_path):
        write("uv.lock", 'name = "jax"\nversion = "0.7.1"\n')
        detector = Detector("jax")
        assert beside(target(), detector.target(str(tmp_path))).jax == (0, 7, 1)
        assert list(detector.files) == [str(tmp_path / "uv.lock")]

    @pytest.mark.parametrize(
        ("program", "gone"),
        [
            ("def draw(key: jax.random.KeyArray):\n    return key\n", True),
            ("from __future__ import annotations\n\ndef draw(key: jax.random.KeyArray):\n    return key\n", False),
            ("def draw(key):\n    other: jax.random.KeyArray = key\n    return other\n", False),
            ("jax.random.KeyArray = jax.Array\nKey = jax.random.KeyArray\n", False),
            ("# needs jax==0.4.13\nKey = jax.random.KeyArray\n", False),
        ],
    )
    def test_a_name_counts_where_python_looks_for_it(self, found, write, program, gone):
        head, _, rest = program.rpartition("from __future__ import annotations\n")
        write(
            "program.py",
            f"{head}{_}import jax\nfrom flax import nnx\n\nmodel = nnx.Linear(1, 1, rngs=nnx.Rngs(0))\n{rest}",
        )
        assert found() is gone
