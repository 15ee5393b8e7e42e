/** Buttons that act on several nodes at once. */

import type { App } from "../../app.ts";
import { BULK_ACTIONS } from "../../edit/bulk_actions.ts";

/** The bar of actions; `from`: the beginning of the buttons' test ids. */
export function BulkBar({
  app,
  nodes,
  from,
  onDone,
}: {
  app: App;
  nodes: () => number[];
  from: string;
  onDone?: () => void;
}) {
  return (
    <div class="ol-bulk" role="group" aria-label="Do to all of them">
      {BULK_ACTIONS.filter(({ edits }) => !edits || app.client.can.edit !== false).map(
        ({ id, label, title, edits, act }) => (
          <button
            key={id}
            type="button"
            class="ol-button ol-text-button"
            title={title}
            disabled={edits && !app.client.editable}
            data-testid={`${from}-${id}`}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => {
              onDone?.();
              act(app, nodes());
            }}
          >
            {label}
          </button>
        ),
      )}
    </div>
  );
}
