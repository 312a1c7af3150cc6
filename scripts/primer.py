"""`make primer`: nnx-lint on pinned packages that nobody here wrote, compared with what was found before.

They are linted twice, at the default settings and with every rule, each against the newest flax that its own metadata
allows: what held for an older one is no mistake in a package that stays with it. A finding is known by its file, its
rule, the function or class around it and the text of its line, so that it survives edits of the analyzer that move
nothing. The record, `tests/primer/findings.toml`, holds every one of them with a verdict, true or false, and the reason
of somebody who read the code.

Fails, with a report, if a finding is new, has vanished or has no verdict, if a false one stands at the default
settings, or if the analyzer fails. `--update` writes the record anew and keeps the verdicts; the new findings are then
without one, and somebody has to read the code. A change of the record belongs into the commit that causes it.
"""

import argparse
import ast
import json
import os
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from fetch import Package, fetch
from nnx_lint.checking import Checker
from nnx_lint.diagnostics import Diagnostic
from nnx_lint.files import discover, import_roots
from nnx_lint.selection import FileOptions, Options
from nnx_lint.source import SourceError, SourceFile
from nnx_lint.target import NOTHING, Target, beside, requirements
from nnx_rules.registry import Rule
from nnx_rules.rules import REGISTRY

MOST = 50
"""How many items of one kind a report shows."""

RECORD = Path(__file__).resolve().parent.parent / "tests" / "primer" / "findings.toml"

