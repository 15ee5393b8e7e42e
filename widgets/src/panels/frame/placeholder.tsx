/** The page before the first picture: that the model is read, why it cannot be shown, or that it has no nodes. */

import type { App } from "../../app.ts";
import { MODEL } from "../../edit/commands/model_commands.ts";
import { INITIALIZER } from "../../kernel/protocol.ts";
import { useCell, useEvents } from "../../state.ts";

/** Most operators need something to read. */
const addInput = MODEL.find(({ id }) => id === "add_input");

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
    const ends = [...app.store.scopes.values()].some(({ inputs, outputs }) => inputs.length + outputs.length > 0);
    return (
      <div class="ol-placeholder" data-testid="placeholder">
        <p>{weights ? "These are weights without a graph." : "This model has no nodes."}</p>
        <p class="ol-dim">
          {weights
            ? "They are listed on the right."
            : ends
              ? "Its inputs and outputs are listed on the right."
              : "It has no inputs and no outputs either."}
        </p>
        {app.client.editable && (
          <p class="ol-actions">
            <button
              type="button"
              class="ol-button ol-text-button"
              data-testid="placeholder-open"
              onClick={() => app.files.choose()}
            >
              Open a file…
            </button>
            {!weights && (
              <button
                type="button"
                class="ol-button ol-text-button"
                data-testid="placeholder-add"
                onClick={() => (ends ? app.palette.addNode() : addInput?.act(app, { nodes: [], value: 0 }))}
              >
                {ends ? "Add a node…" : "Add an input…"}
              </button>
            )}
          </p>
        )}
      </div>
    );
  }
  return null;
}
