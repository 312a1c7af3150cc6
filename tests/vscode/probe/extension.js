// Stands in for the Python extension: the interpreter that it has selected is what a suite says.
const vscode = require("vscode");

let selected;
const changed = new vscode.EventEmitter();

exports.activate = () => ({
  environments: {
    getActiveEnvironmentPath: () => ({ path: selected ?? "" }),
    resolveEnvironment: async ({ path }) => (path ? { executable: { uri: vscode.Uri.file(path) } } : undefined),
    onDidChangeActiveEnvironmentPath: changed.event,
  },
  select: (path) => {
    selected = path;
    changed.fire();
  },
});
