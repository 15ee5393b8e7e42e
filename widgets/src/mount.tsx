/** Puts one view on the page and takes it off again without a trace. */

import { render } from "preact";
import { App } from "./app.ts";
import type { Reading } from "./graph/scene/flow.ts";
import { GraphView } from "./graph/view/view.ts";
import { Client } from "./kernel/client.ts";
import { showOneOf } from "./kernel/stand_in.ts";
import type { Transport } from "./kernel/transport.ts";
import { handleKey } from "./keyboard.ts";
import { currentTheme, watchTheme } from "./look/page_theme.ts";
import { Store } from "./model/store.ts";
import { Root } from "./panels/frame/root.tsx";
import type { Picture } from "./view_contract.ts";

/** Durable state that lives outside the view: the widget's traits. */
export interface Shared {
  /** Height in pixels, 0 where none is set; "fill": as high as the element around it. */
  height(): number | "fill";
  /** Stores the height; absent where the page around the widget sets it. */
  setHeight?(height: number): void;
  onHeight(listener: () => void): () => void;
  title(): string;
  onTitle(listener: () => void): () => void;
  selection(): number[];
  setSelection(nodes: number[]): void;
  onSelection(listener: () => void): () => void;
  /** The direction of the picture. */
  reading(): Reading;
  setReading(reading: Reading): void;
  /** Whether what is many times taller than wide is drawn in columns. */
  columns(): boolean;
  setColumns(columns: boolean): void;
  /** Called when direction or columns changed. */
  onReading(listener: () => void): () => void;
  bookmarks(): number[];
  setBookmarks(nodes: number[]): void;
  onBookmarks(listener: () => void): () => void;
}

/** Parts of a view for browser tests: `element.__onnxlab`. */
export interface Handle {
  view: Picture | null;
  store: Store;
  client: Client;
  app: App;
}

export interface MountedElement extends HTMLElement {
  __onnxlab?: Handle;
}

/** Pixels; a view lower than this has no room for its inspector. */
const MIN_HEIGHT = 240,
  DEFAULT_HEIGHT = 560;

/** Pixels of width from which there is room for the inspector beside the picture, and for the outline too. */
const WIDE = 800,
  ROOMY = 1280;

/**
 * Shows the model behind `transport` in `host`, and another one when the kernel does; returns the function that ends it.
 * `joined` gets each view before it begins.
 */
export function mount(
  host: HTMLElement,
  transport: Transport,
  shared: Shared,
  joined: (app: App) => void = () => undefined,
): () => void {
  let ended = false;
  // Nothing that is known of a model holds for another, so that the view begins anew.
  const opened = (former: string) =>
    queueMicrotask(() => {
      if (ended) return;
      unmount();
      unmount = mountOne(host, transport, shared, opened, joined, former);
    });
  let unmount = mountOne(host, transport, shared, opened, joined);
  return () => {
    ended = true;
    unmount();
  };
}

/** `former` is the name of the model that was shown before, where it gives place to this one. */
function mountOne(
  host: HTMLElement,
  transport: Transport,
  shared: Shared,
  opened: (former: string) => void,
  joined: (app: App) => void,
  former = "",
): () => void {
  const store = new Store();
  const client = new Client(transport, store);
  const app = new App(client);
  const root = makeRoot(host.ownerDocument);
  const handle: Handle = { view: null, store, client, app };
  (root as MountedElement).__onnxlab = handle;
  host.append(root);
  joined(app);

  const offs: (() => void)[] = [];
  const setTheme = (theme: "light" | "dark") => {
    root.dataset.theme = theme;
    handle.view?.setTheme(theme);
  };
  const setHeight = () => {
    const setting = shared.height();
    if (setting === "fill") {
      root.style.height = "100%";
      root.style.minHeight = `${MIN_HEIGHT}px`;
      app.height.value = 0; // the page sets the height: there is no edge to drag
      return;
    }
    const height = Math.max(MIN_HEIGHT, setting || DEFAULT_HEIGHT);
    root.style.height = `${height}px`;
    if (shared.setHeight) app.height.value = height;
  };
  setTheme(currentTheme(root.ownerDocument));
  setHeight();
  const setTitle = () => {
    app.title.value = shared.title();
  };
  setTitle();
  offs.push(
    watchTheme(root.ownerDocument, setTheme),
    shared.onHeight(setHeight),
    shared.onTitle(setTitle),
    ...watchInput(root, app),
  );

  offs.push(
    client.on("opened", (event) => opened(event.former)),
    app.height.on((height) => {
      if (!height) return;
      root.style.height = `${height}px`;
      if (height !== shared.height()) shared.setHeight?.(height);
    }),
    watchStandIn(host, root, client, store),
    tellHost(root, store),
  );

  // Panels open before anything is laid out: a first look is made for the room that is left.
  const openSides = () => {
    const { clientWidth } = root;
    app.outlineOpen.value = clientWidth >= ROOMY;
    if (clientWidth && clientWidth < WIDE) app.inspectorOpen.value = false;
  };
  openSides();
  const onStage = (stage: HTMLElement) => {
    openSides();
    const picture: Picture = new GraphView(stage, store);
    handle.view = picture;
    app.attach(picture);
    // The selection is taken after the picture's own listener: it needs the nodes that the snapshot brings.
    offs.push(store.on("reset", takeSelection));
    void app.start().then(() => {
      if (former) app.files.tellOpened(former);
    });
  };
  app.toggleFull = () => {
    const { fullscreenElement } = root.ownerDocument;
    void (fullscreenElement ? root.ownerDocument.exitFullscreen() : root.requestFullscreen()).catch((error) =>
      app.notices.fail(error),
    );
  };
  app.picked.onSelect = (nodes) => shared.setSelection(nodes);
  const takeSelection = () => app.picked.selectFromKernel(shared.selection());
  const takeBookmarks = () => app.travel.setBookmarks(shared.bookmarks().filter((id) => store.nodes.has(id)));
  const takeReading = () => {
    app.setReading(shared.reading());
    app.setColumns(shared.columns());
  };
  takeReading();
  app.onReading = (reading) => shared.setReading(reading);
  app.onColumns = (columns) => shared.setColumns(columns);
  offs.push(shared.onReading(takeReading));
  app.travel.onBookmarks = (nodes) => shared.setBookmarks(nodes);
  offs.push(shared.onSelection(takeSelection), shared.onBookmarks(takeBookmarks), store.on("reset", takeBookmarks));
  render(<Root app={app} onStage={onStage} />, root);

  return () => {
    for (const off of offs) off();
    app.dispose();
    handle.view?.destroy();
    client.dispose();
    render(null, root);
    root.remove();
    delete (root as MountedElement).__onnxlab;
  };
}

