/**
 * The static picture that Jupyter shows just before the widget, for where no kernel runs: the widget takes its place
 * while it lives. Its SVG carries the attribute `data-onnxlab`; Jupyter shows it as an element or as an image.
 */

/** The number of levels up the page at which the output before the widget's own is looked for. */
const MAX_DEPTH = 12;

const SCROLLED = "jp-mod-outputsScrolled";

/** Shows either `root`, the widget inside `host`, or the picture in the output before it; without a picture, `root`. */
export function showOneOf(host: HTMLElement, root: HTMLElement, widget: boolean): void {
  const picture = findStandIn(host);
  if (picture) picture.style.display = widget ? "none" : "";
  root.style.display = widget || !picture ? "" : "none";
  if (picture && widget) unscroll(host);
}

/**
 * Notebook 7 puts outputs of more than some 1,800 pixels into a box that scrolls, as which it counts the picture of a
 * tall model, and does not look again when the widget takes the picture's place. JupyterLab does so only when asked.
 */
function unscroll(host: HTMLElement): void {
  if (host.ownerDocument.body.dataset.notebook === undefined) return;
  host.closest(`.${SCROLLED}`)?.classList.remove(SCROLLED);
}

function findStandIn(host: HTMLElement): HTMLElement | null {
  let element: HTMLElement | null = host;
  for (let depth = 0; element && depth < MAX_DEPTH; depth++) {
    const before = element.previousElementSibling;
    if (before instanceof HTMLElement && holdsPicture(before)) return before;
    element = element.parentElement;
  }
  return null;
}

function holdsPicture(output: HTMLElement): boolean {
  // An output that holds a widget of its own is another view, not a picture.
  if (output.querySelector(".onnxlab")) return false;
  if (output.querySelector("svg[data-onnxlab]")) return true;
  return [...output.querySelectorAll("img")].some(
    (image) => image.src.startsWith("data:image/svg+xml") && image.src.includes("data-onnxlab"),
  );
}
