"""One build of the extension for all tests, and plain words where something is missing."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from workbench import Workbench, build, missing


@pytest.fixture(scope="session")
def vsix() -> Path:
    """The extension, as users get it."""
    lacking = missing()
    if lacking:
        pytest.skip("not tested in VS Code, since these are not here: " + "; ".join(lacking))
    return build()


@pytest.fixture(scope="session")
def workbench(vsix: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Workbench]:
    """Makes a VS Code of a folder, with settings and an environment."""

    def make(
        folder: Path, settings: Mapping[str, object] | None = None, environment: Mapping[str, str] | None = None
    ) -> Workbench:
        return Workbench(tmp_path_factory.mktemp("vscode"), vsix, folder, settings, environment)

    return make