PACKAGES = (
    Package("aetherlm", "0.1.0", "15b352fc3b70631391e460ebcffc6ff101fb2e9e174a492df05955bde89424ce"),
    Package("avitai-artifex", "0.1.15", "c6ee8dd13a2ab04b16b8678905ca7c6ec12443a3b2e02ec59e85af56cd534710"),
    Package("bijx", "1.3.2", "c8d8f87ccde69e90a9468027763202e9d4e4815f5c2692e218ba97ad3def6731"),
    Package("blaxbird", "0.2.0", "f2f16c0c7b6eff7009bbe3ceb292b398223f11704462d71bfe2beaaf0af7fb03"),
    Package("canvit-nnx", "0.2.0", "0a4bd14caab81326197c80ba69b6aa2aa41666c7a40c3aadc4c080e9186e1d05"),
    Package("dantinox", "0.4.14", "1bca1ed8096013bdfb35b3390beee0f037c8c4e761c0d9ed16dd4a0deb1dbf17"),
    Package("datarax", "0.1.17", "ee4b2654b0e883c06a76b9715829b9801a6fcf5d2f8944b66c690b7ccabdc4af"),
    Package("diffbio", "0.1.0", "558d17d6e05b634ce74e3dd079e15afe389d722213b134bb768b9970535edbf7"),
    Package("diffuse-jax", "0.1.1", "66b151732c88e21f91e98da13ac23d2fb573847faf023400e4290765ea06dd85"),
    Package("faustax", "0.0.1", "1cb9d8a9078cd643b1eb1e6c6d4ca2f35d2e5611c2ac18ecf167dcaca22e0a1e"),
    Package("fidax", "0.3.1", "01bd0e97ba76b7d98b06664dc14e3dfc45d983fe780dd86a100a753597cb81c4"),
    Package("flax-metrics", "0.4.0", "2113ef30bd769e16f7e01cbcb53e6f829b2db9a393e817a586a61c383d4082da"),
    Package("fluctifex", "0.1.1", "ef7cbe2a464c7f72ca5934a1997063c14d176a7d5dd77fd4aa4550530f445e5b"),
    Package("gensbi", "0.5.1", "978be8efb93f174b7388a2c2ce57f8aa7e0d5a787baa812bf7db0feb69669f69"),
    Package("google-tunix", "0.1.7", "857b893b8ba71a61cce8cb9de2301218d311f72044de94aa2b826275968033b4"),
    Package("heal-swin-nnx", "0.2.0", "f76e02ec917efd55b15587e6c9ed1242fe6c542d2845e1ab6842103c37a6c04f"),
    Package("hinkypunk", "0.1.1", "bb1fda1898eae637e4ca5e8332dc0df6bf4d8d5c823b26d5e9fc065f30ab476e"),
    Package("hyperbolix", "1.4.0", "56261a967ff08a555a548643ec4fee823fe492175ac5249bc7e3a57d6fd1a6d0"),
    Package("jax2onnx", "0.17.1", "ca4ad1adc58bb9eed8ffd13064fafeec9b81cbc7eeca86ad913f37fcd67b2c49"),
    Package("jaxnn", "0.2.0", "7cfe3b55bf0fb2b3227532a2e504a90e98627afd2a861c40edf38c80e644734e"),
    Package("jimmy-vision", "0.0.7", "3020df1e422d0985d394dfe4da05aabbb51dee2f43a8fc2ed314b26973364011"),
    Package("jraphx", "0.1.0", "cb4deb7008531b7fcd222746bff31652d92852fd4f7ebe7fdb6f8f4534fb22f9"),
    Package("kauldron", "1.4.4", "6d586b65de003369101c73bd55bbb64df38a396e511257be5a6e08658019fbc8"),
    Package("lpips-nnx", "0.1.0", "dc09f985a0f8969f51ae0d53cb2d53522a4d006e83a049eb4aa7628aa9ba1da4"),
    Package("lynnx", "0.0.1.post1", "4a8e063e49bef883657fc2a013188cfa1b606bc1297a68fe35142f4e3991bb0a"),
    Package("mamba2-jax", "1.1.2", "17d015f0ac6d64c94bbf4be6d90b875eaad643bb78686508572ec0af7bc71721"),
    Package("mamba3-jax", "1.0.1", "8300c186604d0d6b6fd3e861437e1b14fc4fd57d4c2ab1a54a23ed9cf996e723"),
    Package("maxtext", "0.2.5", "2fe8e4ffc3a06bd06f94daeaaf5fe3ecee748bb6f661c0f426e07e2ca10c9406"),
    Package("ml-networks", "0.2.6", "350ee58715c760bb64671aaadf8726d7f8ff6d70aa86cd5c68b742f9cf294139"),
    Package("netket", "3.23.0", "760d2a02daa4e00cd27d4afa25ac3c8d83ba66f00c3d535c1a0fe6269408097a"),
    Package("neuralgcm", "1.2.2", "795297260a5aff05708e855fe8cb27db7cc0f514e9c34e373e4ba378732327e5"),
    Package("nnx-lm", "0.0.1a2", "82998986b625e2524e59e027244cf91db92c3053aa841d7c22df9a3fabf4fd5f"),
    Package("nnx-ppo", "0.3.0", "733a3282ce08cd592176895026a2d5e3da988bc8de5bbc9a5061e7595cb222ed"),
    Package("opifex", "0.2.10", "631e4d2af9ce46b0f0a5ce1b94eb79b00930555bcd8933d2ffb5be26a6a3b608"),
    Package("phijax", "0.2.0b5", "8443ab4381bcfd087ae574ae4067c555c2398f3516711c9beadfb611653dc175"),
    Package("qwix", "0.1.8", "0f4686f7f10a1168787fac4fbaf4d9883bcb8f78a01f2ff1cd3834d39f859b12"),
    Package("ramsey", "0.3.0", "d875813c5339be37f010907d822b6b6439012e0ddfee342353edad60d8d436ac"),
    Package("rl-blox", "0.5.7", "371bd347db29def468c39bd56377df514bae5152b8e76d893aed89bd32ab665e"),
    Package("sglang-jax", "0.0.2", "1ba0d3f7801a47c3961e50995a6ee832d8d094c5595d9ad865f4f9ebbe3fdfcb"),
    Package("substrax", "0.1.22", "2436eb662d5a240e7f859c9a2e8a03f6489fe2b7b91386fe2258ff4303e6c63c"),
    Package("synecdoche", "0.2.0", "2c747a4cb6d23f2315cb81152673a72af82872e908bb4a2a2ed4be262088cb30"),
    Package("vitax", "0.0.10", "e5c0d43f291b83d771c0a8eb8a2dccfa4e25321f7eafa50a20a347d69e322b9e"),
    Package("zlynx", "0.1.11", "657585aa97b06fb029d759b7497124d9af78dabbdc46d81b0854861977303ad9"),
)


