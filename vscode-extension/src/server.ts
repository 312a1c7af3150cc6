// The life of the server: found, started, stopped and started anew.
//
// There is one server for all folders of a window. Everything that makes another one necessary - a setting, another
// interpreter, trust, the command - asks for a restart, and restarts that come together are one.
import * as vscode from "vscode";
import {
  CloseAction,
  ConfigurationParams,
  ConfigurationRequest,
  DocumentSelector,
  ErrorAction,
  ErrorHandler,
  Executable,
  LanguageClient,
  LanguageClientOptions,
  RevealOutputChannelOn,
  State,
} from "vscode-languageclient/node";
import { coalesced } from "./coalesce";
import { Installer } from "./install";
import { findInterpreter, Interpreter, OLDEST, Search } from "./interpreter";
import { PythonExtension } from "./python";
import { OWN, SECTION, serverSettings } from "./settings";

/** What the server is doing, for the status item and for other extensions. */
export type Status =
  | { kind: "starting" }
  | { kind: "running"; version: string; bundled: boolean; interpreter: Interpreter }
  | { kind: "stopped"; reason: string };

const RESTART_DELAY = 200;
const STOP_TIME = 3_000;

/** A server that ends so often within this time is not started again. */
const ENDS = { count: 5, within: 180_000 };

export class Server implements vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<Status>();
  readonly #trace = vscode.window.createOutputChannel("NNX Trace", { log: true });
  #client: LanguageClient | undefined;
  #status: Status = { kind: "starting" };
  #disposed = false;

  readonly onDidChangeStatus = this.#changed.event;

  /** Starts the server, anew if it runs. */
  readonly restart = coalesced(() => this.#restart(), RESTART_DELAY);

  constructor(
    private readonly extension: vscode.Extension<unknown>,
    private readonly log: vscode.LogOutputChannel,
    private readonly python: PythonExtension,
    private readonly installer: Installer,
    private readonly middleware: NonNullable<LanguageClientOptions["middleware"]>,
  ) {}

  get status(): Status {
    return this.#status;
  }

  /** The client, while the server runs. */
  get client(): LanguageClient | undefined {
    return this.#client?.state === State.Running ? this.#client : undefined;
  }

  #set(status: Status): void {
    this.#status = status;
    this.#changed.fire(status);
  }

  async #restart(): Promise<void> {
    if (!this.#disposed) this.#set({ kind: "starting" }); // the old server does not answer any more while it stops
    await this.#stop();
    if (this.#disposed) return;
    try {
      await this.#start();
    } catch (error) {
      this.log.error(`the server did not start: ${String(error)}`);
      await this.#stop();
      this.#failed("The NNX language server did not start.", "Show Log");
    }
  }

  async #start(): Promise<void> {
    const settings = serverSettings();
    const home = this.extension.extensionUri;
    const search = await findInterpreter(settings.interpreter, home.fsPath, this.python, this.log);
    this.#complain(search);
    const interpreter = search.found;
    // Who wants the copy inside of the extension need not be asked to install another.
    this.installer.interpreter = settings.importStrategy === "fromEnvironment" ? interpreter : undefined;
    if (interpreter === undefined) {
      const needed = `NNX needs Python ${OLDEST.join(".")} or later, and found none.`;
      return this.#failed(`${needed} Install one, or name it in the settings.`, "Open Settings");
    }
    const installed = interpreter.server && settings.importStrategy === "fromEnvironment" && vscode.workspace.isTrusted;
    // Neither way of starting puts the current folder on the path of imports.
    const args = installed ? ["-P", "-m", "nnx_lsp"] : ["-I", bundledServer(home)];
    const command: Executable = {
      command: interpreter.path,
      args: [...args, "--stdio", ...settings.args],
      options: { cwd: workingFolder(home) },
    };
    this.log.info(`$ ${command.command} ${(command.args ?? []).join(" ")}`);
    const client = new LanguageClient(SECTION, "NNX", command, this.#options());
    this.#client = client;
    client.onDidChangeState(({ newState }) => {
      if (this.#client !== client) return;
      if (newState === State.Running) {
        const version = client.initializeResult?.serverInfo?.version ?? "";
        this.#set({ kind: "running", version, bundled: !installed, interpreter });
      } else if (newState === State.Starting) {
        this.#set({ kind: "starting" });
      } else {
        this.#set({ kind: "stopped", reason: "The NNX language server ended." });
      }
    });
    await client.start();
  }

  #options(): LanguageClientOptions {
    return {
      documentSelector: documentSelector(),
      outputChannel: this.log,
      traceOutputChannel: this.#trace,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: { showsPages: true },
      errorHandler: new Restarting(),
      diagnosticPullOptions: { onChange: true, onSave: true },
      markdown: { isTrusted: { enabledCommands: ["nnx.showRule"] } },
      middleware: {
        ...this.middleware,
        workspace: { ...this.middleware.workspace, configuration: answerConfiguration },
      },
    };
  }

  /** An interpreter that somebody asked for is not passed over silently. */
  #complain(search: Search): void {
    for (const { origin, path, reason } of search.rejected) {
      if (origin !== "setting") continue;
      const message = `nnx.server.interpreter is not used: ${path}: ${reason}.`;
      void vscode.window.showWarningMessage(message, "Open Settings").then((choice) => choice && openSettings());
    }
  }

  #failed(reason: string, mend: "Open Settings" | "Show Log"): void {
    this.#set({ kind: "stopped", reason });
    void vscode.window.showErrorMessage(reason, mend).then((choice) => {
      if (choice === "Open Settings") openSettings();
      if (choice === "Show Log") this.log.show();
    });
  }

  async #stop(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    try {
      await client?.dispose(STOP_TIME);
    } catch (error) {
      this.log.warn(`the server did not stop in order: ${String(error)}`);
    }
  }

  async dispose(): Promise<void> {
    this.#disposed = true;
    await this.#stop();
    this.#trace.dispose();
    this.#changed.dispose();
  }
}

