"""``nnx-lsp``: the language server of nnxkit, a thin adapter over :mod:`nnx_lint.ide`.

``server`` speaks the protocol (pygls does the framing and the types), ``worker`` is the one thread in which all
analysis happens, ``session`` what that thread knows of folders and documents, ``convert`` the way between offsets and
the client's positions. ``features`` has one module for each kind of request.

Invariants: the thread that reads messages never analyses, so it always answers; what belongs to the session is touched
by the worker only; an answer is about the newest text, and an analysis of an older one is given up.
"""
