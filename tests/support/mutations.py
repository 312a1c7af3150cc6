"""Programs that nobody would write: real ones with parts deleted, doubled, swapped, or taken from elsewhere.

Two kinds. *Token* mutations keep the layout of the text and mostly break its syntax; *tree* mutations exchange parts of
the syntax tree by parts of the same kind, so the result always parses, and mostly makes no sense.
"""

import ast
import copy
import io
import random
import tokenize
from collections.abc import Sequence

_KINDS = (ast.expr, ast.stmt)


def mutated_tokens(program: str, others: Sequence[str], chance: random.Random, times: int) -> str:
    """Delete, double, swap tokens; put in tokens and lines of other programs."""
    words = _tokens(program)
    for _ in range(times):
        position = chance.randrange(len(words))
        match chance.randrange(5):
            case 0:
                del words[position : position + chance.choice((1, 1, 2, 5))]
            case 1:
                words.insert(position, words[position])
            case 2:
                other = chance.randrange(len(words))
                words[position], words[other] = words[other], words[position]
            case 3:
                words.insert(position, chance.choice(_tokens(chance.choice(others))))
            case _:
                line = chance.choice(chance.choice(others).splitlines(keepends=True) or ["\n"])
                words.insert(position, line)
        if not words:
            return ""
    return "".join(words)


def mutated_tree(program: str, others: Sequence[str], chance: random.Random, times: int) -> str:
    """Exchange, delete and double expressions and statements, and give names, attributes and parameters other names."""
    tree = ast.parse(program)
    foreign = ast.parse(chance.choice(others))
    for _ in range(times):
        places = [
            (node, name, index, child)
            for node in ast.walk(tree)
            for name, value in ast.iter_fields(node)
            for index, child in enumerate(value if isinstance(value, list) else [value])
            if isinstance(child, (*_KINDS, ast.arg, ast.keyword, ast.alias))
        ]
        if not places:
            break
        node, name, index, child = chance.choice(places)
        kind = next((kind for kind in _KINDS if isinstance(child, kind)), type(child))
        source = chance.choice((tree, foreign))
        parts = [part for part in ast.walk(source) if isinstance(part, kind) and _fits(part, child)]
        new = copy.deepcopy(chance.choice(parts)) if parts else child
        held = getattr(node, name)
        if not isinstance(held, list):
            setattr(node, name, new)
        elif kind is ast.stmt and chance.random() < 0.3 and len(held) > 1:
            del held[index]
        elif kind is ast.stmt and chance.random() < 0.3:
            held.insert(index, new)
        else:
            held[index] = new
    try:
        text = ast.unparse(ast.fix_missing_locations(tree))
        ast.parse(text)
    except (ValueError, SyntaxError, RecursionError, TypeError, AttributeError):
        return program  # a tree that is no program, such as a starred expression on its own
    return text


def _fits(part: ast.AST, place: ast.AST) -> bool:
    """Whether a part may stand where the other one does: a target stays one."""
    return type(getattr(part, "ctx", ast.Load())) is type(getattr(place, "ctx", ast.Load()))


def _tokens(program: str) -> list[str]:
    """The tokens with the white space before them; joined they are the program."""
    words: list[str] = []
    lines = io.StringIO(program).readline
    row, column = 1, 0
    text = program.splitlines(keepends=True)
    try:
        for token in tokenize.generate_tokens(lines):
            if token.string:
                (start_row, start_column), (row_end, column_end) = token.start, token.end
                gap = text[row - 1][column:start_column] if row == start_row else text[start_row - 1][:start_column]
                words.append(gap + token.string)
                row, column = row_end, column_end
    except (tokenize.TokenError, SyntaxError, ValueError, SystemError):  # the last two for what is no character
        pass
    return words or [program or "\n"]
