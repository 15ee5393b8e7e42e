/**
 * The banner over the picture after a run: the first node that made NaN or infinity, which all that follows inherits.
 */

import { useMemo, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { firstBad } from "../../look/first_bad.ts";
import { count, nodeLabel, shortOp, valueLabel } from "../../model/names.ts";
import { useCell, useEvents } from "../../state.ts";
import { formatNumber } from "../inspector/statistics.tsx";
import { ToolButton } from "../parts/controls.tsx";
import { Icon } from "../parts/icons.tsx";

export function BadBanner({ app }: { app: App }) {
  useEvents(app.store, "commit", "reset");
  const results = useCell(app.runs.results);
  const [dismissed, setDismissed] = useState(0);
  const bad = useMemo(() => results && firstBad(app.store, results.byValue), [results]);
  if (!bad || !results || dismissed === results.run || results.version !== app.store.version) return null;
  const { node, value, what: problem, input } = bad;
  return (
    <div class="ol-banner ol-banner-bad" data-testid="bad-banner" data-node={node}>
      <Icon name="warning" />
      <span>
        First {problem}: <b>{shortOp(app.store.nodes.get(node)?.op ?? "")}</b> {nodeLabel(app.store, node)} –{" "}
        {count(bad.count)} of {count(bad.of)} elements of {valueLabel(app.store, value)}
        {input > 0 && Number.isFinite(bad.low) && (
          <span class="ol-dim">
            ; its input goes from {formatNumber(bad.low)} to {formatNumber(bad.high)}
          </span>
        )}
      </span>
      <button type="button" class="ol-link" data-testid="bad-show" onClick={() => app.picked.reveal(node)}>
        Show
      </button>
      <button
        type="button"
        class="ol-link"
        data-testid="bad-light"
        title="Light what inherits it"
        onClick={() => app.travel.light([node], "descendants")}
      >
        What inherits it
      </button>
      <ToolButton icon="close" title="Dismiss" testid="bad-dismiss" onClick={() => setDismissed(results.run)} />
    </div>
  );
}
