/** The banner above the picture: a kernel that is busy, silent or gone, recovered edits, and bad values of a run. */

import type { App } from "../../app.ts";
import type { Connection } from "../../kernel/channel.ts";
import { useEvents } from "../../state.ts";
import { Icon } from "../parts/icons.tsx";
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
