/**
 * The modules of JupyterLab's that the extension uses, as far as it does. The page has them already: a federated
 * extension takes them out of the scope that the page shares, and brings none of its own.
 */

/** Packages by name, their versions by number: what the page hands to each extension. */
export type Scope = Record<string, Record<string, { get(): Promise<() => unknown>; loaded?: unknown }>>;

export interface Signal<T> {
  connect(slot: (sender: unknown, value: T) => void): void;
}

export interface Kernel {
  requestExecute(content: object): { done: Promise<{ content: Reply }> };
}

/** The answer of a kernel to an execution. */
export interface Reply {
  status: string;
  ename?: string;
  evalue?: string;
  user_expressions?: Record<
    string,
    { status: string; ename?: string; evalue?: string; data?: Record<string, unknown> }
  >;
}

export interface SessionContext {
  ready: Promise<void>;
  session: { kernel: Kernel | null } | null;
  kernelChanged: Signal<unknown>;
  statusChanged: Signal<string>;
}

export interface Context {
  path: string;
  localPath: string;
  ready: Promise<void>;
  model: { dirty: boolean; getMetadata?: (key: string) => unknown };
  sessionContext: SessionContext;
  pathChanged: Signal<string>;
  disposed: Signal<void>;
  isDisposed: boolean;
  save(): Promise<void>;
  saveAs(): Promise<boolean>;
  revert(): Promise<void>;
  createCheckpoint(): Promise<unknown>;
  /** The way of "Save as" of JupyterLab's own documents; not promised. */
  _updatePath?(path: string): void;
}

export interface LuminoWidget {
  node: HTMLElement;
  id: string;
  title: { label: string; icon: unknown; caption: string };
  addClass(name: string): void;
  dispose(): void;
  disposed: Signal<void>;
}

export interface LuminoPanel extends LuminoWidget {
  addWidget(widget: LuminoWidget): void;
}

export interface DocumentWidget extends LuminoWidget {
  context: Context;
  toolbar: { hide(): void };
}

export interface Renderer extends LuminoWidget {
  renderModel(model: { data: Record<string, unknown> }): Promise<void>;
}

export interface Rendermime {
  clone(): Rendermime;
  createRenderer(mimeType: string): Renderer;
}

export interface Application {
  docRegistry: {
    addFileType(type: object): void;
    addModelFactory(factory: unknown): void;
    addWidgetFactory(factory: unknown): void;
  };
  commands: { addCommand(id: string, options: object): void; execute(id: string, args?: object): Promise<unknown> };
}

/** The modules by name. */
export interface Modules {
  "@jupyterlab/application": { ILayoutRestorer: unknown };
  "@jupyterlab/apputils": {
    ICommandPalette: unknown;
    WidgetTracker: new (options: { namespace: string }) => { add(widget: LuminoWidget): Promise<void> };
    SessionContextDialogs: new () => { selectKernel(context: SessionContext): Promise<void> };
    InputDialog: { getText(options: object): Promise<{ button: { accept: boolean }; value: string | null }> };
    Notification: { warning(text: string, options: { autoClose: boolean }): void };
    showErrorMessage(title: string, error: Error): Promise<void>;
  };
  "@jupyterlab/docmanager": { IDocumentManager: unknown };
  "@jupyterlab/docregistry": {
    ABCWidgetFactory: new (options: object) => object;
    DocumentWidget: new (options: object) => DocumentWidget;
    TextModelFactory: new (collaborative: boolean) => { createNew(options?: object): Context["model"] };
  };
  "@jupyterlab/filebrowser": {
    FileDialog: { getOpenFiles(options: object): Promise<{ value: { path: string }[] | null }> };
  };
  "@jupyterlab/launcher": { ILauncher: unknown };
  "@jupyterlab/rendermime": { IRenderMimeRegistry: unknown };
  "@jupyterlab/ui-components": { LabIcon: new (options: { name: string; svgstr: string }) => unknown };
  "@jupyter-widgets/jupyterlab-manager": {
    registerWidgetManager(context: Context, rendermime: Rendermime, renderers: Iterable<Renderer>): { dispose(): void };
  };
  "@lumino/widgets": { Panel: new () => LuminoPanel; Widget: new () => LuminoWidget };
}

/**
 * A module of the page's.
 *
 * Throws where the page has none, which names it.
 */
export async function shared<Name extends keyof Modules>(scope: Scope, name: Name): Promise<Modules[Name]> {
  const versions = Object.values(scope[name] ?? {});
  const version = versions.find(({ loaded }) => loaded) ?? versions.at(-1);
  if (!version) throw new Error(`onnxlab: this page has no ${name}`);
  return (await version.get())() as Modules[Name];
}