/** Leaves the place to the picture that stands in for the widget as long as no kernel answered, and at the end. */
function watchStandIn(host: HTMLElement, root: HTMLElement, client: Client, store: Store): () => void {
  const update = () => showOneOf(host, root, store.version > 0 || ["connecting", "ready"].includes(client.connection));
  // Jupyter puts the view on the page after it is made.
  const timer = setTimeout(update, 0);
  const offs = [client.on("connection", update), store.on("reset", update)];
  return () => {
    clearTimeout(timer);
    for (const off of offs) off();
    showOneOf(host, root, false);
  };
}

/** Lets what is around the view know, by an event that bubbles, whether there are edits that are not saved. */
function tellHost(root: HTMLElement, store: Store): () => void {
  const tell = () =>
    root.dispatchEvent(
      new CustomEvent("onnxlab:state", { bubbles: true, composed: true, detail: { dirty: store.dirty } }),
    );
  const offs = [store.on("reset", tell), store.on("commit", tell), store.on("history", tell)];
  return () => offs.forEach((off) => off());
}

function makeRoot(document: Document): HTMLElement {
  const root = document.createElement("div");
  root.className = "onnxlab";
  // The picture takes the focus; the root only catches what lands beside it.
  root.tabIndex = -1;
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", "ONNX model");
  root.dataset.testid = "onnxlab-root";
  // JupyterLab's shortcut handler leaves keys alone that are pressed inside an element marked so.
  root.dataset.lmSuppressShortcuts = "true";
  return root;
}

/** Milliseconds after which what a click does is on the page. */
const REGAIN_MS = 60;

/** Keys are the widget's while the focus is inside; nothing of them reaches Jupyter. */
function watchInput(root: HTMLElement, app: App): (() => void)[] {
  const onKeyDown = (event: KeyboardEvent) => {
    if (!event.defaultPrevented && handleKey(app, root, event)) event.preventDefault();
    event.stopPropagation();
  };
  const stop = (event: Event) => event.stopPropagation();
  // The focused element may be gone with its panel: the keys that follow are not for the notebook.
  const regain = () => {
    setTimeout(() => {
      const { activeElement, body } = root.ownerDocument;
      const lost = root.isConnected && (!activeElement || activeElement === body);
      if (lost) root.querySelector<HTMLElement>('[data-testid="outline"]')?.focus({ preventScroll: true });
    }, REGAIN_MS);
  };
  const listeners: [string, (event: never) => void][] = [
    ["keydown", onKeyDown],
    ["keyup", stop],
    ["keypress", stop],
    ["click", regain],
    // Jupyter opens its own menu over outputs and pastes and copies cells.
    ["contextmenu", stop],
    ["copy", stop],
    ["cut", stop],
    ["paste", stop],
  ];
  for (const [type, listener] of listeners) root.addEventListener(type, listener as EventListener);
  return listeners.map(
    ([type, listener]) =>
      () =>
        root.removeEventListener(type, listener as EventListener),
  );
}
