// The settings of this extension itself. All others belong to the server, which asks for them.
import * as os from "node:os";
import * as vscode from "vscode";

export const SECTION = "nnx";

/** Keys below `nnx` that only this extension reads; changing one of `server` starts the server anew. */
export const OWN = ["server", "trace"];

export interface ServerSettings {
  /** The Python to use; empty if it is to be found. */
  interpreter: string;
  importStrategy: "fromEnvironment" | "useBundled";
  args: string[];
}

export function serverSettings(): ServerSettings {
  const given = vscode.workspace.getConfiguration(`${SECTION}.server`);
  return {
    interpreter: expanded(given.get("interpreter", "").trim()),
    importStrategy: given.get("importStrategy", "fromEnvironment"),
    args: given.get("args", []),
  };
}

/** A path with the home folder and the workspace's folders put in. */
function expanded(path: string): string {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const named = path.replace(/\$\{workspaceFolder(?::([^}]*))?\}/g, (whole: string, name?: string) => {
    const folder = name === undefined ? folders[0] : folders.find((item) => item.name === name);
    return folder?.uri.fsPath ?? whole;
  });
  return named.replace(/^~(?=$|[\\/])/, os.homedir());
}