class Key(NamedTuple):
    """What a finding is known by; several on one line may share it."""

    package: str
    file: str
    rule: str
    symbol: str
    source: str

    def __str__(self) -> str:
        return f"{self.file}: {self.rule} in {self.symbol or 'the module'}\n      {self.source}"


@dataclass(frozen=True)
class Finding:
    """What the linter says about a line of a package."""

    key: Key
    line: int
    code: str
    message: str

    @property
    def place(self) -> str:
        """`jraphx/nn/conv.py:12`."""
        return f"{self.key.file}:{self.line}"


@dataclass(frozen=True)
class Judged:
    """A finding in the record; `verdict` is `None` until somebody has read the code."""

    key: Key
    verdict: bool | None = None
    reason: str = ""


@dataclass
class Record:
    """What `findings.toml` holds.

    Attributes:
        newer_syntax: files that only a newer Python can parse, with that version; they are left out below it.
    """

    newer_syntax: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    findings: list[Judged] = field(default_factory=list[Judged])

    def unreadable(self, file: str, version: tuple[int, ...] = sys.version_info[:2]) -> bool:
        """Whether this Python is too old for a file."""
        return version < self.newer_syntax.get(file, (0,))


@dataclass
class Scan:
    """What the linter finds in the packages, at the default settings and with every rule, and where it fails.

    Attributes:
        lines: how many lines each package has.
    """

    lines: Counter[str] = field(default_factory=Counter[str])
    by_default: list[Finding] = field(default_factory=list[Finding])
    with_all: list[Finding] = field(default_factory=list[Finding])
    problems: list[str] = field(default_factory=list[str])


# -- the linter --------------------------------------------------------------------------------------------------------


def scan(folders: Mapping[str, Path], record: Record) -> Scan:
    """Lint unpacked packages as one project: some of them build on others."""
    result = Scan()
    owners: dict[str, str] = {}
    sources: dict[str, SourceFile] = {}
    for package, folder in folders.items():
        for path in discover([str(folder)]).files:
            file = Path(path).relative_to(folder).as_posix()
            if record.unreadable(file):
                continue
            try:
                source = SourceFile.read(path)
            except SourceError as error:
                result.problems.append(str(error))
                continue
            if source.error is None:
                owners[path], sources[path] = package, source
                result.lines[package] += source.line_count
            else:
                result.problems.append(
                    f"{file}:{source.error.line}: syntax error: {source.error.message}; "
                    f'if a newer Python can read it, say so under [newer-syntax]: "{file}" = "3.12"'
                )
    roots = import_roots(sources, map(str, folders.values()))

    targets = {package: target_of(folder) for package, folder in folders.items()}

    def lint(selected: Callable[[Rule], bool]) -> list[Finding]:
        severities = {rule.code: rule.severity for rule in REGISTRY if selected(rule)}
        options = {
            package: FileOptions(severities, version=target.version, jax=target.jax)
            for package, target in targets.items()
        }
        by_path = {path: options[package] for path, package in owners.items()}
        checker = Checker(Options(FileOptions(severities), by_path), roots, jobs=os.cpu_count() or 1)
        findings = [
            _finding(folders, owners[found.path], sources[found.path], found) for found in checker.check(sources)
        ]
        result.problems += (problem for problem in checker.problems if problem not in result.problems)
        return findings

    result.by_default = lint(lambda rule: rule.default)
    result.with_all = lint(lambda rule: True)
    result.problems += (
        f"{finding.place}: {finding.code} is found at the default settings, but not with every rule"
        for finding in set(result.by_default) - set(result.with_all)
    )
    return result


