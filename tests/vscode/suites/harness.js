// The little that suites share: naming tests, running them in order, waiting, and reading the editor.
const assert = require("node:assert");
const path = require("node:path");
const vscode = require("vscode");

const tests = [{ name: "negative control", run: () => assert.fail("this is to fail") }];
const only = process.env.NNX_TESTS?.split("|");
let patience = Number(process.env.NNX_PATIENCE ?? 60_000);

exports.test = (name, run) => tests.push({ name, run });

/** Runs a test of the suite once more, under circumstances in which it has to fail, without waiting for long. */
exports.failing = async (name) => {
  const before = patience;
  patience = 1_000;
  try {
    await assert.rejects(tests.find((one) => one.name === name).run());
  } finally {
    patience = before;
  }
};

exports.run = async () => {
  let failed = 0;
  for (const { name, run } of tests.filter((one) => only === undefined || only.includes(one.name))) {
    let error = null;
    try {
      await run();
    } catch (thrown) {
      failed += 1;
      error = String(thrown?.stack ?? thrown).slice(0, 3000);
    }
    console.log(`RESULT ${JSON.stringify({ name, error })}`);
  }
  if (failed > 0) throw new Error(`${failed} failed`);
};

/** The first value that `look` gives that is neither false nor empty; what it last threw, or that nothing came, if it never gives one. */
exports.eventually = async (look, what = String(look)) => {
  const end = Date.now() + patience;
  let last = new Error(`this did not happen: ${what}`);
  while (Date.now() < end) {
    try {
      const value = await look();
      if (value && value.length !== 0) return value;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 40));
  }
  throw last;
};

exports.folder = () => vscode.workspace.workspaceFolders[0].uri;
exports.inFolder = (...parts) => vscode.Uri.joinPath(exports.folder(), ...parts);

exports.open = async (uri) => {
  const document = await vscode.workspace.openTextDocument(uri);
  await vscode.window.showTextDocument(document);
  return document;
};

/** The range of a piece of text, which must be in the document. */
exports.rangeOf = (document, text, after = "") => {
  const start = document.getText().indexOf(text, document.getText().indexOf(after));
  assert(start >= 0, `${text} is not in ${document.uri}`);
  return new vscode.Range(document.positionAt(start), document.positionAt(start + text.length));
};

exports.replace = async (document, text, by) => {
  const edit = new vscode.WorkspaceEdit();
  edit.replace(document.uri, exports.rangeOf(document, text), by);
  assert(await vscode.workspace.applyEdit(edit));
};

exports.codes = (uri) =>
  vscode.languages.getDiagnostics(uri).filter((found) => found.source === "nnx").map((found) => codeOf(found)).sort();

const codeOf = (found) => String(typeof found.code === "object" ? found.code.value : found.code);
exports.codeOf = codeOf;

/** The running extension, once its server has started. */
exports.started = async (kind = "running") => {
  const extension = vscode.extensions.getExtension("nnxkit.nnx");
  assert(extension, "the extension is installed");
  const api = await extension.activate();
  await exports.eventually(() => api.status.kind === kind, `the server is ${kind}`);
  return api;
};