/**
 * Starts a server that ended again. What could not be sent to it says nothing: a server that dies while somebody types
 * leaves many such errors behind, and that it has ended is told besides.
 */
class Restarting implements ErrorHandler {
  #ends: number[] = [];

  error() {
    return { action: ErrorAction.Continue };
  }

  closed() {
    const now = Date.now();
    this.#ends = [...this.#ends.filter((end) => now - end < ENDS.within), now];
    if (this.#ends.length < ENDS.count) return { action: CloseAction.Restart };
    const message = `The NNX language server ended ${ENDS.count} times in a short while, and is not started again.`;
    return { action: CloseAction.DoNotRestart, message };
  }
}

function bundledServer(home: vscode.Uri): string {
  return vscode.Uri.joinPath(home, "bundled", "serve.py").fsPath;
}

function workingFolder(home: vscode.Uri): string {
  const local = vscode.workspace.workspaceFolders?.find((folder) => folder.uri.scheme === "file");
  return (local?.uri ?? home).fsPath;
}

/**
 * Python documents on disk, in notebooks, unsaved, and wherever else the folders of the workspace lie; not the left
 * side of a comparison, nor what version control shows. Configuration files are completed.
 */
export function documentSelector(): DocumentSelector {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const schemes = new Set(["file", "untitled", ...folders.map((folder) => folder.uri.scheme)]);
  return [
    ...[...schemes].map((scheme) => ({ scheme, language: "python" })),
    { language: "python", notebook: "jupyter-notebook" },
    ...["nnx-lint.toml", "pyproject.toml"].map((name) => ({ scheme: "file", pattern: `**/${name}` })),
  ];
}

/** What the server gets for its section: its own settings only, so that it can complain of unknown ones. */
async function answerConfiguration(
  params: ConfigurationParams,
  token: vscode.CancellationToken,
  next: ConfigurationRequest.HandlerSignature,
): Promise<unknown[]> {
  const answer = await next(params, token);
  if (!Array.isArray(answer)) return [];
  return answer.map((value: unknown, index) => {
    if (params.items[index]?.section !== SECTION || typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).filter(([key]) => !OWN.includes(key)));
  });
}

function openSettings(): void {
  void vscode.commands.executeCommand("workbench.action.openSettings", "nnx.server");
}
