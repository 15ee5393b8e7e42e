/**
 * The extension of JupyterLab and Notebook 7: files of models open in a tab of their own, with the widget in it.
 *
 * It is a federated module as the page expects one, written by hand: it needs nothing but what the page shares.
 */

import { ModelDocument, partsOf, saveOnKey } from "./document.ts";
import { EXTENSIONS, FACTORY, type FileType, OFFERED, TYPES } from "./file_types.ts";
import iconText from "./icon.svg";
import { type Application, type Context, type DocumentWidget, type Rendermime, type Scope, shared } from "./shared.ts";
import styles from "./style.css";

const OPEN = "onnxlab:open";
const MODEL = "onnxlab-model";

interface Launcher {
  add(card: object): void;
}

interface Restorer {
  restore(tracker: unknown, options: object): Promise<unknown>;
}

async function plugin(scope: Scope): Promise<object> {
  const [docregistry, application, apputils, docmanager, launcher, rendermime] = await Promise.all([
    shared(scope, "@jupyterlab/docregistry"),
    shared(scope, "@jupyterlab/application"),
    shared(scope, "@jupyterlab/apputils"),
    shared(scope, "@jupyterlab/docmanager"),
    shared(scope, "@jupyterlab/launcher"),
    shared(scope, "@jupyterlab/rendermime"),
  ]);
  const { LabIcon } = await shared(scope, "@jupyterlab/ui-components");
  const icon = new LabIcon({ name: "onnxlab:model", svgstr: iconText });

  /** Models are read by the kernel: a file format of null keeps the page from fetching them. */
  class ModelFactory extends docregistry.TextModelFactory {
    readonly name = MODEL;
    readonly fileFormat = null;
    constructor() {
      super(false);
      Object.defineProperties(this, { name: { value: MODEL }, fileFormat: { value: null } });
    }
    override createNew(options?: object): Context["model"] {
      return Object.assign(super.createNew(options), { getMetadata: () => undefined });
    }
    preferredLanguage(): string {
      return "python";
    }
  }

  return {
    id: "onnxlab:documents",
    description: "Opens files of models in a tab of their own.",
    autoStart: true,
    requires: [rendermime.IRenderMimeRegistry, docmanager.IDocumentManager],
    optional: [application.ILayoutRestorer, launcher.ILauncher, apputils.ICommandPalette],
    async activate(
      app: Application,
      registry: Rendermime,
      manager: unknown,
      restorer: Restorer | null,
      cards: Launcher | null,
      palette: { addItem(item: object): void } | null,
    ): Promise<void> {
      const parts = await partsOf(scope);
      addStyles();
      const tracker = new apputils.WidgetTracker({ namespace: "onnxlab-documents" });

      class Factory extends docregistry.ABCWidgetFactory {
        createNewWidget(context: Context): DocumentWidget {
          const content = new parts.lumino.Panel(),
            widget = new docregistry.DocumentWidget({ content, context });
          widget.title.icon = icon;
          widget.toolbar.hide(); // the widget has its own
          const shown = new ModelDocument(parts, context, content, registry.clone());
          saveOnKey(widget, () => void shown.save().catch(() => undefined)); // a dialog has said why not
          void tracker.add(widget);
          return widget;
        }
      }

      for (const type of TYPES) app.docRegistry.addFileType(asFileType(type, icon));
      app.docRegistry.addModelFactory(new ModelFactory());
      app.docRegistry.addWidgetFactory(
        new Factory({
          name: FACTORY,
          label: FACTORY,
          modelName: MODEL,
          fileTypes: [...TYPES.map(({ name }) => name), ...OFFERED],
          defaultFor: TYPES.map(({ name }) => name),
          preferKernel: true,
          canStartKernel: true,
          autoStartDefault: true,
          shutdownOnClose: true,
        }),
      );
      app.commands.addCommand(OPEN, {
        label: "Open an ONNX model…",
        caption: "Open a model in a tab of its own",
        icon,
        execute: () => openFromDialog(scope, app, manager),
      });
      cards?.add({ command: OPEN, category: "Other", rank: 10 });
      palette?.addItem({ command: OPEN, category: "File Operations" });
      void restorer?.restore(tracker, {
        command: "docmanager:open",
        args: (widget: DocumentWidget) => ({ path: widget.context.path, factory: FACTORY }),
        name: (widget: DocumentWidget) => widget.context.path,
      });
    },
  };
}

async function openFromDialog(scope: Scope, app: Application, manager: unknown): Promise<void> {
  const { FileDialog } = await shared(scope, "@jupyterlab/filebrowser");
  const isModel = ({ type, name }: { type: string; name: string }) =>
    type === "directory" || EXTENSIONS.some((ending) => name.toLowerCase().endsWith(ending)) ? {} : null;
  const { value } = await FileDialog.getOpenFiles({ manager, title: "Open a model", filter: isModel });
  for (const { path } of value ?? []) await app.commands.execute("docmanager:open", { path, factory: FACTORY });
}

function asFileType({ name, displayName, extensions }: FileType, icon: unknown): object {
  return { name, displayName, extensions, mimeTypes: ["application/octet-stream"], fileFormat: null, icon };
}

function addStyles(): void {
  const element = document.createElement("style");
  element.textContent = styles;
  document.head.append(element);
}

let scope: Scope = {};
const page = globalThis as typeof globalThis & { _JUPYTERLAB?: Record<string, unknown> };
page._JUPYTERLAB ??= {};
page._JUPYTERLAB.onnxlab = {
  init(params: Scope): void {
    scope = params;
  },
  async get(module: string): Promise<() => unknown> {
    if (module !== "./extension") throw new Error(`onnxlab has no module ${module}`);
    const plugins = [await plugin(scope)];
    return () => ({ __esModule: true, default: plugins });
  },
};
