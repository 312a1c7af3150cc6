"""The command ``nnx-lsp``."""

from __future__ import annotations

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # the workspace: its `typing.py` or `math.py` would hide Python's own

import argparse
import gc
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

FAILURE = 2


def main(words: Sequence[str] | None = None) -> int:
    """Serve until the client leaves; returns the exit code."""
    given = _parser().parse_args(words)
    from nnx_lsp.generated import kept

    gc.disable()  # the worker collects, while nobody waits
    try:
        if given.log_file is not None:
            logging.basicConfig(
                filename=given.log_file, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
            )
        else:
            logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s: %(message)s")
    except OSError as error:
        print(f"error: {given.log_file}: cannot be written: {error.strerror or error}", file=sys.stderr)
        return FAILURE
    try:
        with kept():
            from nnx_lsp.server import build
    except ModuleNotFoundError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        print("error: the language server needs pygls; `pip install nnxkit[lsp]` installs it", file=sys.stderr)
        return FAILURE
    server = build()
    if given.tcp is None:
        server.start_io()
        return 0
    host, port = given.tcp
    print(f"nnx-lsp waits for a client on {host}:{port}", flush=True)
    try:
        server.start_tcp(host, port)
    except OSError as error:
        print(f"error: cannot listen on {host}:{port}: {error.strerror or error}", file=sys.stderr)
        return FAILURE
    return 0


def _parser() -> argparse.ArgumentParser:
    import nnx_rules

    parser = argparse.ArgumentParser(prog="nnx-lsp", description="The language server of nnxkit.")
    parser.add_argument("--stdio", action="store_true", help="talk over standard input and output (the default)")
    parser.add_argument("--tcp", type=_address, metavar="[HOST:]PORT", help="wait for one client on this address")
    parser.add_argument("--log-file", metavar="FILE", help="write a log into this file instead of to standard error")
    parser.add_argument("--version", action="version", version=f"nnx-lsp {nnx_rules.__version__}")
    return parser


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not (port.isdecimal() and int(port) < 2**16):
        raise argparse.ArgumentTypeError(f"{text!r} is no port, such as 2087 or 127.0.0.1:2087")
    return host or "127.0.0.1", int(port)


if __name__ == "__main__":
    sys.exit(main())
