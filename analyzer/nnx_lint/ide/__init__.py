"""Answers for editors: what the analyzer knows of a place in a program that is being written.

Nothing here knows a protocol. A question is about an offset or a span of a :class:`~nnx_lint.source.SourceFile`, an
answer is a plain record; :mod:`nnx_lsp` turns positions, ranges and capabilities into these and back.

``analysis`` keeps the engine up to date with what is being typed, ``notes`` writes down during a check what the other
modules answer from, and there is one module for each kind of answer.

Invariants: an answer is about the text that it was asked for, as far as the text can be read, and never runs or imports
the program; where something is not known there is no answer.
"""
