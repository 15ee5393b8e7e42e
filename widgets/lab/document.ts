/** One tab with a model: its kernel opens the file, shows the widget, and saves; the page never holds the file. */

import { ask, type Opened, type Problem, type Saved } from "./kernel_side.ts";
import type { Context, DocumentWidget, LuminoPanel, Modules, Rendermime, Scope } from "./shared.ts";
import { shared } from "./shared.ts";

const WIDGET = "application/vnd.jupyter.widget-view+json";

/** The modules that a tab needs, looked up once. */
export interface Parts {
  apputils: Modules["@jupyterlab/apputils"];
  manager: Modules["@jupyter-widgets/jupyterlab-manager"];
  lumino: Modules["@lumino/widgets"];
}

export async function partsOf(scope: Scope): Promise<Parts> {
  const [apputils, manager, lumino] = await Promise.all([
    shared(scope, "@jupyterlab/apputils"),
    shared(scope, "@jupyter-widgets/jupyterlab-manager"),
    shared(scope, "@lumino/widgets"),
  ]);
  return { apputils, manager, lumino };
}

/** Fills a tab and keeps it in step with the kernel; `rendermime` must be the tab's own. */
export class ModelDocument {
  #parts: Parts;
  #context: Context;
  #panel: LuminoPanel;
  #rendermime: Rendermime;
  /** Counts openings: an answer to an older one is late. */
  #turn = 0;

  constructor(parts: Parts, context: Context, panel: LuminoPanel, rendermime: Rendermime) {
    this.#parts = parts;
    this.#context = context;
    this.#panel = panel;
    this.#rendermime = rendermime;
    panel.addClass("onnxlab-document");
    takeOver(
      context,
      () => this.save(),
      (name) => this.save(name),
      parts.apputils,
    );
    panel.node.addEventListener("onnxlab:state", (event) => {
      context.model.dirty = (event as CustomEvent<{ dirty: boolean }>).detail.dirty;
    });
    this.#say("Opening…", "The kernel reads the model.");
    void this.#start();
  }

  async #start(): Promise<void> {
    const { sessionContext } = this.#context;
    await sessionContext.ready;
    if (this.#context.isDisposed) return;
    const manager = this.#parts.manager.registerWidgetManager(this.#context, this.#rendermime, []);
    this.#context.disposed.connect(() => manager.dispose());
    sessionContext.kernelChanged.connect(() => void this.open());
    let restarts = false;
    sessionContext.statusChanged.connect((_, status) => {
      if (status === "restarting" || status === "autorestarting") restarts = true;
      else if (restarts && status === "idle") {
        restarts = false;
        void this.open();
      }
    });
    await this.open();
  }

  /** Shows the file anew; edits of a kernel that lives on are still there. */
  async open(): Promise<void> {
    const turn = ++this.#turn,
      kernel = this.#context.sessionContext.session?.kernel;
    if (!kernel) {
      this.#say("No kernel", "A Python kernel with onnxlab opens the model.", true);
      return;
    }
    let answer: Opened;
    try {
      answer = await ask<Opened>(kernel, "open_document", this.#name());
    } catch (error) {
      answer = { problem: { title: "The kernel did not answer", message: String(error) } };
    }
    if (turn !== this.#turn || this.#context.isDisposed) return;
    if (answer.view) await this.#show(answer.view);
    else this.#complain(answer.problem);
  }

  /** Saves to the file, or to another one beside it, to which the tab belongs from then on. */
  async save(name?: string): Promise<void> {
    const kernel = this.#context.sessionContext.session?.kernel;
    if (!kernel) throw new Error("There is no kernel, which holds the model.");
    const { problem, notes } = await ask<Saved>(kernel, "save_document", this.#name(), ...(name ? [name] : []));
    if (!problem) {
      for (const note of notes ?? []) this.#parts.apputils.Notification.warning(note, { autoClose: false });
      if (name) this.#context._updatePath?.(this.#context.path.replace(/[^/:]*$/, () => name));
      await this.#context.revert(); // looks at the date of the file again; there is no content in the page
      return;
    }
    const error = new Error(problem.message);
    void this.#parts.apputils.showErrorMessage(problem.title, error);
    throw error;
  }

  /** The kernel runs in the file's folder. */
  #name(): string {
    return this.#context.localPath.split("/").pop() ?? this.#context.localPath;
  }

  async #show(view: string): Promise<void> {
    const renderer = this.#rendermime.createRenderer(WIDGET);
    this.#panel.node.replaceChildren();
    this.#panel.addWidget(renderer);
    await renderer.renderModel({ data: { [WIDGET]: { version_major: 2, version_minor: 1, model_id: view } } });
  }

  #complain(problem: Problem | undefined): void {
    const { title, message, kernel } = problem ?? { title: "The kernel said nothing", message: "", kernel: true };
    this.#say(title, message, kernel, true);
  }

  /** A panel of text in the place of the picture. */
  #say(title: string, message: string, kernel = false, again = false): void {
    const panel = document.createElement("div"),
      heading = document.createElement("h2"),
      text = document.createElement("p");
    panel.className = "onnxlab-said";
    panel.dataset.testid = "onnxlab-said";
    panel.setAttribute("role", "status");
    heading.textContent = title;
    text.textContent = message;
    panel.append(heading, text);
    if (again) panel.append(button("Try again", () => void this.open()));
    if (kernel) {
      const dialogs = new this.#parts.apputils.SessionContextDialogs();
      panel.append(button("Choose a kernel…", () => void dialogs.selectKernel(this.#context.sessionContext)));
    }
    this.#panel.node.replaceChildren(panel);
  }
}

/**
 * The kernel has the model, so it writes the file: JupyterLab would write what the page holds, which is nothing, and
 * lay a copy of the file into `.ipynb_checkpoints`.
 */
function takeOver(
  context: Context,
  save: () => Promise<void>,
  saveTo: (name: string) => Promise<void>,
  { InputDialog }: Modules["@jupyterlab/apputils"],
): void {
  Object.defineProperty(context, "canSave", { value: false });
  context.createCheckpoint = async () => undefined;
  context.save = save;
  context.saveAs = async () => {
    const text = context.localPath.split("/").pop() ?? "";
    const { button: pressed, value } = await InputDialog.getText({ title: "Save the model as", text });
    if (!pressed.accept || !value) return false;
    await saveTo(value);
    return true;
  };
}

function button(label: string, act: () => void): HTMLElement {
  const element = document.createElement("button");
  element.className = "jp-mod-styled jp-mod-accept";
  element.textContent = label;
  element.addEventListener("click", act);
  return element;
}

/** Ctrl+S anywhere in the tab saves at once; the widget's own button shows first what will change. */
export function saveOnKey(widget: DocumentWidget, save: () => void): void {
  const onKey = (event: KeyboardEvent): void => {
    if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    save();
  };
  widget.node.addEventListener("keydown", onKey, true);
}
