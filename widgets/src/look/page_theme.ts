/** Light or dark, as the page is now, and told again when it changes. */

export type Theme = "light" | "dark";

/**
 * JupyterLab, Notebook and Voilà mark the body with data-jp-theme-light, VS Code with data-vscode-theme-kind; elsewhere
 * the page may say `data-theme`, `theme` (Colab) or a class (marimo) on its root element or body, or which colors its
 * own fields and scroll bars have (`color-scheme`), and else the system's preference holds.
 */
export function currentTheme(document: Document): Theme {
  const { body, documentElement } = document;
  const jupyter = body.dataset.jpThemeLight;
  if (jupyter !== undefined) return jupyter === "false" ? "dark" : "light";
  const code = body.dataset.vscodeThemeKind;
  if (code !== undefined) return code.includes("light") ? "light" : "dark";
  return saidBy(documentElement) ?? saidBy(body) ?? schemeOf(document) ?? preferred(document);
}

function saidBy(element: HTMLElement): Theme | undefined {
  const words = [element.dataset.theme, element.getAttribute("theme"), ...element.classList];
  return words.find((word) => word === "dark" || word === "light") as Theme | undefined;
}

/** The theme of the page's own style sheet, where it names one of the two. */
function schemeOf(document: Document): Theme | undefined {
  const scheme = document.defaultView?.getComputedStyle(document.documentElement).colorScheme ?? "";
  return scheme === "dark" || scheme === "light" ? scheme : undefined;
}

function preferred(document: Document): Theme {
  return document.defaultView?.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Attributes by which pages tell their theme; the names tell one dark theme from another. */
const TOLD = [
  "data-jp-theme-light",
  "data-jp-theme-name",
  "data-vscode-theme-kind",
  "data-vscode-theme-id",
  "data-theme",
  "theme",
  "class",
  "style",
];

/** Calls `listener` whenever the page's theme is another one; returns the function that stops it. */
export function watchTheme(document: Document, listener: (theme: Theme) => void): () => void {
  const name = (): string => {
    const { jpThemeName, vscodeThemeKind, vscodeThemeId } = document.body.dataset;
    return [currentTheme(document), jpThemeName, vscodeThemeKind, vscodeThemeId].join(" ");
  };
  let known = name();
  const check = () => {
    const now = name();
    if (now === known) return;
    known = now;
    listener(currentTheme(document));
  };
  const observer = new MutationObserver(check);
  const watched = { attributes: true, attributeFilter: TOLD };
  observer.observe(document.body, watched);
  observer.observe(document.documentElement, watched);
  const query = document.defaultView?.matchMedia("(prefers-color-scheme: dark)");
  query?.addEventListener("change", check);
  return () => {
    observer.disconnect();
    query?.removeEventListener("change", check);
  };
}
