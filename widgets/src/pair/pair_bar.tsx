/**
 * The bar above two views: the difference in one sentence, the measure that colors the boxes, the link between the
 * views.
 */

import { KINDS } from "../graph/canvas/theme.ts";
import type { PairInfo } from "../kernel/protocol.ts";
import { ToolButton } from "../panels/parts/controls.tsx";
import { useCell } from "../state.ts";
import type { ColoredBy, Pair } from "./pair.ts";

const WORDS: Record<ColoredBy, string> = {
  difference: "Difference",
  error: "Error",
  local: "Error of each node alone",
  operator: "Operator",
};

export function PairBar({ pair }: { pair: Pair }) {
  const info = useCell(pair.info);
  const colored = useCell(pair.colored);
  const linked = useCell(pair.linked);
  const failure = useCell(pair.failure);
  const busy = useCell(pair.busy);
  const ways: ColoredBy[] = [
    ...(info && info.sides > 1 ? (["difference"] as const) : []),
    ...(info?.errors ? (["error"] as const) : []),
    ...(info?.errors?.local.length ? (["local"] as const) : []),
    "operator",
  ];
  return (
    <header class="ol-pair-bar">
      {pair.end && (
        <ToolButton icon="left" label="Back" title="Show the one model again" testid="pair-end" onClick={pair.end} />
      )}
      <span class="ol-stretch ol-elided" role="status" title={failure || info?.headline} data-testid="pair-headline">
        {failure ? <span class="ol-bad">{failure}</span> : (info?.headline ?? "Comparing…")}
      </span>
      {info?.stale && (
        <span class="ol-stale">
          edited since{" "}
          <button
            type="button"
            class="ol-link"
            disabled={busy}
            data-testid="pair-again"
            onClick={() => void pair.refresh(true)}
          >
            {busy ? "running…" : "compare again"}
          </button>
        </span>
      )}
      {info && <Colors info={info} by={colored} />}
      <label class="ol-pair-choice">
        <span class="ol-dim">color by</span>
        <select
          class="ol-input ol-select"
          value={colored}
          data-testid="pair-color"
          onChange={(event) => pair.color(event.currentTarget.value as ColoredBy)}
        >
          {ways.map((way) => (
            <option key={way} value={way}>
              {WORDS[way]}
            </option>
          ))}
        </select>
      </label>
      {info && info.sides > 1 && (
        <label class="ol-pair-choice" title="Pan, zoom, folding and selection of one graph are those of the other">
          <input
            type="checkbox"
            checked={linked}
            data-testid="pair-linked"
            onChange={(event) => {
              pair.linked.value = event.currentTarget.checked;
            }}
          />
          linked
        </label>
      )}
    </header>
  );
}

/** The legend of both graphs: kinds that there are, or the scale of errors. */
function Colors({ info, by }: { info: PairInfo; by: ColoredBy }) {
  if (by === "operator") return null;
  if (by !== "difference")
    return (
      <span class="ol-pair-colors" data-testid="pair-colors">
        <span class="ol-dim">10⁻⁷</span>
        <span class="ol-legend-bar" aria-hidden="true" />
        <span class="ol-dim">0.3</span>
      </span>
    );
  const present = new Set(info.colors.flatMap(({ kinds }) => kinds));
  return (
    <span class="ol-pair-colors" data-testid="pair-colors">
      {info.kinds.map(
        (kind, place) =>
          present.has(place) && (
            <span key={kind} class="ol-legend-kind">
              <span style={{ background: KINDS[place % KINDS.length] }} aria-hidden="true" />
              {kind}
            </span>
          ),
      )}
    </span>
  );
}
