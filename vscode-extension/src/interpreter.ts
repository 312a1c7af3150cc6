// Which Python runs the server.
//
// In the order of preference: the one that the settings name, the one that the Python extension has selected, a virtual
// environment in a folder of the workspace, the first on PATH. A candidate is asked what it is before it is used, in
// this extension's own folder, so that nothing of the workspace is imported. Of an untrusted workspace nothing is run
// at all: only an interpreter on PATH, outside of its folders, is considered.
import { execFile } from "node:child_process";
import * as path from "node:path";
import { promisify } from "node:util";
import { PythonExtension } from "./python";
import * as vscode from "vscode";

/** The oldest Python that runs nnxkit. */
export const OLDEST: readonly [number, number] = [3, 11];

const PROBE_TIME = 15_000;

const PROBE = `
import importlib.metadata, importlib.util, json, sys
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
found = all(importlib.util.find_spec(name) is not None for name in ("nnx_lsp", "pygls"))
print(json.dumps({"executable": sys.executable, "version": list(sys.version_info[:3]), "nnxkit": version("nnxkit"), "server": found}))
`;

/** A Python that can run the server. */
export interface Interpreter {
  path: string;
  version: string;
  /** The version of nnxkit that is installed for it. */
  nnxkit: string | null;
  /** Whether the server is installed for it, with all that it needs. */
  server: boolean;
}

/** The outcome of a search; `rejected` says of every candidate that cannot be used what is wrong with it. */
export interface Search {
  found: Interpreter | undefined;
  rejected: { path: string; origin: Origin; reason: string }[];
}

export type Origin = "setting" | "Python extension" | "workspace" | "PATH";

interface Candidate {
  path: string;
  origin: Origin;
}

interface Answer {
  executable: string;
  version: [number, number, number];
  nnxkit: string | null;
  server: boolean;
}

/** Finds the interpreter. `named` is the one of the settings, `home` the folder of this extension. */
export async function findInterpreter(
  named: string,
  home: string,
  python: PythonExtension,
  log: vscode.LogOutputChannel,
): Promise<Search> {
  const rejected: Search["rejected"] = [];
  for await (const candidate of candidates(named, python)) {
    const answer = await probe(candidate.path, home);
    if (typeof answer !== "string") {
      const { executable, nnxkit, server } = answer;
      const found = { path: executable || candidate.path, version: answer.version.join("."), nnxkit, server };
      log.info(`interpreter: ${found.path} (Python ${found.version}, from ${candidate.origin})`);
      return { found, rejected };
    }
    log.info(`not used: ${candidate.path} (from ${candidate.origin}): ${answer}`);
    rejected.push({ ...candidate, reason: answer });
  }
  return { found: undefined, rejected };
}

async function* candidates(named: string, python: PythonExtension): AsyncGenerator<Candidate> {
  if (vscode.workspace.isTrusted) {
    if (named) yield { path: named, origin: "setting" };
    const selected = await python.selected();
    if (selected !== undefined) yield { path: selected, origin: "Python extension" };
    for (const folder of localFolders()) {
      for (const environment of [".venv", "venv"]) {
        const executable = path.join(folder, environment, ...IN_ENVIRONMENT);
        if (await exists(executable)) yield { path: executable, origin: "workspace" };
      }
    }
  }
  for (const name of ON_PATH) {
    for (const executable of await onPath(name)) yield { path: executable, origin: "PATH" };
  }
}

const WINDOWS = process.platform === "win32";
const IN_ENVIRONMENT = WINDOWS ? ["Scripts", "python.exe"] : ["bin", "python"];
const ON_PATH = ["python3", "python", "python3.14", "python3.13", "python3.12", "python3.11"];

/** The places on PATH where a program is, without those that lie in the workspace or depend on where one is. */
async function onPath(name: string): Promise<string[]> {
  const found: string[] = [];
  for (const folder of (process.env["PATH"] ?? "").split(path.delimiter)) {
    const executable = path.join(folder, WINDOWS ? `${name}.exe` : name);
    const inside = localFolders().some((root) => !path.relative(root, executable).startsWith(".."));
    if (path.isAbsolute(folder) && !inside && (await exists(executable))) found.push(executable);
  }
  return found;
}

function localFolders(): string[] {
  const folders = vscode.workspace.workspaceFolders ?? [];
  return folders.filter((folder) => folder.uri.scheme === "file").map((folder) => folder.uri.fsPath);
}

async function exists(file: string): Promise<boolean> {
  try {
    await vscode.workspace.fs.stat(vscode.Uri.file(file));
    return true;
  } catch {
    return false;
  }
}

/** What an interpreter says about itself, or why it cannot be used. */
async function probe(executable: string, home: string): Promise<Answer | string> {
  let said: string;
  try {
    ({ stdout: said } = await promisify(execFile)(executable, ["-c", PROBE], { cwd: home, timeout: PROBE_TIME }));
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    return missing ? "there is no such program" : `it does not run: ${firstLine(error)}`;
  }
  let answer: Answer;
  try {
    answer = JSON.parse(said) as Answer;
  } catch {
    return "it is no Python";
  }
  const [major, minor] = answer.version;
  const old = major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]);
  return old ? `it is Python ${answer.version.join(".")}, and ${OLDEST.join(".")} or later is needed` : answer;
}

function firstLine(error: unknown): string {
  const { stderr, message } = error as { stderr?: string; message: string };
  return (stderr || message).trim().split("\n").at(-1) ?? message;
}
