// A workspace that nobody trusts yet: nothing in it is run, and its code is checked nevertheless.
const assert = require("node:assert");
const fs = require("node:fs");
const vscode = require("vscode");
const { codes, eventually, inFolder, open, run, started, test } = require("./harness");

exports.run = run;

test("nothing of an untrusted workspace is run", async () => {
  assert.equal(vscode.workspace.isTrusted, false);
  const { status } = await started();
  assert.equal(status.bundled, true);
  assert(!status.interpreter.path.startsWith(inFolder().fsPath), status.interpreter.path);
  assert(!fs.existsSync(inFolder("was-run").fsPath), "the interpreter in the workspace was run");
});

test("its code is checked", async () => {
  const document = await open(inFolder("model.py"));
  await eventually(() => codes(document.uri).includes("NNX101"));
});

test("nothing is installed for it", async () => {
  const known = await vscode.commands.getCommands(true);
  assert(known.includes("nnx.install"));
  assert.equal(await vscode.commands.executeCommand("nnx.install"), false);
});
