"""A real VS Code with the real extension, for tests: started, driven by headless Chromium, and ended.

VS Code is the server that ``scripts/vscode.py editor`` has fetched; the extension is the ``.vsix`` that
``scripts/vscode.py package`` builds, installed as a user would. A :class:`Workbench` is one server with its own data;
on it runs either a suite inside of the extension host, which has the real interface of VS Code and no page, or a
scenario that uses the page as a person does. Every run gets a fresh server: what a closed page leaves behind waits for
hours otherwise.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repository import ROOT

SCRIPT = ROOT / "scripts" / "vscode.py"
NODE_PACKAGES = ROOT / "vscode-extension"
BUILT = ROOT / "build" / "vscode"
PICTURES = ROOT / "build" / "pictures"
HERE = ROOT / "tests" / "vscode"
LOGGING = HERE / "logging.cjs"
"""What writes VS Code's output channels, of which a suite could see nothing else."""

START_TIME = 120
RUN_TIME = 400

QUIET: dict[str, Any] = {
    "security.workspace.trust.enabled": False,
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoUpdate": False,
    "extensions.ignoreRecommendations": True,
    "chat.disableAIFeatures": True,
}
"""Settings under which VS Code neither asks nor reaches out."""


def editor_folder() -> Path | None:
    """Where the fetched VS Code lies, if it was fetched; of several the oldest, or what the environment names."""
    found = sorted((ROOT / ".cache").glob(f"vscode-{os.environ.get('NNX_VSCODE', '*')}"))
    return found[0] if found else None


def missing() -> list[str]:
    """What these tests need and is not here, each with the way to get it."""
    needs = {
        "Node (20 or later)": (shutil.which("node"), "install it"),
        "Chromium": (browser(), "install it (Debian: apt-get install chromium)"),
        "Node's packages": ((NODE_PACKAGES / "node_modules" / ".installed").is_file(), "make editors"),
        "VS Code": (editor_folder(), "make editors"),
    }
    return [f"{name}: {way}" for name, (found, way) in needs.items() if not found]


def browser() -> str | None:
    """A Chromium."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def build() -> Path:
    """Build the extension, unless that was done since it was changed; the path of the ``.vsix``."""
    BUILT.mkdir(parents=True, exist_ok=True)
    with (BUILT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other workers want the same
        subprocess.run([sys.executable, SCRIPT, "package"], check=True, capture_output=True, timeout=START_TIME)
    return BUILT / "nnx.vsix"


@dataclass
class Report:
    """What a run has said: by test its error, or ``None``; ``exit`` is 0 only if everything went well."""

    exit: object = None
    results: dict[str, str | None] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    def verify(self, name: str) -> None:
        """Raise ``AssertionError`` unless the test ran and passed."""
        assert name in self.results, f"{name!r} did not run (exit: {self.exit})\n" + "\n".join(self.log[-30:])
        assert self.results[name] is None, self.results[name]

    @property
    def failed(self) -> set[str]:
        """What ran and failed."""
        return {name for name, error in self.results.items() if error is not None}


class Workbench:
    """A VS Code server with one folder or workspace.

    Attributes:
        folder: what is opened: a folder, or a ``.code-workspace`` file.
        settings: the user's settings, on top of :data:`QUIET`.
        environment: environment variables, on top of those of this process.
    """

    def __init__(
        self,
        scratch: Path,
        vsix: Path,
        folder: Path,
        settings: Mapping[str, object] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self._scratch = scratch
        self._environment = {**os.environ, "NODE_OPTIONS": f"--require={LOGGING}", **(environment or {})}
        for place in ("User", "Machine"):
            target = scratch / "data" / place / "settings.json"
            target.parent.mkdir(parents=True)
            target.write_text(json.dumps({**QUIET, **(settings or {})}), encoding="utf-8")
        self._call("--force", "--install-extension", str(vsix))

    def _command(self) -> list[str]:
        program = editor_folder()
        assert program is not None
        folders = {"server-data-dir": "server", "user-data-dir": "data", "extensions-dir": "extensions"}
        options = [word for key, name in folders.items() for word in (f"--{key}", str(self._scratch / name))]
        return ["node", str(program / "out" / "server-main.js"), *options, "--accept-server-license-terms"]

    def _call(self, *arguments: str) -> None:
        done = subprocess.run(
            [*self._command(), *arguments], capture_output=True, text=True, timeout=START_TIME, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    @contextlib.contextmanager
    def _serving(self) -> Iterator[str]:
        """The address of the running server. Its process group, with all extension hosts, is ended afterwards."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        options = ["--host", "127.0.0.1", "--port", str(port), "--without-connection-token", "--telemetry-level", "off"]
        with (self._scratch / "server.log").open("w+") as log:
            server = subprocess.Popen(
                [*self._command(), *options, "--enable-smoke-test-driver", "--force-disable-user-env"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self._environment,
                start_new_session=True,
            )
            try:
                assert server.stdout is not None
                said = next((line for line in server.stdout if "listening on" in line), None)
                assert said is not None, "VS Code did not start:\n" + Path(log.name).read_text()
                yield f"http://127.0.0.1:{port}"
            finally:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()
                server.stdout.close()

    def run_suite(self, suite: str) -> Report:
        """Run ``suites/NAME.js`` inside of the extension host."""
        return self._drive({"suite": str(HERE / "suites" / f"{suite}.js"), "probe": str(HERE / "probe")})

    def run_scenario(self, scenario: str) -> Report:
        """Run ``scenarios/NAME.mjs`` on the page; pictures go to :data:`PICTURES`."""
        return self._drive({"scenario": str(HERE / "scenarios" / f"{scenario}.mjs")})

    def _drive(self, order: Mapping[str, object]) -> Report:
        PICTURES.mkdir(parents=True, exist_ok=True)
        report = Report()
        with self._serving() as base:
            whole = {
                **order,
                "base": base,
                "node": str(NODE_PACKAGES),
                "browser": browser(),
                "folder": str(self.folder),
                "out": str(PICTURES),
                "time": RUN_TIME * 1000,
                "verbose": bool(os.environ.get("NNX_VERBOSE")),
            }
            done = subprocess.run(
                ["node", str(HERE / "drive.mjs"), json.dumps(whole)],
                capture_output=True,
                text=True,
                timeout=RUN_TIME + START_TIME,
                check=False,
            )
        for line in done.stdout.splitlines():
            said = json.loads(line)
            match said:
                case {"result": {"name": name, "error": error}}:
                    report.results[name] = error
                case {"log": text}:
                    report.log.append(str(text))
                case {"exit": code}:
                    report.exit = code
        report.log += done.stderr.splitlines()
        return report


def names_in(suite: str) -> Sequence[str]:
    """The names of the tests in a suite, so that each is a test of pytest's."""
    text = (HERE / "suites" / f"{suite}.js").read_text(encoding="utf-8")
    return [line.split('"')[1] for line in text.splitlines() if line.startswith('test("')]
