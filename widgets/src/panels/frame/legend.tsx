/** The scale of the boxes' colors, from nothing to the most, and the choice of measures. */

import type { App } from "../../app.ts";
import { KINDS } from "../../graph/canvas/theme.ts";
import { quantity } from "../../look/node_heat.ts";
import { useCell, useEvents } from "../../state.ts";
import { ToolButton } from "../parts/controls.tsx";

const MEASURES = {
  time: "Time",
  memory: "Memory",
  flops: "FLOPs",
  least: "Least time by the roofline",
  bound: "Arithmetic or memory",
  parameters: "Parameters",
  range: "Range of values",
  provider: "Provider",
  partition: "Partition of Glow",
};

export function Legend({ app }: { app: App }) {
  const overlay = useCell(app.runs.overlay);
  if (!overlay) return null;
  const most = Math.max(0, ...[...overlay.numbers.values()].filter(Number.isFinite));
  return (
    <div class="ol-legend" role="group" aria-label={`Colors of ${overlay.title}`} data-testid="legend">
      {overlay.kinds.map((kind, i) => (
        <span key={kind} class="ol-legend-kind">
          <span style={{ background: KINDS[i % KINDS.length] }} aria-hidden="true" />
          {kind}
        </span>
      ))}
      {overlay.kinds.length === 0 && (
        <>
          <span class="ol-dim">{overlay.scale === "log" ? "10⁻⁷" : "0"}</span>
          <span class="ol-legend-bar" aria-hidden="true" />
          <span class="ol-dim">{overlay.scale === "log" ? "0.3" : quantity(most, overlay.unit)}</span>
        </>
      )}
      <ToolButton
        icon="close"
        title="Color by operator again"
        testid="legend-close"
        onClick={() => void app.runs.colorBy(null)}
      />
    </div>
  );
}

/** The measures to choose from. */
export function ColorBy({ app }: { app: App }) {
  useEvents(app.client, "connection");
  const measuring = useCell(app.runs.measuring);
  const overlay = useCell(app.runs.overlay);
  if (app.client.can.edit === false) return null;
  return (
    <select
      class="ol-input ol-select ol-color-by"
      aria-label="Color boxes by"
      title="Color boxes by"
      data-testid="color-by"
      value=""
      disabled={measuring || !app.client.editable}
      onChange={(event) => {
        const by = event.currentTarget.value;
        event.currentTarget.value = "";
        void app.runs.colorBy(by === "none" ? null : by);
      }}
    >
      <option value="">{measuring ? "Measuring…" : (overlay?.title ?? "Color by")}</option>
      {Object.entries(MEASURES).map(([by, words]) => (
        <option key={by} value={by}>
          {words}
        </option>
      ))}
      {overlay && <option value="none">Operator</option>}
    </select>
  );
}
