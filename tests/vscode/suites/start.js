// Which server is started, by which Python, and in which folders it works.
const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");
const vscode = require("vscode");
const { codes, eventually, inFolder, open, run, started, test } = require("./harness");

exports.run = run;

const { NNX_INSTALLED: INSTALLED, NNX_PYTHONS: PYTHONS } = process.env;
const settings = () => vscode.workspace.getConfiguration("nnx.server");
const set = (name, value) => settings().update(name, value, vscode.ConfigurationTarget.Global);

/** Waits until a server that was started after `work` runs, and answers with its status. */
const startedBy = async (work, kind = "running") => {
  const api = await vscode.extensions.getExtension("nnxkit.nnx").activate();
  const seen = [];
  const listener = api.onDidChangeStatus((status) => seen.push(status));
  try {
    await work();
    return await eventually(() => {
      const last = seen.at(-1);
      return assert.equal(last?.kind, kind, seen.map((status) => status.kind).join()) ?? last;
    });
  } finally {
    listener.dispose();
  }
};

test("the server of the environment is preferred", async () => {
  const { status } = await started();
  assert.equal(status.interpreter.path, INSTALLED);
  assert.equal(status.bundled, false);
  const document = await open(inFolder("model.py"));
  await eventually(() => codes(document.uri).includes("NNX101"));
});

test("the server inside of the extension can be demanded", async () => {
  const status = await startedBy(() => set("importStrategy", "useBundled"));
  assert.equal(status.bundled, true);
  await startedBy(() => set("importStrategy", undefined));
});

test("an interpreter without nnxkit runs the server inside of the extension, and gets nnxkit on demand", async () => {
  const python = path.join(PYTHONS, "bare");
  const status = await startedBy(() => set("interpreter", python));
  assert.deepEqual([status.bundled, status.interpreter.path], [true, python]);
  let installed;
  await startedBy(async () => (installed = await vscode.commands.executeCommand("nnx.install")));
  assert.equal(installed, true);
  const asked = fs.readFileSync(path.join(PYTHONS, "installed.txt"), "utf8");
  assert.match(asked, /^-m pip install .*nnxkit\[lsp\]$/m);
});

test("an interpreter that is too old, or none, is passed over", async () => {
  for (const name of ["old", "no-such-python", "no-python-at-all"]) {
    const status = await startedBy(() => set("interpreter", path.join(PYTHONS, name)));
    assert.notEqual(path.dirname(status.interpreter.path), PYTHONS, name);
  }
  await startedBy(() => set("interpreter", undefined));
});

test("the interpreter that the Python extension selects is used, and followed", async () => {
  const python = vscode.extensions.getExtension("ms-python.python").exports;
  const status = await startedBy(() => python.select(path.join(PYTHONS, "bare")));
  assert.equal(status.interpreter.path, path.join(PYTHONS, "bare"));
  const other = await startedBy(() => python.select(undefined));
  assert.notEqual(other.interpreter.path, path.join(PYTHONS, "bare"));
});

test("an environment in the workspace comes before PATH", async () => {
  const environment = inFolder(".venv", "bin", "python").fsPath;
  fs.mkdirSync(path.dirname(environment), { recursive: true });
  fs.symlinkSync(path.join(PYTHONS, "bare"), environment);
  const status = await startedBy(() => vscode.commands.executeCommand("nnx.restart"));
  assert.equal(status.interpreter.path, path.join(PYTHONS, "bare")); // it says of itself where it is
  fs.rmSync(inFolder(".venv").fsPath, { recursive: true });
});

test("without any Python it says so, and starts once there is one", async () => {
  const before = process.env.PATH;
  process.env.PATH = "";
  const status = await startedBy(() => vscode.commands.executeCommand("nnx.restart"), "stopped");
  assert.match(status.reason, /needs Python 3\.\d+ or later/);
  process.env.PATH = before;
  await startedBy(() => vscode.commands.executeCommand("nnx.restart"));
});

test("a server that dies is started again", async () => {
  await started();
  const pid = Number(fs.readFileSync(path.join(PYTHONS, "process"), "utf8"));
  await startedBy(() => process.kill(pid, "SIGKILL"));
  assert.notEqual(Number(fs.readFileSync(path.join(PYTHONS, "process"), "utf8")), pid);
  const document = await open(inFolder("model.py"));
  await eventually(() => codes(document.uri).includes("NNX101"));
});

test("every folder of a workspace has its own configuration", async () => {
  const [, other] = vscode.workspace.workspaceFolders;
  const document = await open(vscode.Uri.joinPath(other.uri, "model.py"));
  const both = inFolder("model.py");
  await open(both);
  await eventually(() => codes(both).includes("NNX101"));
  assert.deepEqual(codes(document.uri), []);
});

test("a folder that is on no disk is checked where documents are open", async () => {
  const text = Buffer.from("from flax import nnx\nnnx.state(nnx.Linear(1, 1, rngs=nnx.Rngs(0)), 0)\n");
  const never = new vscode.EventEmitter();
  const provider = {
    onDidChangeFile: never.event,
    watch: () => never,
    stat: (uri) => ({ type: uri.path.endsWith(".py") ? 1 : 2, ctime: 0, mtime: 0, size: text.length }),
    readDirectory: () => [["model.py", 1]],
    readFile: () => text,
    createDirectory() {},
    writeFile() {},
    delete() {},
    rename() {},
  };
  const registered = vscode.workspace.registerFileSystemProvider("memory", provider);
  const uri = vscode.Uri.parse("memory:/project");
  await startedBy(() => assert(vscode.workspace.updateWorkspaceFolders(2, 0, { uri, name: "memory" })));
  const document = await open(vscode.Uri.joinPath(uri, "model.py"));
  await eventually(() => codes(document.uri).includes("NNX306"));
  registered.dispose();
});
