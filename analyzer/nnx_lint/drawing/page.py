"""A structure as one HTML page that needs nothing else: a tree that opens and closes, and the drawing.

The page loads nothing, and its policy forbids it; it works without scripts, which only add the filter and the buttons.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from nnx_lint.drawing import svg
from nnx_lint.drawing.words import headline, legend, more

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnx_lint.drawing import Drawing
    from nnx_lint.drawing.structure import Node

OPEN_LEVELS = 2
"""How many levels are open at first."""

STYLE = """\
:root { color-scheme: light dark; --text: #1f2328; --quiet: #59636e; --line: #d1d9e0; --back: #ffffff; --link: #0550ae;
  --data: #116329; --wrong: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --text: #d1d7e0; --quiet: #9198a1; --line: #3d444d; --back: #0d1117;
  --link: #79c0ff; --data: #7ee787; --wrong: #ff7b72; } }
body { margin: 2rem; color: var(--text); background: var(--back); font: 14px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.3rem; margin: 0 0 .3rem; }
p { margin: .2rem 0; color: var(--quiet); }
.tools { margin: 1rem 0; display: flex; gap: .5rem; flex-wrap: wrap; }
.tools[hidden] { display: none; }
input, button { font: inherit; color: inherit; background: var(--back); border: 1px solid var(--line);
  border-radius: 5px; padding: .2rem .6rem; }
.tree, .tree ul { list-style: none; margin: 0; padding: 0; }
.tree { font: 13px/1.7 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; overflow-x: auto; }
.tree ul { margin-left: .45rem; padding-left: 1.1rem; border-left: 1px solid var(--line); }
.tree li { white-space: nowrap; }
.tree li > span { padding-left: 1.1rem; }
summary { cursor: pointer; }
.name { color: var(--link); }
.variable, .array { color: var(--data); }
.quiet { color: var(--quiet); }
.wrong { color: var(--wrong); }
.hit { background: #fff8c5; color: #1f2328; }
.graph { overflow: auto; border: 1px solid var(--line); border-radius: 6px; margin-top: 1.5rem; max-height: 90vh; }
"""

SCRIPT = """\
const tree = document.querySelector(".tree"), filter = document.querySelector("#filter");
document.querySelector(".tools").hidden = false;
const all = open => tree.querySelectorAll("details").forEach(item => item.open = open);
document.querySelector("#open").onclick = () => all(true);
document.querySelector("#close").onclick = () => all(false);
filter.oninput = () => {
  const word = filter.value.trim().toLowerCase();
  tree.querySelectorAll(".hit").forEach(item => item.classList.remove("hit"));
  tree.querySelectorAll("li").forEach(item => {
    item.hidden = word !== "" && !item.textContent.toLowerCase().includes(word);
  });
  if (word === "") return;
  tree.querySelectorAll(".line").forEach(line => {
    if (!line.textContent.toLowerCase().includes(word)) return;
    line.classList.add("hit");
    for (let up = line.closest("details"); up; up = up.parentElement.closest("details")) up.open = true;
  });
};
"""

TOOLS = """\
<div class="tools" hidden>
<input id="filter" type="search" placeholder="filter" aria-label="filter">
<button id="open">open all</button>
<button id="close">close all</button>
</div>"""
"""They need the script, which shows them."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def write(drawing: Drawing) -> str:
    """The page."""
    root = drawing.root
    assert root is not None
    place = f"<p>{escape(root.qualified)} · {escape(str(root.defined))}</p>" if root.defined is not None else ""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(drawing.title)}</title>",
            f"<style>\n{STYLE}</style>",
            "</head>",
            "<body>",
            f"<h1>{escape(root.type)}</h1>",
            place,
            f"<p>{escape(headline(root).facts)}</p>",
            *(f"<p>{escape(line)}</p>" for line in legend(root)),
            TOOLS,
            '<ul class="tree">',
            *_items(root, 0),
            "</ul>",
            f'<div class="graph">\n{svg.element(root, drawing.title)}</div>',
            f"<script>\n{SCRIPT}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _items(node: Node, depth: int) -> Iterator[str]:
    note = more(node)
    if not node.children and not note:
        yield f"<li><span>{_line(node)}</span></li>"
        return
    yield f"<li><details{' open' if depth < OPEN_LEVELS else ''}><summary>{_line(node)}</summary><ul>"
    if note:
        yield f'<li><span class="quiet">{escape(note)}</span></li>'
    for child in node.children:
        yield from _items(child, depth + 1)
    yield "</ul></details></li>"


def _line(node: Node) -> str:
    words = headline(node)
    parts = [
        _span("name", words.name + words.sign) if words.name else "",
        _span(node.kind.value, words.what),
        _span("form", words.form),
        _span("quiet", words.facts),
        _span("wrong", words.wrong),
    ]
    title = f' title="{escape(str(node.assigned))}"' if node.assigned is not None else ""
    return f'<span class="line"{title}>' + " ".join(part for part in parts if part) + "</span>"


def _span(look: str, text: str) -> str:
    return f'<span class="{look}">{escape(text)}</span>' if text else ""
