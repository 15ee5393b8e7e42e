/**
 * The part of a view in a saved notebook. JupyterLab shows an output's widget from the kernel's models or else from
 * those in the notebook's metadata, and an error where it has neither. So each time the notebook is written, a model
 * of a few lines goes into the metadata under the view's id: it says how to get the widget back, below the picture.
 *
 * JupyterLab does not promise this way in; where any of it is missing, nothing happens.
 */

const STATE = "application/vnd.jupyter.widget-state+json";

const NOTE = "Run the cell to explore and edit this model.";
const MODULE = `export default { render({ el }) { el.textContent = ${JSON.stringify(NOTE)}; el.style.opacity = "0.7"; } };`;

/** The parts of JupyterLab's widget manager that are used, all of them perhaps absent. */
interface Manager {
  context?: {
    saveState?: Signal;
    model?: { getMetadata?(key: string): unknown; setMetadata?(key: string, value: unknown): void };
  };
}

interface Signal {
  connect?(slot: (sender: unknown, state: unknown) => void): unknown;
  disconnect?(slot: (sender: unknown, state: unknown) => void): unknown;
}

interface WidgetState {
  version_major: number;
  version_minor: number;
  state: Record<string, unknown>;
}

/** Keeps a note for the view `id` in the notebook's file; returns the function that stops it. */
export function keepNote(manager: unknown, id: string, version: string): () => void {
  const context = (manager as Manager | undefined)?.context;
  const { saveState, model } = context ?? {};
  if (!id || !saveState?.connect || !model?.getMetadata || !model.setMetadata) return () => undefined;
  const onSave = (_sender: unknown, state: unknown) => {
    if (state !== "started") return;
    const widgets = asRecord(model.getMetadata!("widgets"));
    const saved = asState(widgets[STATE]);
    if (id in saved.state) return; // a notebook saved with the state of all widgets has this view's too
    model.setMetadata!("widgets", {
      ...widgets,
      [STATE]: { ...saved, state: { ...saved.state, [id]: note(version) } },
    });
  };
  saveState.connect(onSave);
  return () => saveState.disconnect?.(onSave);
}

function note(version: string): unknown {
  const view = { _view_module: "anywidget", _view_module_version: version, _view_name: "AnyView" };
  return {
    model_module: "anywidget",
    model_module_version: version,
    model_name: "AnyModel",
    state: { ...view, _esm: MODULE },
  };
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function asState(value: unknown): WidgetState {
  const { version_major, version_minor, state } = asRecord(value);
  return {
    version_major: typeof version_major === "number" ? version_major : 2,
    version_minor: typeof version_minor === "number" ? version_minor : 0,
    state: asRecord(state),
  };
}
