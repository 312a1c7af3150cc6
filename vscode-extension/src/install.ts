// Offers to install nnxkit beside the code, and does it.
//
// The bundled copy makes this optional: an installed one has the version that the project pins. The offer comes only
// where a document is about NNX, once, and never in an untrusted workspace.
import { spawn } from "node:child_process";
import * as vscode from "vscode";
import { Interpreter } from "./interpreter";

const REQUIREMENT = "nnxkit[lsp]";
const DECLINED = "installation.declined";

export class Installer implements vscode.Disposable {
  #interpreter: Interpreter | undefined;
  #offered = false;
  readonly #opened: vscode.Disposable;

  constructor(
    private readonly memory: vscode.Memento,
    private readonly home: string,
    private readonly log: vscode.LogOutputChannel,
    private readonly installed: () => void,
  ) {
    this.#opened = vscode.workspace.onDidOpenTextDocument((document) => this.#consider(document));
  }

  /** The interpreter that runs the server, or none. */
  set interpreter(value: Interpreter | undefined) {
    this.#interpreter = value;
    vscode.workspace.textDocuments.forEach((document) => this.#consider(document));
  }

  #consider(document: vscode.TextDocument): void {
    const interpreter = this.#interpreter;
    if (this.#offered || interpreter === undefined || interpreter.server || !vscode.workspace.isTrusted) return;
    if (document.languageId !== "python" || !/\bnnx(kit)?\b/.test(document.getText())) return;
    this.#offered = true;
    if (!this.memory.get(DECLINED, false)) void this.#offer(interpreter);
  }

  async #offer(interpreter: Interpreter): Promise<void> {
    const missing = interpreter.nnxkit === null ? "nnxkit is" : `The server of nnxkit ${interpreter.nnxkit} is`;
    const choice = await vscode.window.showInformationMessage(
      `${missing} not installed for ${interpreter.path}. The copy inside of the extension is used.`,
      "Install",
      "Don't Ask Again",
    );
    if (choice === "Install") await this.install();
    if (choice === "Don't Ask Again") await this.memory.update(DECLINED, true);
  }

  /** Installs nnxkit for the interpreter; resolves to whether it worked. */
  async install(): Promise<boolean> {
    const interpreter = this.#interpreter;
    if (interpreter === undefined || !vscode.workspace.isTrusted) {
      const reason = interpreter === undefined ? "no Python was found" : "this workspace is not trusted";
      void vscode.window.showErrorMessage(`nnxkit cannot be installed: ${reason}.`);
      return false;
    }
    const title = `Installing ${REQUIREMENT} for ${interpreter.path}`;
    const place = vscode.ProgressLocation.Notification;
    const done = await vscode.window.withProgress({ location: place, title, cancellable: true }, (_, token) =>
      this.#attempts(interpreter.path, token),
    );
    if (done) this.installed();
    return done;
  }

  async #attempts(python: string, token: vscode.CancellationToken): Promise<boolean> {
    const attempts: [string, string[]][] = [
      [python, ["-m", "pip", "install", "--disable-pip-version-check", REQUIREMENT]],
      ["uv", ["pip", "install", "--python", python, REQUIREMENT]], // environments of uv have no pip
    ];
    for (const [program, args] of attempts) {
      if (token.isCancellationRequested) return false;
      if (await this.#run(program, args, token)) return true;
    }
    if (!token.isCancellationRequested) {
      const command = [python, ...(attempts[0]?.[1] ?? [])].join(" ");
      const message = `nnxkit was not installed. In a terminal: ${command}`;
      void vscode.window.showErrorMessage(message, "Show Log").then((choice) => choice && this.log.show());
    }
    return false;
  }

  #run(program: string, args: string[], token: vscode.CancellationToken): Promise<boolean> {
    this.log.info(`$ ${program} ${args.join(" ")}`);
    return new Promise((resolve) => {
      const child = spawn(program, args, { cwd: this.home });
      const cancelled = token.onCancellationRequested(() => child.kill());
      child.stdout.on("data", (text: Buffer) => this.log.info(text.toString().trimEnd()));
      child.stderr.on("data", (text: Buffer) => this.log.warn(text.toString().trimEnd()));
      const end = (worked: boolean) => {
        cancelled.dispose();
        resolve(worked);
      };
      child.on("error", (error) => {
        this.log.warn(error.message);
        end(false);
      });
      child.on("close", (code) => end(code === 0));
    });
  }

  dispose(): void {
    this.#opened.dispose();
  }
}
