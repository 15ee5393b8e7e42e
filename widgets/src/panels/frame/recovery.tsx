/** Edits that an earlier session made and never saved: made again, or forgotten, with one click. */

import type { App } from "../../app.ts";
import { useEvents } from "../../state.ts";
import { Icon } from "../parts/icons.tsx";

export function RecoveryNotice({ app }: { app: App }) {
  useEvents(app.store, "history", "reset");
  const journal = app.store.history.recoverable;
  if (!journal || !app.client.editable) return null;
  const ask = (method: "recover" | "discard") =>
    void app.client.request(method, {}).catch((error) => app.notices.fail(error));
  return (
    <div class="ol-banner ol-banner-recovery" data-testid="recovery">
      <Icon name="info" />
      <span>Never saved: {journal}</span>
      <button type="button" class="ol-link" data-testid="recover" onClick={() => ask("recover")}>
        recover
      </button>
      <button type="button" class="ol-link" data-testid="discard-recovery" onClick={() => ask("discard")}>
        discard
      </button>
    </div>
  );
}
