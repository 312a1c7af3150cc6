// The view of a Module's structure: a webview beside the editor.
//
// The panel belongs to one class of one document. It asks the server again after every edit of Python code, since the
// tree depends on other classes too, and keeps what it shows while the code is broken. Answers that come late are
// dropped. The page gets data and sends clicks; it is made by webview/structure.ts.
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { GRAPH, Place, Structure, StructureQuery } from "./protocol";
import { Server } from "./server";

const VIEW = "nnx.structure";
const EDIT_DELAY = 150;

/** What a panel is about; also what VS Code keeps of it over a restart. */
interface Subject {
  uri: string;
  class: string;
}

export class StructureView implements vscode.WebviewPanelSerializer {
  #panel: vscode.WebviewPanel | undefined;
  #subject: Subject | undefined;
  #asked = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly extension: vscode.Uri,
    private readonly server: Server,
  ) {}

  register(): vscode.Disposable {
    return vscode.Disposable.from(
      vscode.window.registerWebviewPanelSerializer(VIEW, this),
      vscode.workspace.onDidChangeTextDocument(({ document }) => document.languageId === "python" && this.#later()),
      this.server.onDidChangeStatus(({ kind }) => kind === "running" && this.#later()),
      new vscode.Disposable(() => this.#panel?.dispose()),
    );
  }

  /** Shows the class at the cursor, or the one that is given; if the cursor is in none, asks which. */
  async show(given?: Partial<Subject>): Promise<void> {
    const subject = given?.uri && given.class ? { uri: given.uri, class: given.class } : await this.#choose();
    if (subject === undefined) return;
    this.#subject = subject;
    if (this.#panel === undefined) {
      const where = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
      this.#adopt(vscode.window.createWebviewPanel(VIEW, "NNX structure", where));
    } else {
      this.#panel.reveal(undefined, true);
    }
    await this.#update();
  }

  async deserializeWebviewPanel(panel: vscode.WebviewPanel, state: Subject | undefined): Promise<void> {
    this.#panel?.dispose();
    this.#subject = state;
    this.#adopt(panel);
    await this.#update();
  }

  #adopt(panel: vscode.WebviewPanel): void {
    this.#panel = panel;
    panel.iconPath = vscode.Uri.joinPath(this.extension, "media", "icon.png");
    panel.webview.options = { enableScripts: true, localResourceRoots: [this.extension] };
    panel.onDidDispose(() => {
      if (this.#panel === panel) this.#panel = this.#subject = undefined;
    });
    panel.webview.onDidReceiveMessage((message: { ready: true } | { open: Place }) => {
      if ("open" in message) void open(message.open);
      else void this.#update();
    });
    panel.webview.html = this.#page(panel.webview);
  }

  #later(): void {
    if (this.#panel === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#update(), EDIT_DELAY);
  }

  async #update(): Promise<void> {
    const subject = this.#subject;
    if (subject === undefined) return;
    const number = ++this.#asked;
    const structure = await this.#ask(subject);
    if (number !== this.#asked || this.#panel === undefined) return;
    this.#panel.title = `${subject.class} structure`;
    await this.#panel.webview.postMessage({ subject, root: structure?.root ?? null });
  }

  async #choose(): Promise<Subject | undefined> {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.languageId !== "python") {
      void vscode.window.showInformationMessage("Open a Python file, and put the cursor into a Module's class.");
      return undefined;
    }
    const uri = editor.document.uri.toString();
    const { line, character } = editor.selection.active;
    const structure = await this.#ask({ uri, position: { line, character } });
    if (structure?.class) return { uri, class: structure.class };
    const names = (structure?.modules ?? []).map(({ name }) => name);
    if (structure !== undefined && names.length === 0) {
      void vscode.window.showInformationMessage("There is no Module of NNX in this file.");
    }
    const name = names.length > 1 ? await vscode.window.showQuickPick(names, { title: "Structure of" }) : names[0];
    return name === undefined ? undefined : { uri, class: name };
  }

  async #ask(query: StructureQuery): Promise<Structure | undefined> {
    const { client } = this.server;
    if (client === undefined) return undefined;
    return client.sendRequest<Structure>("workspace/executeCommand", { command: GRAPH, arguments: [query] });
  }

  #page(webview: vscode.Webview): string {
    const nonce = randomBytes(16).toString("hex");
    const file = (...parts: string[]) => webview.asWebviewUri(vscode.Uri.joinPath(this.extension, ...parts)).toString();
    const policy = `default-src 'none'; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'`;
    return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<link rel="stylesheet" href="${file("media", "structure.css")}">
<title>NNX structure</title>
</head>
<body>
<main id="structure"></main>
<script nonce="${nonce}" src="${file("dist", "structure.js")}"></script>
</body>
</html>`;
  }
}

async function open(place: Place): Promise<void> {
  const uri = vscode.Uri.parse(place.uri, true);
  const document = await vscode.workspace.openTextDocument(uri);
  const start = document.lineAt(Math.min(place.line - 1, document.lineCount - 1)).range.start;
  const shown = vscode.window.visibleTextEditors.find((editor) => editor.document.uri.toString() === uri.toString());
  const viewColumn = shown?.viewColumn ?? vscode.ViewColumn.One;
  await vscode.window.showTextDocument(document, { viewColumn, selection: new vscode.Range(start, start) });
}
