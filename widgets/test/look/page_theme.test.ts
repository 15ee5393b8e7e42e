import assert from "node:assert/strict";
import { test } from "node:test";
import { Window } from "happy-dom";
import { currentTheme, watchTheme } from "../../src/look/page_theme.ts";

/** A document whose root and body say what they are told to. */
function page(root: string, body: string): Document {
  const window = new Window({ settings: { device: { prefersColorScheme: "light" } } });
  window.document.write(`<html ${root}><body ${body}></body></html>`);
  globalThis.MutationObserver = window.MutationObserver as never;
  return window.document as unknown as Document;
}

for (const [host, root, body, theme] of [
  ["JupyterLab, light", "", 'data-jp-theme-light="true" class="dark"', "light"],
  ["JupyterLab, dark", "", 'data-jp-theme-light="false"', "dark"],
  ["VS Code, high contrast", "", 'data-vscode-theme-kind="vscode-high-contrast"', "dark"],
  ["VS Code, light high contrast", "", 'data-vscode-theme-kind="vscode-high-contrast-light"', "light"],
  ["marimo", "", 'class="dark dark-theme"', "dark"],
  ["Colab", 'theme="dark"', "", "dark"],
  ["a page with data-theme", 'data-theme="dark"', 'class="light"', "dark"],
  ["a page with color-scheme", 'style="color-scheme: dark"', "", "dark"],
  ["a page that says nothing", "", 'class="darkish"', "light"],
] as const) {
  test(`the theme of ${host}`, () => assert.equal(currentTheme(page(root, body)), theme));
}

test("a switch is told once", async () => {
  const document = page("", 'class="light"'),
    heard: string[] = [];
  const stop = watchTheme(document, (theme) => heard.push(theme));
  document.body.className = "dark";
  await new Promise((resolve) => setTimeout(resolve, 20));
  document.body.className = "dark other";
  await new Promise((resolve) => setTimeout(resolve, 20));
  stop();
  document.body.className = "light";
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(heard, ["dark"]);
});
