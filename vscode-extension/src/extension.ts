// What VS Code starts: puts the parts together and gives commands their names.
import * as vscode from "vscode";
import { Installer } from "./install";
import { EXPLAIN_RULE } from "./protocol";
import { PythonExtension } from "./python";
import { RulePages } from "./rules";
import { Server, Status } from "./server";
import { SECTION } from "./settings";
import { statusItem } from "./status";
import { StructureView } from "./structure";

/** What other extensions get of this one. */
export interface Api {
  readonly status: Status;
  readonly onDidChangeStatus: vscode.Event<Status>;
}

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): Api {
  const log = vscode.window.createOutputChannel("NNX", { log: true });
  const python = new PythonExtension(log);
  const restart = () => void running.restart();
  const installer = new Installer(context.workspaceState, context.extensionPath, log, restart);
  const running = new Server(context.extension, log, python, installer, {
    // The server answers with the page of a rule; showing it is ours.
    executeCommand: (command, args, next) => (command === EXPLAIN_RULE ? rules.show(args[0]) : next(command, args)),
  });
  const rules = new RulePages(running);
  const structure = new StructureView(context.extensionUri, running);
  server = running;

  const commands: Record<string, (...args: never[]) => unknown> = {
    "nnx.restart": () => running.restart(),
    "nnx.showOutput": () => log.show(),
    "nnx.install": () => installer.install(),
    "nnx.fixAll": fixAll,
    "nnx.showRule": (rule?: string) => rules.show(rule),
    "nnx.showStructure": (subject?: { uri: string; class: string }) => structure.show(subject),
  };
  context.subscriptions.push(
    ...[log, python, installer, rules.register(), structure.register(), statusItem(running)],
    ...Object.entries(commands).map(([name, run]) => vscode.commands.registerCommand(name, run)),
    python.onDidChange(restart),
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration(`${SECTION}.server`) && restart()),
    vscode.workspace.onDidChangeWorkspaceFolders(restart), // another folder may bring another interpreter or scheme
  );
  restart();
  return {
    get status() {
      return running.status;
    },
    onDidChangeStatus: running.onDidChangeStatus,
  };
}

export async function deactivate(): Promise<void> {
  await server?.dispose();
}

/** Applies every safe fix in the active document. */
async function fixAll(): Promise<void> {
  const command = "editor.action.codeAction";
  await vscode.commands.executeCommand(command, { kind: "source.fixAll.nnx", apply: "first" });
}
