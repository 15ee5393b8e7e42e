/**
 * A page that hosts widgets as VS Code's notebooks do: ipywidgets in the build that Microsoft's Jupyter extension
 * carries, requirejs for what a widget brings, a connection to a real kernel in the old wire format, and each output
 * in an element of its own. tests/browser/support/webview.py serves it and drives it; what the extension and the
 * editor do around it is told there.
 *
 * package.json replaces what that build names as dependencies, all of JupyterLab: it is one file and needs none of
 * them.
 */

import { KernelConnection } from "@jupyterlab/services/lib/kernel/default";
import * as KernelMessage from "@jupyterlab/services/lib/kernel/messages";
import { ServerConnection } from "@jupyterlab/services/lib/serverconnection";

const WIDGET = "application/vnd.jupyter.widget-view+json";

interface WidgetView {
  luminoWidget: unknown;
}

/** The part of the extension's widget manager that is used. */
interface WidgetManager {
  get_model(id: string): Promise<unknown> | undefined;
  create_view(model: unknown, options: { el: HTMLElement }): Promise<WidgetView>;
  display_view(message: unknown, view: WidgetView, options: { node: HTMLElement }): Promise<unknown>;
}

interface Packaged {
  vscIPyWidgets8: { load(): void };
  vscIPyWidgets: {
    WidgetManager: new (kernel: unknown, el: undefined, loader: object, log: (text: string) => void) => WidgetManager;
  };
  requirejs: { config(options: object): void };
}

/** The result of one execution. */
interface Executed {
  text: string;
  error: string;
}

const page = globalThis as unknown as Window & Packaged;
const query = new URLSearchParams(location.search);

/** The extension's proxy speaks no subprotocol: messages come as JSON with buffers behind it, at any offset. */
class PlainSocket extends WebSocket {
  constructor(url: string | URL) {
    super(url);
  }
}

/** Colab shows widgets, but what a message carries beside its text is lost on the way to the page. */
class TextOnlySocket extends PlainSocket {
  override set onmessage(listener: ((event: MessageEvent) => void) | null) {
    super.onmessage = listener && ((event) => listener(new MessageEvent("message", { data: textOf(event.data) })));
  }
}

/** The JSON of a message in the old wire format: a count, as many offsets, the JSON, then the buffers. */
function textOf(data: string | ArrayBuffer): string {
  if (typeof data === "string") return data;
  const numbers = new DataView(data),
    end = numbers.getUint32(0) > 1 ? numbers.getUint32(8) : data.byteLength;
  return new TextDecoder().decode(data.slice(numbers.getUint32(4), end));
}

function connect(): KernelConnection {
  const serverSettings = ServerConnection.makeSettings({
    baseUrl: `${location.origin}/`,
    wsUrl: `${location.origin.replace("http", "ws")}/`,
    token: query.get("token")!,
    appendToken: true,
    WebSocket: (query.has("text") ? TextOnlySocket : PlainSocket) as never,
  });
  return new KernelConnection({ serverSettings, model: { id: query.get("kernel")!, name: "python3" } });
}

/** Finds a widget's AMD module where the kernel's environment has it. */
class ScriptLoader {
  readonly widgetsRegisteredInRequireJs = new Set<string>();

  async loadWidgetScript(module: string): Promise<void> {
    page.requirejs.config({ paths: { [module]: `${location.origin}/webview/nbextensions/${module}/index` } });
    this.widgetsRegisteredInRequireJs.add(module);
  }

  errorHandler(name: string, module: string, version: string, error: unknown): void {
    console.error(`${module} ${version} has no ${name}:`, error);
  }

  successHandler(): void {
    performance.mark("widget:loaded");
  }
}

/** Executes code and shows its outputs below those that are there, one element each. */
async function run(kernel: KernelConnection, manager: WidgetManager, code: string): Promise<Executed> {
  const cell = append(document.getElementById("container")!, "cell_container");
  const result: Executed = { text: "", error: "" };
  const shown: Promise<void>[] = [];
  const future = kernel.requestExecute({ code });
  future.onIOPub = (message) => {
    if (KernelMessage.isStreamMsg(message)) result.text += message.content.text;
    else if (KernelMessage.isErrorMsg(message)) result.error = message.content.traceback.join("\n");
    else if (KernelMessage.isDisplayDataMsg(message) || KernelMessage.isExecuteResultMsg(message)) {
      shown.push(show(manager, cell, message.content.data as Record<string, unknown>));
    }
  };
  await future.done;
  await Promise.all(shown);
  return result;
}

async function show(manager: WidgetManager, cell: HTMLElement, data: Record<string, unknown>): Promise<void> {
  const output = append(append(cell, "output_container"), "output");
  const widget = data[WIDGET] as { model_id: string } | undefined;
  if (!widget) {
    if (typeof data["image/svg+xml"] === "string") output.innerHTML = data["image/svg+xml"];
    else output.textContent = String(data["text/plain"] ?? "");
    return;
  }
  const around = append(output, "cell-output-ipywidget-background");
  around.tabIndex = 0;
  const model = await manager.get_model(widget.model_id);
  const view = await manager.create_view(model, { el: around });
  await manager.display_view(data, view, { node: around });
  setTimeout(() => makeReachable(around), 500);
}

/** The extension sees to it that the buttons of any widget can be reached and pressed with the keyboard. */
function makeReachable(around: HTMLElement): void {
  for (const element of around.querySelectorAll<HTMLElement>('button, a[href], [role="button"], [onclick]')) {
    if (!element.hasAttribute("tabindex")) element.tabIndex = 0;
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      element.click();
    });
  }
}

function append(parent: HTMLElement, name: string): HTMLElement {
  const element = document.createElement("div");
  element.className = name;
  parent.append(element);
  return element;
}

/** The editor's window hears of every key that reaches the page's. */
function watchKeys(heard: string[]): void {
  window.addEventListener("keydown", (event) => heard.push(event.key));
}

async function main(): Promise<void> {
  const bundle = "/webview/ipywidgets.js";
  ((await import(bundle)) as { activate(): void }).activate();
  page.vscIPyWidgets8.load();
  const kernel = connect();
  await kernel.info;
  const manager = new page.vscIPyWidgets.WidgetManager(kernel, undefined, new ScriptLoader(), () => undefined);
  const heard: string[] = [];
  watchKeys(heard);
  Object.assign(page, { webview: { heard, run: (code: string) => run(kernel, manager, code) } });
}

void main();
