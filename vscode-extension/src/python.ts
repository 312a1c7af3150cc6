// The interpreter that the Python extension has selected, if that extension is there.
import * as vscode from "vscode";

const ID = "ms-python.python";

/** The part of the Python extension's interface that is used. */
interface Api {
  environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(environment: { path: string }): Promise<{ executable: { uri?: vscode.Uri } } | undefined>;
    onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

export class PythonExtension implements vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<void>();
  #api: Promise<Api | undefined> | undefined;
  #subscription: vscode.Disposable | undefined;

  /** Another interpreter was selected. */
  readonly onDidChange = this.#changed.event;

  constructor(private readonly log: vscode.LogOutputChannel) {}

  /** The path of the interpreter for the first folder of the workspace. */
  async selected(): Promise<string | undefined> {
    const api = await (this.#api ??= this.#connect());
    if (api === undefined) return undefined;
    try {
      const active = api.environments.getActiveEnvironmentPath(vscode.workspace.workspaceFolders?.[0]?.uri);
      const environment = await api.environments.resolveEnvironment(active);
      return environment?.executable.uri?.fsPath;
    } catch (error) {
      this.log.warn(`the Python extension did not answer: ${String(error)}`);
      return undefined;
    }
  }

  async #connect(): Promise<Api | undefined> {
    const extension = vscode.extensions.getExtension<Api>(ID);
    if (extension === undefined) {
      this.#api = undefined; // it may be installed later
      return undefined;
    }
    try {
      const api = await extension.activate();
      this.#subscription = api.environments.onDidChangeActiveEnvironmentPath(() => this.#changed.fire());
      return api;
    } catch (error) {
      this.log.warn(`the Python extension could not be used: ${String(error)}`);
      return undefined;
    }
  }

  dispose(): void {
    this.#subscription?.dispose();
    this.#changed.dispose();
  }
}
