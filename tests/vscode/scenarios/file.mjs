// A person opens a Python file: what is wrong shows, is explained, is mended and saved; then its structure is drawn.
const TIME = { timeout: 60_000 };

export async function scenario({ page, folder, open, saved, picture, step }) {
  const file = `${folder}/model.py`;
  const line = (text) => page.locator(".monaco-editor .view-line", { hasText: text }).first();
  const command = async (name) => {
    await page.keyboard.press("F1");
    await page.locator(".quick-input-widget input").fill(`>${name}`);
    await page.locator(".quick-input-list .monaco-list-row", { hasText: name }).first().waitFor(TIME);
    await page.keyboard.press("Enter");
  };

  await open(file);
  await page.waitForSelector(".monaco-editor .view-line", TIME);
  await page.waitForSelector(".monaco-editor .squiggly-error", TIME);
  step("a finding is underlined");

  await line("[Block(32").getByText("static").first().waitFor(TIME);
  step("hints stand beside assignments");

  await page.locator("#status\\.languageStatus").hover();
  await page.locator(".monaco-hover:visible", { hasText: "bundled with the extension" }).waitFor(TIME);
  step("the status says what runs");

  await page.keyboard.press("Control+Shift+M");
  for (const message of ["`Net.blocks` is static", "Cannot mutate `net.calls`"]) {
    await page.locator(".markers-panel .monaco-list-row", { hasText: message }).waitFor(TIME);
  }
  await picture("findings");
  step("the Problems panel lists it");

  await line("[Block(32").getByText("blocks").first().hover();
  await page.locator(".monaco-hover:visible", { hasText: "static" }).first().waitFor(TIME);
  await picture("hover");
  step("hovering explains it");

  await page.keyboard.press("Escape");
  await line("[Block(32").getByText("rngs").first().click();
  await page.keyboard.press("Control+.");
  const menu = page.locator(".action-widget:not(.action-list-submenu-panel)");
  await menu.locator(".action.focused", { hasText: "nnx.List" }).waitFor(TIME);
  await picture("quick-fix");
  await page.keyboard.press("Enter");
  await line("nnx.List([Block").waitFor(TIME);
  await page.waitForFunction(() => !document.querySelector(".monaco-editor .squiggly-error"), null, TIME);
  await page.keyboard.press("Control+S");
  await saved(file, "self.blocks = nnx.List([Block(32, rngs=rngs), Block(32, rngs=rngs)])");
  step("its fix is applied and saved");

  await page.keyboard.press("Control+J");
  await page.keyboard.press("Control+B");
  await line("class Net").click();
  await command("NNX: Show Structure of a Module");
  const view = page.frameLocator("iframe.webview.ready").frameLocator("#active-frame");
  const row = (path) => view.locator(`.row[data-path="${path}"]`);
  await row("").filter({ hasText: "3,114" }).waitFor(TIME);
  await row("blocks").filter({ hasText: "data" }).waitFor(TIME);
  await row("embed.kernel").filter({ hasText: "(16, 32)" }).waitFor(TIME);
  await picture("structure");
  step("the structure of the class at the cursor is drawn");

  await row("head").click();
  await page.locator(".statusbar-item", { hasText: "Ln 20" }).waitFor(TIME);
  step("a click leads to the source");

  await page.keyboard.press("End");
  await page.keyboard.type("\nself.extra = nnx.Linear(10, 3, rngs=rngs)");
  await row("extra.kernel").filter({ hasText: "(10, 3)" }).waitFor(TIME);
  step("the structure follows edits");

  await page.keyboard.press("Control+P");
  await page.locator(".quick-input-widget input").fill("char_gpt.py:42");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "char_gpt.py" }).first().waitFor(TIME);
  await page.keyboard.press("Enter");
  await page.locator(".statusbar-item", { hasText: "Ln 42" }).waitFor(TIME);
  await command("NNX: Show Structure of a Module");
  await row("places.embedding").filter({ hasText: "(64, 96)" }).waitFor(TIME);
  await line("Embed(CONTEXT").getByText("embedding (64, 96)").first().waitFor(TIME); // lines come in any order
  await picture("program");
  step("a whole program is drawn");
}
