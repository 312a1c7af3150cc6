// Draws the structure of a Module as a tree in the webview of structure.ts.
//
// The tree is drawn anew with every message, and what a reader has opened or closed is kept by path. A row is a button
// where it leads somewhere, so that keyboards reach it.
import type { Node, Place } from "../protocol";

interface Message {
  subject: { uri: string; class: string };
  root: Node | null;
}

const vscode = acquireVsCodeApi();
const page = document.getElementById("structure") as HTMLElement;
const OPEN_LEVELS = 3;

/** What was opened or closed by hand, by path. */
const toggled = new Map<string, boolean>();

window.addEventListener("message", ({ data }: MessageEvent<Message>) => {
  vscode.setState(data.subject);
  const old = page.querySelector(".tree");
  if (data.root !== null) {
    page.replaceChildren(tree(data.root));
    return;
  }
  const note = element("p", "quiet", `${data.subject.class} cannot be read at the moment.`);
  page.replaceChildren(note, ...(old === null ? [] : [old]));
});
vscode.postMessage({ ready: true });

function tree(root: Node): HTMLElement {
  const list = element("ul", "tree");
  list.setAttribute("role", "tree");
  list.append(item(root, 0));
  return list;
}

function item(node: Node, level: number): HTMLElement {
  const entry = element("li", "");
  entry.setAttribute("role", "treeitem");
  const children = node.children ?? [];
  if (children.length === 0) {
    entry.append(row(node));
    return entry;
  }
  const key = JSON.stringify(node.path);
  const details = document.createElement("details");
  details.open = toggled.get(key) ?? level < OPEN_LEVELS;
  details.addEventListener("toggle", () => toggled.set(key, details.open));
  const summary = document.createElement("summary");
  summary.append(row(node));
  const below = element("ul", "");
  below.setAttribute("role", "group");
  below.append(...children.map((child) => item(child, level + 1)));
  details.append(summary, below);
  entry.append(details);
  return entry;
}

function row(node: Node): HTMLElement {
  const place = node.assigned ?? node.defined;
  const line = element(place === undefined ? "span" : "button", `row ${node.kind}`);
  line.dataset["path"] = pathText(node.path);
  line.append(...parts(node));
  if (place !== undefined) {
    line.title = "Go to the source";
    line.addEventListener("click", (event) => {
      event.preventDefault(); // a click into a summary would close it, too
      vscode.postMessage({ open: place satisfies Place });
    });
  }
  return line;
}

/** The words of a row: name, class or value, shape, status, how much is in there, and what is wrong. */
function parts(node: Node): HTMLElement[] {
  const words: HTMLElement[] = [];
  const say = (style: string, text: string | undefined) => {
    if (text) words.push(element("span", style, text));
  };
  if (node.path.length > 0) say("name", node.name);
  words.push(typeOf(node));
  if (node.count !== undefined) say("quiet", `× ${node.count ?? "n"}`);
  if (node.shape) say("shape", `(${node.shape.join(", ")}${node.shape.length === 1 ? "," : ""})`);
  say("quiet", node.dtype);
  say(node.status ?? "", node.status);
  if (node.parameters && node.children) say("quiet", counted(node.parameters));
  say("quiet", node.optional);
  say("wrong", node.rule);
  say("quiet", node.note);
  if (node.folded) say("quiet", "…");
  return words;
}

function typeOf(node: Node): HTMLElement {
  if (node.kind === "value") return element("span", "type", `= ${node.type}`);
  if (node.kind === "reference") return element("span", "type", `→ ${pathText(node.target ?? [])}`);
  const type = element("span", "type", node.type);
  if (node.arguments) type.append(element("span", "quiet", `(${node.arguments})`));
  return type;
}

function counted(parameters: number): string {
  return `${parameters.toLocaleString("en")} parameter${parameters === 1 ? "" : "s"}`;
}

function pathText(path: Node["path"]): string {
  return path.map((part) => (typeof part === "string" ? `.${part}` : `[${part ?? "…"}]`)).join("").replace(/^\./, "");
}

function element(name: string, style: string, text = ""): HTMLElement {
  const made = document.createElement(name);
  made.className = style;
  made.textContent = text;
  return made;
}