def target_of(folder: Path) -> Target:
    """The newest flax and jax that a package allows, whatever this machine has."""
    flax, jax = (_newest(folder, distribution) for distribution in ("flax", "jax"))
    return beside(flax, jax)


def _newest(folder: Path, distribution: str) -> Target:
    for path in folder.glob("*.dist-info/METADATA"):
        allowed = requirements.metadata(path.read_text(encoding="utf-8"), distribution)
        if allowed is not None:
            return Target(None, allowed.newest, path.name)
    return Target(None, None, NOTHING)


def _finding(folders: Mapping[str, Path], package: str, source: SourceFile, found: Diagnostic) -> Finding:
    line, _ = source.location(found.span.start)
    file = Path(source.path).relative_to(folders[package]).as_posix()
    symbol = enclosing(source, found.span.start)
    key = Key(package, file, found.rule.name, symbol, source.line_text(line).strip())
    return Finding(key, line, found.rule.code, found.message)


def enclosing(source: SourceFile, offset: int) -> str:
    """The qualified name of the innermost definition around a position, decorators included; empty in a module."""
    names: list[str] = []
    node: ast.AST | None = source.tree
    while node is not None:
        node = next((child for child in _definitions(node) if _covers(source, child, offset)), None)
        if node is not None:
            names.append(node.name)
    return ".".join(names)


