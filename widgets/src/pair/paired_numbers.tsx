/** A value of both sides and their difference: as heat maps, and the numbers around the first that is off. */

import { useEffect, useState } from "preact/hooks";
import { type ErrorColumns, fromWire, type TensorPart } from "../kernel/protocol.ts";
import { asRequestError } from "../kernel/request_error.ts";
import { commonScale } from "../look/color_map.ts";
import type { Drawn } from "../look/tensor_state.ts";
import { valueLabel } from "../model/names.ts";
import { formatNumber } from "../panels/inspector/statistics.tsx";
import { Elided } from "../panels/parts/controls.tsx";
import { TensorCanvas } from "../panels/values/canvas.tsx";
import { useCell } from "../state.ts";
import type { Pair } from "./pair.ts";

const OF = ["a", "b", "difference"] as const;
const WORDS = { a: "A", b: "B", difference: "B − A" };
/** Rows and columns of numbers. */
const ROWS = 4,
  CELLS = 5,
  PIXELS = 192;

interface Part {
  part: TensorPart;
  drawn: Drawn | null;
}

export function PairedNumbers({ pair, errors }: { pair: Pair; errors: ErrorColumns }) {
  const value = useCell(pair.value);
  const place = errors.a.indexOf(value);
  const client = pair.app(0)?.client;
  if (place < 0 || !client) return <p class="ol-empty">Click the curve to look into a value of both sides.</p>;
  if (!client.can.run) return <p class="ol-empty">The numbers of both sides are there where a kernel runs.</p>;
  return <Numbers key={value} pair={pair} value={value} first={errors.first[place] ?? []} />;
}

function Numbers({ pair, value, first }: { pair: Pair; value: number; first: number[] }) {
  const [at, setAt] = useState<number[]>(first);
  const [parts, setParts] = useState<Partial<Record<(typeof OF)[number], Part>>>({});
  const [error, setError] = useState("");
  const app = pair.app(0)!;
  const { shape = [], rows = -1, columns = -1 } = parts.a?.part ?? {};
  useEffect(() => {
    let live = true;
    const ask = async () => {
      for (const of of OF) {
        const rank = at.length;
        const { result, buffers } = await askPart(pair, {
          value,
          of,
          at,
          pixels: PIXELS,
          top: corner(at[rank - 2], ROWS),
          left: corner(at[rank - 1], CELLS),
          height: ROWS,
          width: CELLS,
        });
        if (!live) return;
        const drawn = result.picture && buffers ? { part: result, picture: result.picture, bytes: buffers } : null;
        setParts((before) => ({ ...before, [of]: { part: result, drawn } }));
      }
    };
    setError("");
    ask().catch((problem) => live && setError(asRequestError(problem).sentence));
    return () => {
      live = false;
    };
  }, [at]);
  const scale = commonScale([parts.a?.drawn, parts.b?.drawn].filter((drawn) => drawn !== undefined && drawn !== null));
  return (
    <div class="ol-pair-numbers" data-testid="paired-numbers">
      <p class="ol-pair-words">
        <b class="ol-mono">
          <Elided text={valueLabel(app.store, value)} middle />
        </b>
        <span class="ol-dim">{parts.a && `${parts.a.part.dtype} ${shape.join(" × ") || "scalar"}`}</span>
        {shape.map((size, axis) =>
          axis === rows || axis === columns || size < 2 ? null : (
            <label key={axis} class="ol-tensor-axis">
              axis {axis}
              <input
                type="number"
                class="ol-input"
                min={0}
                max={size - 1}
                value={at[axis] ?? 0}
                onInput={(event) => {
                  const next = event.currentTarget.valueAsNumber;
                  if (next >= 0 && next < size) setAt(shape.map((_, i) => (i === axis ? next : (at[i] ?? 0))));
                }}
              />
            </label>
          ),
        )}
      </p>
      {error && <p class="ol-field-error">{error}</p>}
      <div class="ol-pair-tensors">
        {OF.map((of) => {
          const known = parts[of];
          return (
            known && (
              <figure key={of} data-testid={`paired-${of}`}>
                <figcaption>
                  <b>{WORDS[of]}</b>{" "}
                  {known.drawn && (
                    <span class="ol-dim">
                      {formatNumber(fromWire(known.drawn.picture.low))} …{" "}
                      {formatNumber(fromWire(known.drawn.picture.high))}
                    </span>
                  )}
                </figcaption>
                {known.drawn && (
                  <TensorCanvas
                    drawn={known.drawn}
                    scale={of === "difference" ? undefined : scale}
                    label={`heat map of ${WORDS[of]}`}
                    onPick={(row, column) => setAt(picked(known.part, row, column))}
                  />
                )}
                <Cells part={known.part} at={at} />
              </figure>
            )
          );
        })}
      </div>
    </div>
  );
}

/** A few numbers; the one that is looked at is marked. */
function Cells({ part, at }: { part: TensorPart; at: readonly number[] }) {
  const top = corner(at[at.length - 2], ROWS),
    left = corner(at[at.length - 1], CELLS);
  const position = [(at[at.length - 2] ?? 0) - top, (at[at.length - 1] ?? 0) - left];
  return (
    <table class="ol-pair-cells">
      <tbody>
        {part.cells.map((row, i) => (
          <tr key={i}>
            {row.map((cell, k) => (
              <td
                key={k}
                class={(part.rows < 0 || i === position[0]) && k === position[1] ? "ol-pair-cell-here" : ""}
                title={String(cell)}
              >
                {typeof cell === "number" ? String(Number(cell.toPrecision(3))) : cell}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The beginning of a window of so many numbers around one. */
function corner(at: number | undefined, size: number): number {
  return Math.max(0, (at ?? 0) - Math.floor(size / 2));
}

/** The index of a place in a picture. */
function picked({ shape, rows, columns, at }: TensorPart, row: number, column: number): number[] {
  return shape.map((size, axis) =>
    axis === rows
      ? Math.min(size - 1, Math.floor(row * size))
      : axis === columns
        ? Math.min(size - 1, Math.floor(column * size))
        : (at[axis] ?? 0),
  );
}

async function askPart(
  pair: Pair,
  params: { value: number; of: string } & Record<string, unknown>,
): Promise<{ result: TensorPart; buffers: Uint8Array | null }> {
  const { result, buffer } = await pair.app(0)!.client.requestBytes("paired_tensor", params);
  return { result, buffers: new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength) };
}
