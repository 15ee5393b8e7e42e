/** The page before the first picture: that the model is read, why it cannot be shown, or that it has no nodes. */

import type { App } from "../../app.ts";
import { INITIALIZER } from "../../kernel/protocol.ts";
import { useCell, useEvents } from "../../state.ts";

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
