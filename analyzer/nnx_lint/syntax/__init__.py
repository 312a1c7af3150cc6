"""The syntax of source text: trees of it, going over them, and what they say without any meaning.

From the ground up: :mod:`~nnx_lint.syntax.walk` goes over trees, :mod:`~nnx_lint.syntax.compact` makes them small, and
:mod:`~nnx_lint.syntax.trees` is what a text becomes. A text is parsed by :mod:`~nnx_lint.syntax.parsing`; one that is
broken falls into statements by its layout (:mod:`~nnx_lint.syntax.layout`) and is recovered from these
(:mod:`~nnx_lint.syntax.recovery`, with :mod:`~nnx_lint.syntax.versions` for the syntax of newer Pythons and
:mod:`~nnx_lint.syntax.names` for what the broken parts mention). An edited text is parsed where it was edited
(:mod:`~nnx_lint.syntax.edits`), and what is written in a roundabout way is made plain wherever it is parsed
(:mod:`~nnx_lint.syntax.plain`). :mod:`~nnx_lint.syntax.binding` and :mod:`~nnx_lint.syntax.parameters` read names off
statements and functions.
"""
