"""The findings of the analyzer, as mypy errors.

The analyzer answers for the project as a whole: a finding follows from all files that its own reaches. Mypy works
module by module and reads from its cache what it thinks has not changed. They agree by two means. The findings of a
file are part of what mypy keeps of the module (`digest`), so that a module with other findings is checked again. And
whenever mypy comes across a module, at one of the plugin's hooks, `report` makes its errors what the findings are now:
it adds what is missing, once.

Invariants

- One *pass* is one set of mypy's errors: a run, or an update of the daemon. Files are looked at once a pass.
- The analyzer is waited for as late as possible: when mypy is at a file whose findings are open.
- Errors belong to the target of mypy that was being checked when they were added; the daemon drops them with it, and
  checks it again with every update, because of them. For that a module without findings has a hidden one.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress

from mypy.errors import CompileError, ErrorInfo, Errors

from nnx_lint.config.reading import ConfigError
from nnx_mypy.codes import BY_RULE, FAMILY
from nnx_mypy.findings import Finding, FindingsError, Found, Recalled, find, recall
from nnx_mypy.settings import Settings
from nnx_mypy.worker import Worker

SMALL = 50_000
"""Bytes of files up to which the analyzer takes less time than a process of its own takes to start."""


class Reporter:
    """Reports findings to mypy.

    Args:
        is_daemon: whether mypy runs as a daemon.
    """

    def __init__(self, is_daemon: bool) -> None:
        self._is_daemon = is_daemon
        self._worker = Worker()
        self._is_asked = False
        self._options: Mapping[str, object] = {}
        self._recalled: Recalled | None = None
        self._found: Found | None = None
        self._pass: dict[str, list[ErrorInfo]] | None = None
        self._added: dict[str, ErrorInfo] = {}

    def begin(self) -> Recalled:
        """Look at what is known, once a pass, and let the analyzer begin with the rest.

        Raises:
            CompileError: a configuration is wrong; mypy shows the message and ends.
        """
        if self._recalled is None:
            with _told():
                settings = Settings.here()
                if not settings.findings:
                    self._recalled = Recalled(frozenset(), {}, frozenset())
                else:
                    self._recalled = recall(settings.options)
            self._options = settings.options
            if self._recalled.open is not None and not self._recalled.open:
                self._found = self._recalled.found
            self._is_asked = self._found is None and _size(self._recalled) > SMALL
            if self._is_asked:
                self._worker.ask(settings.options)
        return self._recalled

    def digest(self, path: str, is_check: bool) -> str:
        """What mypy keeps of the findings in a file; it asks whether that is the same (``is_check``), or for it."""
        recalled = self.begin()
        path = os.path.abspath(path)
        if path not in recalled.files:
            return ""
        if is_check and self._found is None and recalled.open is not None and path in recalled.open:
            return uuid.uuid4().hex  # Like nothing that mypy can have kept: let it come across the module.
        findings = self._in(path)
        return hashlib.blake2b(repr(findings).encode(), digest_size=16).hexdigest() if findings else ""

    def report(self, errors: Errors) -> None:
        """Make the errors of the file that mypy is at have the findings in it."""
        if self._pass is not errors.error_info_map:
            if self._pass is not None:
                self._forget()
            self._pass = errors.error_info_map
            self._added = {}
        file = errors.file
        if file in self._added and (not self._is_daemon or self._stands(file)):
            return
        path = os.path.abspath(file)
        if path not in self.begin().files or file in errors.ignored_files:
            return
        findings = self._in(path)
        with _unwatched(errors):
            for finding in findings:
                _add(errors, finding)
            self._added[file] = marker = _marker(errors)
            if self._is_daemon:
                errors.error_info_map.setdefault(file, []).append(marker)

    def _in(self, path: str) -> tuple[Finding, ...]:
        """The findings in a file, now."""
        recalled = self.begin()
        if self._found is None and (recalled.open is None or path in recalled.open):
            with _told():
                self._found = self._worker.answer() if self._is_asked else find(self._options)
                self._is_asked = False
        return (recalled.found if self._found is None else self._found).get(path, ())

    def _forget(self) -> None:
        if self._is_asked:
            with _told():
                self._worker.answer()
            self._is_asked = False
        self._recalled = self._found = None

    def _stands(self, file: str) -> bool:
        assert self._pass is not None
        return any(info is self._added[file] for info in self._pass.get(file, ()))


def _size(recalled: Recalled) -> int:
    """How many bytes the files have whose findings are open."""
    size = 0
    for path in recalled.files if recalled.open is None else recalled.open:
        with suppress(OSError):
            size += os.path.getsize(path)
    return size


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


def _marker(errors: Errors) -> ErrorInfo:
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
        module=errors.current_module(),
        target=errors.current_target(),
    )
    marker.hidden = True
    return marker


@contextmanager
def _told() -> Generator[None, None, None]:
    """Let mypy end with the message where a configuration is wrong."""
    try:
        yield
    except (ConfigError, FindingsError) as error:
        raise CompileError([f"error: {error}"]) from None


@contextmanager
def _unwatched(errors: Errors) -> Generator[None, None, None]:
    """Report past those who watch for errors of an expression that is only tried, such as an overload."""
    watchers, errors._watchers = errors._watchers, []
    try:
        yield
    finally:
        errors._watchers = watchers
