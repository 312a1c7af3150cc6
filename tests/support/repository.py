"""Where the repository lies, and which files belong to it."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def repository_files() -> list[Path]:
    """Every file that is tracked, or is neither tracked nor ignored: what a commit of everything would hold."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    paths = (ROOT / name for name in listed.stdout.split("\0") if name)
    return sorted(path for path in paths if path.is_file())
