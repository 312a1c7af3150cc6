// Everything that the server knows, asked through the interface of VS Code.
const assert = require("node:assert");
const vscode = require("vscode");
const { codes, codeOf, eventually, failing, inFolder, open, rangeOf, replace, run, started, test } = require("./harness");

exports.run = run;

const ask = (command, ...args) => vscode.commands.executeCommand(`vscode.${command}`, ...args);
const texts = (contents) => contents.map((content) => content.value ?? content).join("\n");
const label = (hint) => (typeof hint.label === "string" ? hint.label : hint.label.map(({ value }) => value).join(""));
const whole = (document) => new vscode.Range(0, 0, document.lineCount, 0);
const model = () => open(inFolder("model.py"));
const train = () => open(inFolder("train.py"));
const settings = () => vscode.workspace.getConfiguration("nnx");

const hoverOf = async (document, text, after) => {
  const hovers = await ask("executeHoverProvider", document.uri, rangeOf(document, text, after).start);
  return texts(hovers.flatMap(({ contents }) => contents));
};
const actionsOn = async (document, range, kind) =>
  (await ask("executeCodeActionProvider", document.uri, range, kind, 20)).filter((action) => !action.disabled);

/** What an output channel that was shown once holds. */
const channel = (name) =>
  vscode.workspace.textDocuments.find(({ uri }) => uri.scheme === "output" && uri.path.endsWith(`.${name}`))?.getText() ?? "";

/** Does something with documents and then puts their text back. */
const undone = async (documents, work) => {
  const before = documents.map((document) => document.getText());
  try {
    await work();
  } finally {
    const edit = new vscode.WorkspaceEdit();
    documents.forEach((document, index) => edit.replace(document.uri, whole(document), before[index]));
    await vscode.workspace.applyEdit(edit);
    for (const document of documents) await document.save();
  }
};

test("the bundled server runs where nothing is installed", async () => {
  const { status } = await started();
  assert.equal(status.bundled, true);
  assert.equal(status.interpreter.nnxkit, null);
  assert.match(status.version, /^\d+\.\d+\.\d+/);
});

test("every command exists", async () => {
  const known = await vscode.commands.getCommands(true);
  const own = vscode.extensions.getExtension("nnxkit.nnx").packageJSON.contributes.commands;
  assert.deepEqual(own.map(({ command }) => command).filter((command) => !known.includes(command)), []);
});

test("files that are not open are checked too", async () => {
  assert(!vscode.workspace.textDocuments.some(({ uri }) => uri.path.endsWith("train.py")));
  await eventually(() => codes(inFolder("train.py")).includes("NNX201"), "a finding in a closed file");
});

test("a finding has its code, severity, place and page", async () => {
  const document = await model();
  const found = (await eventually(() => vscode.languages.getDiagnostics(document.uri)))[0];
  assert.equal(codeOf(found), "NNX101");
  assert.equal(found.source, "nnx");
  assert.equal(found.severity, vscode.DiagnosticSeverity.Error);
  assert.deepEqual(found.range, rangeOf(document, "[Block(32, rngs=rngs), Block(32, rngs=rngs)]"));
  assert.match(found.message, /`Net\.blocks` is static/);
  assert.match(String(found.code.target), /data-in-static-attribute/);
});

test("a finding names the other places that it is about", async () => {
  const document = await train();
  const found = await eventually(() =>
    vscode.languages.getDiagnostics(document.uri).find((item) => codeOf(item) === "NNX201"),
  );
  const files = found.relatedInformation.map(({ location }) => location.uri.path.split("/").at(-1));
  assert.deepEqual(files, ["train.py", "model.py"]);
});

test("a fix is offered as preferred, is applied, and clears the finding", async () => {
  const document = await model();
  await undone([document], async () => {
    const range = rangeOf(document, "[Block(32");
    const action = await eventually(async () =>
      (await actionsOn(document, range, "quickfix")).find((item) => item.isPreferred),
    );
    assert(action.title.includes("nnx.List(...)"), action.title);
    assert(await vscode.workspace.applyEdit(action.edit));
    assert(document.getText().includes("nnx.List([Block(32, rngs=rngs), Block(32, rngs=rngs)])"));
    await eventually(() => codes(document.uri).length === 0, "the finding goes");
  });
});

