/** Toasts: the messages of the view on what happened, how long they stay, and text handed to the clipboard. */

import { useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { asRequestError, type RequestError } from "../../kernel/request_error.ts";
import { Cell, useCell } from "../../state.ts";
import { ToolButton } from "./controls.tsx";
import { Icon } from "./icons.tsx";

export interface Toast {
  id: number;
  kind: "error" | "info" | "success";
  text: string;
  /** Further lines, shown on demand. */
  details: string;
  /** A node that the text is about, 0: none. */
  node: number;
  /** Ways on: what to do about it, what was changed. */
  actions: ToastAction[];
}

/** A button of a toast, which goes away with it. */
export interface ToastAction {
  label: string;
  act: () => void;
}

const MAX_TOASTS = 3;
const TOAST_MS = { info: 5000, success: 3500, error: 12_000 };

export class Notices {
  readonly toasts = new Cell<Toast[]>([]);
  #nextToast = 1;
  #timers = new Set<ReturnType<typeof setTimeout>>();

  toast(kind: Toast["kind"], text: string, details = "", node = 0, actions: ToastAction[] = []): void {
    const toast = { id: this.#nextToast++, kind, text, details, node, actions };
    this.toasts.value = [...this.toasts.value.slice(1 - MAX_TOASTS), toast];
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.dismiss(toast.id);
    }, TOAST_MS[kind]);
    this.#timers.add(timer);
  }

  /** Tells that an edit was made, with ways to see what it changed and to take it back. */
  done(app: App, text: string, nodes: number[] = [], details = ""): void {
    const show = { label: "Show", act: () => app.picked.show(nodes) };
    const undo = { label: "Undo", act: () => app.edits.undo() };
    this.toast("success", text, details, 0, nodes.length ? [show, undo] : [undo]);
  }

  /** Shows an error; a kernel that is gone has a banner already. */
  fail(error: unknown): void {
    const refused: RequestError = asRequestError(error);
    if (refused.code === "disconnected") return;
    const node = typeof refused.node === "number" ? refused.node : 0;
    const [line = "", ...rest] = refused.message.split("\n");
    this.toast("error", line, [...rest, refused.hint].filter(Boolean).join("\n"), node);
  }

  dismiss(id: number): void {
    this.toasts.value = this.toasts.value.filter((toast) => toast.id !== id);
  }

  async copyText(text: string, done = `Copied ${text}`): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      this.toast("info", done);
    } catch {
      this.toast("error", "The browser did not allow copying: copy the text from the details.", text);
    }
  }

  dispose(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }
}

export function Toasts({ app }: { app: App }) {
  const toasts = useCell(app.notices.toasts);
  return (
    <div class="ol-toasts" role="status" aria-live="polite">
      {toasts.map((toast) => (
        <ToastLine key={toast.id} app={app} toast={toast} />
      ))}
    </div>
  );
}

/** Characters from which a toast shows the beginning of its text alone. */
const LONG = 240;
const TOAST_ICONS = { error: "error", info: "info", success: "check" } as const;

function ToastLine({ app, toast }: { app: App; toast: Toast }) {
  const [open, setOpen] = useState(false);
  const { kind, text, details, node, actions } = toast;
  const long = text.length > LONG;
  return (
    <div class={`ol-toast ol-toast-${kind}`} data-testid="toast" data-kind={kind}>
      <Icon name={TOAST_ICONS[kind]} />
      <div class="ol-toast-body">
        <p class={`ol-toast-text ${open ? "ol-toast-whole" : ""}`} title={text}>
          {text}
        </p>
        {open && details && (
          <pre class="ol-toast-details" data-testid="toast-details">
            {details}
          </pre>
        )}
      </div>
      {node !== 0 && (
        <button type="button" class="ol-link" onClick={() => app.picked.reveal(node)}>
          Show
        </button>
      )}
      {actions.map(({ label, act }) => (
        <button
          key={label}
          type="button"
          class="ol-link ol-toast-action"
          data-testid={`toast-${label.toLowerCase().replace(/\W+/g, "-")}`}
          onClick={() => {
            app.notices.dismiss(toast.id);
            act();
          }}
        >
          {label}
        </button>
      ))}
      {(details || long) && (
        <button
          type="button"
          class="ol-link"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
          data-testid="toast-more"
        >
          {open ? "Less" : long && !details ? "Full text" : "Details"}
        </button>
      )}
      <ToolButton icon="close" title="Dismiss" testid="toast-dismiss" onClick={() => app.notices.dismiss(toast.id)} />
    </div>
  );
}
