/** The notices of the widget: the banner about the kernel, toasts, and the page before the first picture. */

import { useState } from "preact/hooks";
import type { App } from "../../app.ts";
import type { Connection } from "../../kernel/channel.ts";
import { INITIALIZER } from "../../kernel/protocol.ts";
import { useCell, useEvents } from "../../state.ts";
import { ToolButton } from "../parts/controls.tsx";
import { Icon } from "../parts/icons.tsx";
import type { Toast } from "../parts/notices.ts";
import { BadBanner } from "./bad_banner.tsx";
import { RecoveryNotice } from "./recovery.tsx";

const BANNERS: Partial<Record<Connection, string>> = {
  waiting: "Kernel busy – waiting",
  silent:
    "The kernel has not answered for a while. It may be busy with a cell; if it was restarted, run this cell again.",
  gone: "The kernel is not there any more. The picture stays as it was; run the cell again to edit.",
};

const CLOSED = "This view was closed in Python. The picture stays as it was; show the model again to edit.";

export function Banner({ app }: { app: App }) {
  useEvents(app.client, "connection");
  const { connection } = app.client;
  const text = connection === "gone" && app.client.closedByKernel ? CLOSED : BANNERS[connection];
  return (
    <div class="ol-banner-place" role="status" aria-live="polite">
      {text && (
        <div class={`ol-banner ol-banner-${connection}`} data-testid="banner" data-connection={connection}>
          {connection === "waiting" ? (
            <span class="ol-spinner" />
          ) : (
            <Icon name={connection === "gone" ? "warning" : "info"} />
          )}
          <span>{text}</span>
        </div>
      )}
      {!text && <RecoveryNotice app={app} />}
      {!text && <BadBanner app={app} />}
    </div>
  );
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

/** Stands where the picture will be until it is there, and says so when the model holds nothing to draw. */
export function Placeholder({ app }: { app: App }) {
  useEvents(app.store, "reset", "commit");
  useEvents(app.client, "connection", "trouble");
  const failure = useCell(app.failure);
  if (failure) {
    return (
      <div class="ol-placeholder" data-testid="placeholder">
        <p>{failure.message}</p>
        {failure.hint && <p class="ol-dim">{failure.hint}</p>}
        <button type="button" class="ol-button ol-text-button" onClick={() => void app.start()}>
          Try again
        </button>
      </div>
    );
  }
  if (app.store.version === 0 && app.client.connection !== "gone") {
    return (
      <div class="ol-placeholder" data-testid="placeholder">
        <span class="ol-spinner" />
        <p class="ol-dim">Reading the model…</p>
      </div>
    );
  }
  if (app.store.version > 0 && app.store.nodes.size === 0) {
    const weights = [...app.store.values.values()].some(({ flags }) => flags & INITIALIZER);
    return (
      <div class="ol-placeholder" data-testid="placeholder">
        <p>{weights ? "These are weights without a graph." : "This model has no nodes."}</p>
        <p class="ol-dim">
          {weights ? "They are listed on the right." : "Its inputs and outputs are listed on the right."}
        </p>
      </div>
    );
  }
  return null;
}