test("all safe fixes of a file are one command", async () => {
  const document = await model();
  await undone([document], async () => {
    await eventually(() => codes(document.uri).includes("NNX101"));
    await vscode.commands.executeCommand("nnx.fixAll");
    await eventually(() => document.getText().includes("nnx.List([Block"), "the fix is applied");
  });
});

test("a finding can be silenced by a comment on its line", async () => {
  const document = await model();
  await undone([document], async () => {
    const range = rangeOf(document, "[Block(32");
    const action = await eventually(async () =>
      (await actionsOn(document, range, "quickfix")).find(({ title }) => /ignore/i.test(title)),
    );
    assert(await vscode.workspace.applyEdit(action.edit));
    assert.match(document.lineAt(range.start.line).text, /# nnx: ignore\[data-in-static-attribute\]$/);
    await eventually(() => codes(document.uri).length === 0, "the finding goes");
  });
});

test("a rule is explained from its finding", async () => {
  const document = await model();
  const range = rangeOf(document, "[Block(32");
  const action = await eventually(async () =>
    (await actionsOn(document, range)).find((item) => item.command?.command === "nnx.explainRule"),
  );
  await vscode.commands.executeCommand(action.command.command, ...action.command.arguments);
  const isPage = ({ label }) => label.includes("NNX101");
  await eventually(() => vscode.window.tabGroups.all.some((group) => group.tabs.some(isPage)), "a preview");
  const page = await vscode.workspace.openTextDocument(vscode.Uri.parse("nnx-rule:/NNX101.md"));
  assert.match(page.getText(), /data-in-static-attribute/);
});

test("hovers explain attributes, filters, transforms and suppressions", async () => {
  const [one, other] = [await model(), await train()];
  assert.match(await eventually(() => hoverOf(one, "blocks", "self.")), /static/);
  assert.match(await hoverOf(one, "calls", "self.embed"), /BatchStat/);
  assert.match(await hoverOf(other, "nnx.Param"), /embed/);
  assert.match(await hoverOf(other, "jax.jit", "@"), /net/);
  assert.match(await hoverOf(other, "invalid-filter"), /invalid-filter/);
});

test("inlay hints show status, filters, captures and shapes, and each can be switched off", async () => {
  const [one, other] = [await model(), await train()];
  const hints = async (document) =>
    ((await ask("executeInlayHintProvider", document.uri, whole(document))) ?? []).map(label).join("|");
  assert.match(await eventually(() => hints(one)), /data/);
  assert.match(await hints(one), /static/);
  assert.match(await hints(one), /\(?16, 32/);
  assert.match(await hints(other), /Param/);
  assert.match(await hints(other), /net/);
  for (const [setting, gone] of [["hintStatus", /static/], ["hintShapes", /16, 32/]]) {
    await settings().update(setting, false, vscode.ConfigurationTarget.Workspace);
    await eventually(async () => !gone.test(await hints(one)), `${setting} is off`);
    await settings().update(setting, undefined, vscode.ConfigurationTarget.Workspace);
    await eventually(async () => gone.test(await hints(one)), `${setting} is on again`);
  }
});

test("completion knows NNX's names, filters and rules", async () => {
  const document = await train();
  const offered = async (text, ending = "") => {
    let labels;
    await undone([document], async () => {
      const edit = new vscode.WorkspaceEdit();
      edit.insert(document.uri, new vscode.Position(document.lineCount, 0), `\n${text}${ending}`);
      await vscode.workspace.applyEdit(edit);
      const at = document.positionAt(document.getText().length - ending.length);
      const list = await ask("executeCompletionItemProvider", document.uri, at);
      labels = list.items.map((item) => item.label.label ?? item.label);
    });
    return labels;
  };
  assert((await offered("nnx.Lin")).includes("Linear"));
  assert((await offered("nnx.state(net, nnx.", ")")).includes("BatchStat"));
  assert((await offered("x = 1  # nnx: ignore[")).some((name) => name.includes("data-in-static-attribute")));
});

test("completion knows rules in a configuration file", async () => {
  const document = await open(inFolder("nnx-lint.toml"));
  const edit = new vscode.WorkspaceEdit();
  edit.insert(document.uri, new vscode.Position(document.lineCount, 0), 'ignore = ["');
  await vscode.workspace.applyEdit(edit);
  const at = document.lineAt(document.lineCount - 1).range.end;
  await eventually(async () => {
    const list = await ask("executeCompletionItemProvider", document.uri, at);
    return list.items.some((item) => (item.label.label ?? item.label).includes("data-in-static-attribute"));
  });
  await vscode.commands.executeCommand("workbench.action.files.revert");
});

test("semantic tokens mark data and static", async () => {
  const document = await model();
  const legend = await eventually(() => ask("provideDocumentSemanticTokensLegend", document.uri));
  assert(legend.tokenModifiers.includes("data") && legend.tokenModifiers.includes("static"));
  const tokens = await eventually(() => ask("provideDocumentSemanticTokens", document.uri));
  const modifiers = new Set();
  for (let index = 0; index < tokens.data.length; index += 5) {
    legend.tokenModifiers.forEach((name, bit) => tokens.data[index + 4] & (1 << bit) && modifiers.add(name));
  }
  assert(modifiers.has("data") && modifiers.has("static"), [...modifiers].join());
});

test("symbols list Modules with their attributes", async () => {
  const document = await model();
  const symbols = await eventually(() => ask("executeDocumentSymbolProvider", document.uri));
  const net = symbols.find(({ name }) => name === "Net");
  for (const name of ["embed", "blocks", "calls", "head"]) assert(net.children.some((child) => child.name === name), name);
});

test("the definition of an attribute is its first assignment", async () => {
  const document = await model();
  const use = rangeOf(document, "embed(x)").start;
  const [place] = await eventually(() => ask("executeDefinitionProvider", document.uri, use));
  const range = place.range ?? place.targetSelectionRange ?? place.targetRange;
  assert.equal(range.start.line, rangeOf(document, "self.embed = ").start.line);
});

test("a lens counts the parameters of a Module and opens its structure", async () => {
  const document = await model();
  const lenses = await eventually(() => ask("executeCodeLensProvider", document.uri, 20));
  const lens = lenses.find(({ range }) => range.start.line === rangeOf(document, "class Net").start.line);
  assert.match(lens.command.title, /874/);
  await vscode.commands.executeCommand(lens.command.command, ...lens.command.arguments);
  const isView = ({ label }) => label === "Net structure";
  await eventually(() => vscode.window.tabGroups.all.some((group) => group.tabs.some(isView)), "the view");
});

test("a suppression links to the page of its rule", async () => {
  const document = await train();
  const links = await eventually(() => ask("executeLinkProvider", document.uri, 20));
  const line = rangeOf(document, "invalid-filter").start.line;
  assert(links.some(({ range }) => range.start.line === line));
});

test("other files follow an edit that was not saved", async () => {
  const [one, other] = [await model(), await train()];
  await eventually(() => codes(other.uri).includes("NNX201"));
  await undone([one], async () => {
    await replace(one, "self.calls = nnx.BatchStat(jnp.zeros(()))", "pass");
    await eventually(() => !codes(other.uri).includes("NNX201"), "the finding in train.py goes");
  });
  await eventually(() => codes(other.uri).includes("NNX201"), "it comes back");
});

test("a document that was never saved is checked", async () => {
  const content = "from flax import nnx\nnnx.state(nnx.Linear(1, 1, rngs=nnx.Rngs(0)), 0)\n";
  const document = await vscode.workspace.openTextDocument({ language: "python", content });
  await eventually(() => codes(document.uri).includes("NNX306"));
});

test("these tests fail where the server says nothing", async () => {
  const document = await model();
  await settings().update("enable", false, vscode.ConfigurationTarget.Workspace);
  try {
    await eventually(() => codes(document.uri).length === 0, "the setting holds");
    await failing("a finding has its code, severity, place and page");
    await failing("a fix is offered as preferred, is applied, and clears the finding");
  } finally {
    await settings().update("enable", undefined, vscode.ConfigurationTarget.Workspace);
  }
});

test("settings and configuration files take effect at once", async () => {
  const document = await model();
  await eventually(() => codes(document.uri).includes("NNX101"));
  await settings().update("ignore", ["NNX101"], vscode.ConfigurationTarget.Workspace);
  await eventually(() => codes(document.uri).length === 0, "the setting holds");
  await settings().update("ignore", undefined, vscode.ConfigurationTarget.Workspace);
  await eventually(() => codes(document.uri).includes("NNX101"), "the setting is gone");
  const file = inFolder("nnx-lint.toml");
  const before = await vscode.workspace.fs.readFile(file);
  await vscode.workspace.fs.writeFile(file, Buffer.from('ignore = ["data-in-static-attribute"]\n'));
  await eventually(() => codes(document.uri).length === 0, "the file holds");
  await vscode.workspace.fs.writeFile(file, before);
  await eventually(() => codes(document.uri).includes("NNX101"), "the file is as before");
});

test("a file that is deleted takes its findings along", async () => {
  const [old, moved] = [inFolder("scratch.py"), inFolder("moved.py")];
  const text = "from flax import nnx\nnnx.state(nnx.Linear(1, 1, rngs=nnx.Rngs(0)), 0)\n";
  await vscode.workspace.fs.writeFile(old, Buffer.from(text));
  await open(old);
  await eventually(() => codes(old).includes("NNX306"));
  const edit = new vscode.WorkspaceEdit();
  edit.renameFile(old, moved);
  assert(await vscode.workspace.applyEdit(edit));
  await eventually(() => codes(moved).includes("NNX306"), "findings are at the new name");
  await eventually(() => codes(old).length === 0, "findings are not at the old name");
  await vscode.workspace.fs.delete(moved);
  await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
  await eventually(() => codes(moved).length === 0, "findings go");
});

test("a notebook is one program, and a fix edits its cell", async () => {
  const notebook = await eventually(async () => {
    const opened = await vscode.workspace.openNotebookDocument(inFolder("demo.ipynb"));
    return opened.cellCount === 4 && opened;
  });
  await vscode.window.showNotebookDocument(notebook);
  const cell = notebook.cellAt(2).document;
  await eventually(() => codes(cell.uri).includes("NNX101"));
  const [action] = await eventually(() => actionsOn(cell, rangeOf(cell, "[jnp.ones(3)]"), "quickfix"));
  assert(await vscode.workspace.applyEdit(action.edit));
  assert(cell.getText().includes("nnx.List([jnp.ones(3)])"), cell.getText());
  await eventually(() => codes(cell.uri).length === 0, "the finding goes");
});

test("the log says what was started", async () => {
  await vscode.commands.executeCommand("nnx.showOutput");
  await eventually(() => /\$ \S+ -I \S+serve\.py --stdio/.test(channel("NNX")));
});

test("the trace channel shows the conversation with the server, as much as is asked for", async () => {
  const document = await model();
  const shown = () => channel("NNX Trace");
  const edited = (text) => replace(document, "class Net", `# ${text}\nclass Net`);
  await vscode.commands.executeCommand("workbench.action.output.show.nnxkit.nnx.NNX Trace");
  await undone([document], async () => {
    await edited("nobody listens");
    await eventually(() => codes(document.uri).includes("NNX101"));
    assert.equal(shown(), "");
    await vscode.commands.executeCommand("workbench.action.output.activeOutputLogLevel.1");
    await eventually(async () => {
      await edited("messages");
      return /Sending notification 'textDocument\/didChange'/.test(shown()) && /model\.py: 1 finding after/.test(shown());
    });
    assert.doesNotMatch(shown(), /NNX101/);
    await settings().update("trace.server", "verbose", vscode.ConfigurationTarget.Workspace);
    await eventually(async () => {
      await edited("details");
      return /# details/.test(shown()) && /NNX101 `Net\.blocks` is static/.test(shown());
    });
    await settings().update("trace.server", undefined, vscode.ConfigurationTarget.Workspace);
    await vscode.commands.executeCommand("workbench.action.output.activeOutputLogLevel.3");
  });
});

test("restarts that come together are one", async () => {
  const api = await started();
  const seen = [];
  const listener = api.onDidChangeStatus(({ kind }) => seen.push(kind));
  await Promise.all([1, 2, 3, 4].map(() => vscode.commands.executeCommand("nnx.restart")));
  await eventually(() => api.status.kind === "running", "it runs again");
  listener.dispose();
  assert.equal(seen.filter((kind) => kind === "running").length, 1, seen.join());
  const document = await model();
  await eventually(() => codes(document.uri).includes("NNX101"), "findings after a restart");
});
