// Opens a page of VS Code in headless Chromium, and either runs a suite inside of the extension host or drives the page.
//
// It gets one JSON object: `base` (the address of the server), `node` (where playwright-core lies), `browser`, `folder`,
// `out` (a folder for pictures), `time` (milliseconds), and `suite` or `scenario` (paths), with `probe` for the former.
// It prints one JSON object a line: {"log": ...} and {"result": {"name": ..., "error": ...}}, the last one {"exit": ...}.
import assert from "node:assert";
import fs from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const order = JSON.parse(process.argv[2]);
const { chromium } = createRequire(`${order.node}/`)("playwright-core");
const say = (value) => console.log(JSON.stringify(value));

const browser = await chromium.launch({
  executablePath: order.browser,
  headless: true,
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
});
// Nobody looks at the page while a suite runs, and drawing costs: it is small, and drawn only if something went wrong.
const viewport = order.suite ? { width: 800, height: 600 } : { width: 1200, height: 720 };
const context = await browser.newContext({ viewport });
const page = await context.newPage();
page.on("console", (message) => order.verbose && say({ log: message.text().slice(0, 600) }));

const remote = (path) => `vscode-remote://${new URL(order.base).host}${path}`;
const address = (payload) => {
  const where = order.folder.endsWith(".code-workspace") ? "workspace" : "folder";
  return `${order.base}/?${where}=${encodeURIComponent(order.folder)}&payload=${encodeURIComponent(JSON.stringify(payload))}`;
};

async function runSuite() {
  let ended;
  const exit = new Promise((resolve) => (ended = resolve));
  await page.exposeFunction("codeAutomationLog", (type, args) => {
    for (const text of args) {
      if (typeof text === "string" && text.startsWith("RESULT ")) say({ result: JSON.parse(text.slice(7)) });
      else say({ log: text });
    }
  });
  await page.exposeFunction("codeAutomationExit", (code) => ended(code));
  await page.goto(
    address([
      ["extensionDevelopmentPath", remote(order.probe)],
      ["extensionTestsPath", remote(order.suite)],
      ["skipWelcome", "true"],
    ]),
  );
  await page.addStyleTag({ content: "body { visibility: hidden }" });
  return exit;
}

async function runScenario() {
  const { scenario } = await import(pathToFileURL(order.scenario));
  const picture = async (name) => {
    // Nothing is caught half faded in; what is taken away before that does not finish.
    await page.evaluate(() => Promise.allSettled(document.getAnimations().filter((one) => one.effect.getTiming().iterations === 1).map((one) => one.finished)));
    await page.screenshot({ path: `${order.out}/${name}.png` });
  };
  const saved = async (path, text) => {
    const written = () => fs.readFileSync(path, "utf8");
    for (let attempt = 0; attempt < 200 && !written().includes(text); attempt += 1) await page.waitForTimeout(50);
    assert(written().includes(text), written());
  };
  const step = (name) => say({ result: { name, error: null } });
  try {
    const open = (file) => page.goto(address([["openFile", remote(file)]]));
    await scenario({ page, folder: order.folder, open, saved, picture, step });
    return 0;
  } catch (error) {
    say({ result: { name: "scenario", error: String(error.stack ?? error).slice(0, 3000) } });
    await picture("failure");
    return 1;
  }
}

const late = new Promise((resolve) => setTimeout(() => resolve("it took too long"), order.time));
const exit = await Promise.race([order.suite ? runSuite() : runScenario(), late]);
if (exit !== 0) {
  await page.addStyleTag({ content: "body { visibility: visible !important }" }).catch(() => undefined);
  await page.screenshot({ path: `${order.out}/failure.png` }).catch(() => undefined);
}
say({ exit });
await browser.close();
process.exit(0);