_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _definitions(node: ast.AST) -> Iterator[_Definition]:
    """The nearest definitions below a node."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Definition):
            yield child
        else:
            yield from _definitions(child)


def _covers(source: SourceFile, node: _Definition, offset: int) -> bool:
    spans = [source.span(node), *(source.span(decorator) for decorator in node.decorator_list)]
    return min(span.start for span in spans) <= offset < max(span.end for span in spans)


# -- the record --------------------------------------------------------------------------------------------------------


def read_record(path: Path) -> Record:
    """Read `findings.toml`; an empty record where there is none.

    Raises:
        KeyError: a finding lacks a part of its key.
        TypeError: a verdict is neither true nor false.
    """
    if not path.exists():
        return Record()
    data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    newer = {file: tuple(map(int, version.split("."))) for file, version in data.get("newer-syntax", {}).items()}
    findings = [_judged(entry) for entry in data.get("finding", [])]
    return Record(newer, findings)


def _judged(entry: Mapping[str, Any]) -> Judged:
    key = Key(*(str(entry[part]) for part in Key._fields))
    verdict = entry.get("verdict")
    if verdict is not None and not isinstance(verdict, bool):
        raise TypeError(f"{key.file}: a verdict is true or false, not {verdict!r}")
    return Judged(key, verdict, str(entry.get("reason", "")).strip())


HEADER = """\
# What nnx-lint finds in the packages of `make primer`, every rule on. Each finding was judged by reading the code:
# `verdict` says whether it is right, `reason` why. Written by `python scripts/primer.py --update`, which keeps both.
"""


def write_record(path: Path, record: Record) -> None:
    """Write `findings.toml`, in the order of the keys."""
    parts = [HEADER]
    if record.newer_syntax:
        parts.append(
            "\n# Files that an older Python cannot parse; below that version they are left out.\n[newer-syntax]\n"
        )
        parts += (f'{_toml(file)} = "{".".join(map(str, v))}"\n' for file, v in sorted(record.newer_syntax.items()))
    for judged in sorted(record.findings, key=lambda judged: judged.key):
        parts.append("\n[[finding]]\n")
        parts += (f"{name} = {_toml(value)}\n" for name, value in judged.key._asdict().items())
        if judged.verdict is not None:
            parts.append(f"verdict = {_toml(judged.verdict)}\nreason = {_toml(judged.reason)}\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(parts), encoding="utf-8")


def _toml(value: str | bool) -> str:
    # A JSON string is a TOML basic string, but for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def updated(record: Record, result: Scan) -> Record:
    """The record with exactly the findings of a scan; verdicts stay with their keys."""
    known: defaultdict[Key, list[Judged]] = defaultdict(list)
    for judged in record.findings:
        known[judged.key].append(judged)
    findings = [judged for judged in record.findings if record.unreadable(judged.key.file)]
    for finding in result.with_all:
        before = known[finding.key]
        findings.append(before.pop(0) if before else Judged(finding.key))
    return Record(record.newer_syntax, findings)


# -- the comparison ----------------------------------------------------------------------------------------------------


def differences(record: Record, result: Scan) -> dict[str, list[str]]:
    """What is wrong, in words, by kind; empty lists where nothing is."""
    recorded = [judged for judged in record.findings if not record.unreadable(judged.key.file)]
    by_default = set(result.by_default)
    unmet = Counter(judged.key for judged in recorded)
    new: list[Finding] = []
    for finding in result.with_all:
        if unmet[finding.key]:
            unmet[finding.key] -= 1
        else:
            new.append(finding)
    false = {judged.key for judged in recorded if judged.verdict is False}
    return {
        "the analyzer fails": result.problems,
        "new": [_shown(finding, by_default) for finding in new],
        "vanished": [str(key) for key in unmet.elements()],
        "without a verdict": [str(judged.key) for judged in recorded if judged.verdict is None or not judged.reason],
        "false, and at the default settings": [
            _shown(finding, by_default) for finding in result.by_default if finding.key in false
        ],
    }


def _shown(finding: Finding, by_default: Iterable[Finding]) -> str:
    scope = "" if finding in by_default else " (not at the default settings)"
    return (
        f"{finding.place}: {finding.code} {finding.key.rule}{scope} in {finding.key.symbol or 'the module'}\n"
        f"      {finding.key.source}\n      {finding.message}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Scan, compare, report; 0 if the record is what was found."""
    parser = argparse.ArgumentParser(description="Lint real packages and compare with the recorded findings.")
    parser.add_argument("--update", action="store_true", help="write the record anew, keeping verdicts")
    options = parser.parse_args(arguments)

    record = read_record(RECORD)
    folders = {package.name: fetch(package) for package in PACKAGES}
    start = time.perf_counter()
    result = scan(folders, record)
    seconds = time.perf_counter() - start
    if options.update:
        record = updated(record, result)
        write_record(RECORD, record)
    return report(record, result, seconds)


def report(record: Record, result: Scan, seconds: float) -> int:
    """Print what was found and what is wrong; 1 if anything is."""
    for package, lines in result.lines.items():
        by_default, with_all = (
            sum(finding.key.package == package for finding in findings)
            for findings in (result.by_default, result.with_all)
        )
        print(
            f"{package:15} {lines:7,} lines, findings: {by_default} at the default settings, {with_all} with every rule"
        )
    unread = Counter(version for file, version in record.newer_syntax.items() if record.unreadable(file))
    for version, files in unread.items():
        print(f"not read: {files} files that need Python {'.'.join(map(str, version))}")
    print(f"primer: {len(result.lines)} packages, {result.lines.total():,} lines, linted twice in {seconds:.1f} s")
    wrong = {kind: items for kind, items in differences(record, result).items() if items}
    for kind, items in wrong.items():
        print(f"\n{kind}: {len(items)}")
        for item in items[:MOST]:
            print(f"  {item}")
        if items[MOST:]:
            print(f"  … and {len(items) - MOST} more")
    if wrong:
        print(
            "\nprimer: the findings are not as recorded, see tests/primer/findings.toml and --update", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
