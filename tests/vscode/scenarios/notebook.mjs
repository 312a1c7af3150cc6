// A person opens a notebook: the finding in a cell shows, is mended in the cell, and the notebook is saved.
const TIME = { timeout: 60_000 };

export async function scenario({ page, folder, open, saved, picture, step }) {
  // Until extensions have started, a notebook would open as text.
  await open(`${folder}/model.py`);
  await page.waitForSelector(".monaco-editor .squiggly-error", TIME);
  await page.locator("#status\\.notifications").click(); // what popped up may have hidden itself
  await page.mouse.move(600, 200); // the bell's own explanation would cover a button
  const offer = page.locator(".notifications-center .notification-list-item", { hasText: "nnxkit is not installed for" });
  await offer.getByRole("button", { name: "Install" }).waitFor(TIME);
  await offer.getByRole("button", { name: "Don't Ask Again" }).click();
  step("the missing nnxkit is offered, and the server inside of the extension runs");

  await page.locator(".explorer-folders-view .monaco-list-row", { hasText: "demo.ipynb" }).dblclick(TIME);
  const cell = page.locator(".notebookOverlay .code-cell-row", { hasText: "class Scales" });
  await cell.waitFor(TIME);
  await cell.locator(".squiggly-error").first().waitFor({ ...TIME, state: "attached" });
  await picture("notebook");
  step("a finding is underlined in its cell");

  await cell.locator(".view-line", { hasText: "self.values" }).getByText("ones").click();
  await page.keyboard.press("Control+.");
  await page.locator(".action-widget .action.focused", { hasText: "nnx.List" }).waitFor(TIME);
  await page.keyboard.press("Enter");
  await cell.locator(".view-line", { hasText: "nnx.List([jnp.ones(3)])" }).waitFor(TIME);
  await page.waitForFunction(() => !document.querySelector(".notebookOverlay .squiggly-error"), null, TIME);
  step("its fix edits the cell");

  await page.keyboard.press("Control+S");
  await saved(`${folder}/demo.ipynb`, "self.values = nnx.List([jnp.ones(3)])");
  step("the notebook is saved");
}
