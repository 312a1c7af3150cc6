// The item among the language states of a Python document: what runs, where from, and a way to start it anew.
import * as vscode from "vscode";
import { Server, Status } from "./server";

export function statusItem(server: Server): vscode.Disposable {
  const item = vscode.languages.createLanguageStatusItem("nnx.status", [
    { language: "python" },
    { notebookType: "jupyter-notebook" },
  ]);
  item.name = "NNX";
  const show = (status: Status) => Object.assign(item, DESCRIBED[status.kind](status as never));
  show(server.status);
  const listener = server.onDidChangeStatus(show);
  return vscode.Disposable.from(item, listener);
}

type Shown = Pick<vscode.LanguageStatusItem, "text" | "severity" | "busy" | "command"> & { detail: string };

const SHOW_OUTPUT = { title: "Show Log", command: "nnx.showOutput" };
const RESTART = { title: "Restart", command: "nnx.restart" };

const DESCRIBED: { [Kind in Status["kind"]]: (status: Extract<Status, { kind: Kind }>) => Shown } = {
  starting: () => ({
    text: "NNX",
    detail: "starting",
    severity: vscode.LanguageStatusSeverity.Information,
    busy: true,
    command: SHOW_OUTPUT,
  }),
  running: ({ version, bundled, interpreter }) => ({
    text: `NNX ${version}`,
    detail: `${bundled ? "bundled with the extension, " : ""}Python ${interpreter.version}: ${interpreter.path}`,
    severity: vscode.LanguageStatusSeverity.Information,
    busy: false,
    command: RESTART,
  }),
  stopped: ({ reason }) => ({
    text: "NNX",
    detail: reason,
    severity: vscode.LanguageStatusSeverity.Error,
    busy: false,
    command: RESTART,
  }),
};
