/** The largest few of the last axis: what a classifier says. */

import { useEffect, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { fromWire, type TensorPart, type WireNumber } from "../../kernel/protocol.ts";
import { largest, shares } from "../../look/tensor_ways.ts";
import { formatNumber } from "../inspector/statistics.tsx";

const MOST = 5,
  PIECE = 4096;

export function Largest({ app, part }: { app: App; part: TensorPart }) {
  const [numbers, setNumbers] = useState<number[] | null>(null);
  const [row, setRow] = useState(0);
  const rank = part.shape.length,
    rows = rank > 1 ? part.shape[rank - 2]! : 1,
    width = part.shape.at(-1) ?? 1;
  useEffect(() => {
    let live = true;
    const read = async () => {
      const rowNumbers: number[] = [];
      const axes = rank > 1 ? { rows: rank - 2, columns: rank - 1 } : {};
      for (let left = 0; left < width && live; left += PIECE) {
        const params = { value: part.id, ...axes, top: row, left, height: 1, width: Math.min(PIECE, width - left) };
        const { cells } = await app.client.request("tensor", params);
        rowNumbers.push(...(cells[0] ?? []).map((cell) => fromWire(cell as WireNumber)));
      }
      if (live) setNumbers(rowNumbers);
    };
    read().catch((error) => app.notices.fail(error));
    return () => {
      live = false;
    };
  }, [row]);
  if (!numbers) return <p class="ol-empty">Reading…</p>;
  const share = shares(numbers),
    entries = largest(numbers, MOST);
  return (
    <div class="ol-largest" data-testid="large-top-list">
      {rows > 1 && (
        <label class="ol-tensor-axis">
          row{" "}
          <input
            type="number"
            class="ol-input"
            min={0}
            max={rows - 1}
            value={row}
            onInput={(event) => {
              const next = event.currentTarget.valueAsNumber;
              if (next >= 0 && next < rows) setRow(next);
            }}
          />
        </label>
      )}
      <table class="ol-table">
        <thead>
          <tr>
            <th scope="col" class="ol-left">
              index
            </th>
            <th scope="col">value</th>
            <th scope="col">softmax, %</th>
            <th scope="col" class="ol-left" aria-label="share" />
          </tr>
        </thead>
        <tbody>
          {entries.map(({ at, number }) => (
            <tr key={at} data-testid="large-top-row">
              <th scope="row" class="ol-left ol-mono">
                {at}
              </th>
              <td>{formatNumber(number)}</td>
              <td>{(100 * share[at]!).toFixed(1)}</td>
              <td class="ol-left">
                <span class="ol-share" aria-hidden="true">
                  <span style={{ width: `${100 * share[at]!}%` }} />
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
