"""What a text that does not parse mentions: the names that it may bind, and the names and attributes that it uses.

This is a guess on the safe side: a name that only may be bound counts as bound, and everything that is mentioned counts
as handed to a call of which nothing is known. Words in strings and comments count for nothing, where these can be told.
"""

from __future__ import annotations

import ast
import keyword
import re
from typing import TypeVar

from nnx_lint.syntax.trees import Blank

_NO_CODE = re.compile(
    r"""(\"\"\"|''')(?:\\.|.)*?(?:\1|\Z)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|#[^\n]*""", re.DOTALL
)
_TOKEN = re.compile(r"[^\W\d]\w*|\d\w*|[=!<>]=|\n|[^\w\s]")
_DEFINITION = re.compile(r"\s*(?:@[^\n]*\n\s*)*(?:async[ \t]+)?(def|class)[ \t]+([^\W\d]\w*)")
_MARGIN = re.compile(r"\s*?([ \t]*)(?=\S)")

_NEXT = frozenset({"def", "class", "as"})
"""What binds the name that follows."""

_FOLLOWING = frozenset({"import", "for", "del", "global", "nonlocal", "case"})
"""What binds the names that follow, up to the end of the line or the word or sign that ends the list."""

_ENDS = frozenset({"\n", ";", ":", "in", "if"})

_ANNOTATION = ":"
_BREAKS = frozenset({"\n", ";"})
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_AUGMENTED = frozenset(":+-*/%@&|^<>")

_LEAVE = frozenset({"return", "yield", "await"})

MAX_TEXT = 100_000
"""Of a longer text the rest is not looked at: it is no program."""

N = TypeVar("N", bound=ast.AST)


def mentioned(text: str, place: ast.stmt) -> Blank:
    """The blank for a text, to stand at the place of a statement. A text that is missing may do anything."""
    code = _NO_CODE.sub(" ", text[:MAX_TEXT].replace("\r", "\n"))
    words = _Words()
    for token in _TOKEN.finditer(code):
        words.read(token[0])
    words.read("\n")
    blank = _at(place, Blank())
    definition = _DEFINITION.match(code)
    alone = definition is not None and _is_alone(code)
    bound = [definition[2]] if definition is not None and alone else list(words.bound)
    blank.targets = [_at(place, ast.Name(name, ast.Store())) for name in bound]
    uses = [_expression(chain, place) for chain in words.chains]
    unknown = _at(place, ast.Constant(None))
    blank.uses = [_at(place, ast.Call(unknown, uses, []))] if uses else []
    blank.returns = not text or words.leaves
    blank.method = definition[2] if definition is not None and alone and definition[1] == "def" else None
    return blank


def _is_alone(code: str) -> bool:
    """Whether a text that begins with a function or class has nothing beside it."""
    margin = _MARGIN.match(code)
    rest = code[margin.end() :] if margin is not None else ""
    beside = re.compile(rf"\n{margin[1]}(?![@\s)]|(?:async[ \t]+)?(?:def|class)\b|\Z)") if margin is not None else None
    return beside is not None and beside.search(rest) is None


def _at(place: ast.stmt, node: N) -> N:
    return ast.copy_location(node, place)


def _expression(names: tuple[str, ...], place: ast.stmt) -> ast.expr:
    node: ast.expr = _at(place, ast.Name(names[0], ast.Load()))
    for name in names[1:4]:  # what is deeper than that concerns the object that these lead to
        node = _at(place, ast.Attribute(node, name, ast.Load()))
    return node


class _Words:
    """Reads the words and signs of a text in order.

    ``chains`` are the dotted names, ``bound`` the names that may be bound, both in order and without repetition.
    """

    def __init__(self) -> None:
        self.chains: dict[tuple[str, ...], None] = {}
        self.bound: dict[str, None] = {}
        self.leaves = False
        self._chain: list[str] = []
        self._dotted = False
        self._targets: list[str] = []  # what an equals sign would bind
        self._once = False  # whether the next name is bound
        self._binder = ""  # what binds all names that follow
        self._begins = True  # whether a statement begins here
        self._simple = True  # whether it has no keyword so far
        self._brackets = 0

    def read(self, token: str) -> None:
        if token.isidentifier() and not keyword.iskeyword(token) and not (token == "case" and self._begins):
            if not self._dotted:
                self._end_chain("")
            self._chain.append(token)
            self._dotted = self._begins = False
            return
        if token == "." and self._chain:
            self._dotted = True
            return
        self._end_chain(token)
        self._dotted = self._once = False
        outside = self._brackets == 0
        if token == "=" or (token == ":" and self._simple and outside):
            self.bound.update(dict.fromkeys(self._targets))
            self._simple = False
            self._targets.clear()
            self._binder = _ANNOTATION if token == ":" else ""
        elif token in _NEXT:
            self._once = True
        elif token in _FOLLOWING:
            self._binder = token
        elif token in _ENDS and (outside or token != "\n"):
            self._binder = ""
        self._brackets = max(self._brackets + (token in _OPENING) - (token in _CLOSING), 0)
        self._begins = token in _BREAKS and outside
        self._simple = self._begins or (self._simple and not token.isidentifier())
        if self._begins:
            self._targets.clear()
        self.leaves = self.leaves or token in _LEAVE

    def _end_chain(self, token: str) -> None:
        if not self._chain:
            return
        chain, self._chain = tuple(self._chain), []
        self.chains[chain] = None
        if self._once or self._binder == "import":
            self.bound[chain[0]] = None
        elif len(chain) == 1 and token not in ("(", "["):
            if self._binder not in ("", _ANNOTATION):
                self.bound[chain[0]] = None
            elif not self._binder and (token in (",", "=", ":", "") or token in _AUGMENTED):
                self._targets.append(chain[0])
        self._once = False
