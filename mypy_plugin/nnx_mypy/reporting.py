"""The findings of the analyzer, as mypy errors.

The analyzer answers for the project as a whole: a finding follows from all files that its own reaches. Mypy works
module by module and reads from its cache what it thinks has not changed. They agree by two means. The findings of a
file are part of what mypy keeps of the module (`digest`), so that a module with other findings is checked again. And
whenever mypy comes across a module, at one of the plugin's hooks, `report` makes its errors what the findings are now:
it adds what is missing, once.

Mypy's daemon comes across what an edit changes for mypy, and what had errors before. So that it comes across a module
whose findings follow from an edit elsewhere, that gets a hidden error.

Invariants

- One *pass* is one set of mypy's errors: a run, or what the daemon does about one file. A file has one look a pass.
- Errors belong to the target of mypy that was being checked when they were added; the daemon drops them with it, and
  checks it again with every update, because of them.
- The daemon comes across some module in every update, whatever is edited: a few without findings have a hidden error.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from mypy.errors import CompileError, ErrorInfo, Errors
from mypy.nodes import MypyFile

from nnx_mypy.answers import Answers
from nnx_mypy.codes import BY_RULE, FAMILY
from nnx_mypy.findings import Finding

SENTINELS = 3
"""How many modules without findings the daemon comes across in every update."""


class Reporter:
    """Reports findings to mypy.

    Args:
        is_daemon: whether mypy runs as a daemon.
        cache: the folder of mypy's cache.
        project: the folder of the project.
    """

    def __init__(self, is_daemon: bool, cache: str, project: str) -> None:
        self._is_daemon = is_daemon
        self._answers = Answers(cache, project)
        self._errors: Errors | None = None
        self._modules: Mapping[str, MypyFile] = {}
        self._pass: dict[str, list[ErrorInfo]] | None = None
        self._added: dict[str, ErrorInfo | None] = {}

    def begin(self) -> None:
        """Mypy has read a file: let the analyzer begin, and the daemon know where it has to look.

        Raises:
            CompileError: a configuration is wrong; mypy shows the message and ends.
        """
        if self._errors is None:
            self._answers.begin()
        elif self._enter(self._errors):
            self._lead(self._errors)

    def digest(self, path: str, is_check: bool) -> str:
        """What mypy keeps of the findings in a file; it asks whether that is the same (``is_check``), or for it."""
        path = path if os.path.isabs(path) else os.path.abspath(path)  # most are those of libraries
        if not self._answers.are_about(path):
            return ""
        if is_check and not self._answers.are_known(path):
            return os.urandom(16).hex()  # Like nothing that mypy can have kept: let it come across the module.
        findings = self._answers.at(path)
        return hashlib.blake2b(repr(findings).encode(), digest_size=16).hexdigest() if findings else ""

    def report(self, errors: Errors, tree: MypyFile, modules: Mapping[str, MypyFile]) -> None:
        """Make the errors of the file that mypy is at have the findings in it.

        Args:
            errors: those of mypy.
            tree: the module of the file.
            modules: all that mypy knows.
        """
        self._enter(errors)
        file = errors.file
        if file in self._added and self._stands(file):
            return
        path = os.path.abspath(file)
        if not self._answers.are_about(path) or file in errors.ignored_files:
            return
        if self._is_daemon:
            self._errors, self._modules = errors, modules
        self._answers.learn(tree, modules)
        findings: tuple[Finding, ...] = ()
        with _unwatched(errors):
            try:
                findings = self._answers.at(path)
            except CompileError as failure:  # mypy takes what is raised at a hook for a failure of its own
                errors.report(1, 0, failure.messages[0].removeprefix("error: "), FAMILY, blocker=True)
            for finding in findings:
                _add(errors, finding)
        self._added[file] = None
        if self._is_daemon and (findings or self._needs_sentinel()):
            self._added[file] = marker = _marker(errors.current_module(), errors.current_target())
            errors.error_info_map.setdefault(file, []).append(marker)

    def _enter(self, errors: Errors) -> bool:
        """Whether a pass begins."""
        if self._pass is errors.error_info_map:
            return False
        if self._pass is not None:
            self._answers.forget()
        self._pass = errors.error_info_map
        self._added = {}
        return True

    def _lead(self, errors: Errors) -> None:
        """Lead the daemon to the modules that have findings."""
        found = self._answers.everywhere()
        if not found:
            return
        for name, module in self._modules.items():
            if os.path.abspath(module.path) in found and module.path not in errors.ignored_files:
                errors.error_info_map.setdefault(module.path, []).append(_marker(name, name))

    def _needs_sentinel(self) -> bool:
        return sum(marker is not None for marker in self._added.values()) < SENTINELS

    def _stands(self, file: str) -> bool:
        """Whether mypy has kept what was added in a file."""
        assert self._pass is not None
        marker = self._added[file]
        return marker is None or any(info is marker for info in self._pass.get(file, ()))


def _add(errors: Errors, finding: Finding) -> None:
    code = BY_RULE[finding.code]
    lines = [(finding.severity, finding.message)]
    if finding.help:
        lines.append(("note", f"Help: {finding.help}"))
    for severity, message in lines:
        errors.report(
            finding.line,
            finding.column,
            message,
            code,
            severity=severity,
            end_line=finding.end_line,
            end_column=finding.end_column,
        )


def _marker(module: str | None, target: str | None) -> ErrorInfo:
    """An error that nobody sees."""
    marker = ErrorInfo(
        import_ctx=[],
        local_ctx=(None, None),
        line=1,
        column=0,
        end_line=1,
        end_column=0,
        severity="note",
        message="",
        code=FAMILY,
        blocker=False,
        only_once=False,
        module=module,
        target=target,
    )
    marker.hidden = True
    return marker


@contextmanager
def _unwatched(errors: Errors) -> Generator[None, None, None]:
    """Report past those who watch for errors of an expression that is only tried, such as an overload."""
    watchers, errors._watchers = errors._watchers, []
    try:
        yield
    finally:
        errors._watchers = watchers
