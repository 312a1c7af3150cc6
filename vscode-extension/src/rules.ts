// The pages of rules, as Markdown previews.
//
// A page is a read-only document under its own scheme, so that it can be opened, previewed and restored like any other.
import * as vscode from "vscode";
import { EXPLAIN_RULE, RuleName, RulePage, RULES } from "./protocol";
import { Server } from "./server";

const SCHEME = "nnx-rule";

export class RulePages implements vscode.TextDocumentContentProvider {
  constructor(private readonly server: Server) {}

  register(): vscode.Disposable {
    return vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const code = uri.path.replace(/^\//, "").replace(/\.md$/, "");
    return (await this.#ask<RulePage>(EXPLAIN_RULE, code))?.markdown ?? "The NNX language server does not run.";
  }

  /** Shows the page of a rule; without one, of the rule that was found at the cursor, or that is chosen. */
  async show(rule?: unknown): Promise<void> {
    const code = typeof rule === "string" ? rule : await this.#choose();
    if (code === undefined) return;
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${code}.md` });
    await vscode.commands.executeCommand("markdown.showPreviewToSide", uri);
  }

  async #choose(): Promise<string | undefined> {
    const rules = await this.#ask<RuleName[]>(RULES);
    if (rules === undefined) {
      void vscode.window.showErrorMessage("The NNX language server does not run.", "Restart").then((choice) => {
        if (choice) void this.server.restart();
      });
      return undefined;
    }
    const here = codesAtCursor();
    const items = rules.map(({ code, name, summary }) => ({ label: name, description: code, detail: summary }));
    items.sort((left, right) => Number(here.has(right.description)) - Number(here.has(left.description)));
    if (here.size === 1) return items[0]?.description;
    const options = { title: "Explain a rule of NNX", matchOnDescription: true, matchOnDetail: true };
    return (await vscode.window.showQuickPick(items, options))?.description;
  }

  async #ask<Answer>(command: string, ...args: unknown[]): Promise<Answer | undefined> {
    return this.server.client?.sendRequest<Answer>("workspace/executeCommand", { command, arguments: args });
  }
}

/** The rules of the findings on the line of the cursor. */
function codesAtCursor(): Set<string> {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) return new Set();
  const line = editor.selection.active.line;
  const found = vscode.languages
    .getDiagnostics(editor.document.uri)
    .filter((item) => item.source === "nnx" && item.range.start.line <= line && line <= item.range.end.line);
  return new Set(found.map(({ code }) => String(typeof code === "object" ? code.value : code)));
}
