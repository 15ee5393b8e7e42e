/** Light or dark, as the page is now, and told again when it changes. */

export type Theme = "light" | "dark";

/**
 * JupyterLab and Notebook mark the body with data-jp-theme-light, VS Code with data-vscode-theme-kind; elsewhere
 * the page may say data-theme on its root element, and else the system's preference holds.
 */
export function currentTheme(document: Document): Theme {
  const { body, documentElement } = document;
  const jupyter = body.dataset.jpThemeLight;
  if (jupyter !== undefined) return jupyter === "false" ? "dark" : "light";
  const code = body.dataset.vscodeThemeKind;
  if (code !== undefined) return code.includes("light") ? "light" : "dark";
  if (documentElement.dataset.theme === "dark" || documentElement.dataset.theme === "light") {
    return documentElement.dataset.theme;
  }
  return document.defaultView?.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Calls `listener` with each new theme; returns the function that stops it. */
export function watchTheme(document: Document, listener: (theme: Theme) => void): () => void {
  let theme = currentTheme(document);
  const check = () => {
    const now = currentTheme(document);
    if (now === theme) return;
    theme = now;
    listener(now);
  };
  const observer = new MutationObserver(check);
  const watched = { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind", "data-theme"] };
  observer.observe(document.body, watched);
  observer.observe(document.documentElement, watched);
  const query = document.defaultView?.matchMedia("(prefers-color-scheme: dark)");
  query?.addEventListener("change", check);
  return () => {
    observer.disconnect();
    query?.removeEventListener("change", check);
  };
}
