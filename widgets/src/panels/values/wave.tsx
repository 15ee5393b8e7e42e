/** Rows of a tensor as lines over their last axis. */

import { useEffect, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { fromWire, type TensorPart } from "../../kernel/protocol.ts";
import { decode } from "../../look/color_map.ts";
import type { Drawn } from "../../look/tensor_state.ts";
import { formatNumber } from "../inspector/statistics.tsx";

const ROWS = 8,
  HEIGHT = 120;

export function Wave({ app, part }: { app: App; part: TensorPart }) {
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const rank = part.shape.length;
  useEffect(() => {
    let live = true;
    const axes = rank > 1 ? { rows: rank - 2, columns: rank - 1 } : {};
    app.numbers.draw({ value: part.id, picture: "heat", ...axes }).then(
      (found) => live && setDrawn(found),
      (error) => app.notices.fail(error),
    );
    return () => {
      live = false;
    };
  }, []);
  if (!drawn) return <p class="ol-empty">Reading…</p>;
  const { height, width, low, high } = drawn.picture;
  const ends = { low: fromWire(low), high: fromWire(high) };
  return (
    <div class="ol-waves" tabIndex={0} role="region" aria-label="Wave form">
      {Array.from({ length: Math.min(height, ROWS) }, (_, row) => (
        <figure key={row} data-testid="large-wave">
          <svg
            viewBox={`0 0 ${Math.max(1, width - 1)} ${HEIGHT}`}
            preserveAspectRatio="none"
            role="img"
            aria-label={`row ${row}`}
          >
            <path d={line(drawn.bytes.subarray(row * width, (row + 1) * width), ends)} />
          </svg>
        </figure>
      ))}
      <p class="ol-dim">
        {formatNumber(low)} … {formatNumber(high)} over {part.shape.at(-1)} elements
        {(part.shape.at(-1) ?? 0) > width && `, means of ${Math.ceil((part.shape.at(-1) ?? 0) / width)}`}
      </p>
    </div>
  );
}

function line(codes: Uint8Array, { low, high }: { low: number; high: number }): string {
  let path = "",
    pen = "M";
  codes.forEach((code, x) => {
    const number = decode(code, low, high);
    if (!Number.isFinite(number)) {
      pen = "M";
      return;
    }
    path += `${pen}${x} ${(HEIGHT - ((number - low) / (high - low || 1)) * HEIGHT).toFixed(1)}`;
    pen = "L";
  });
  return path;
}
