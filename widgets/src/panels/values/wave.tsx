/** Rows of a tensor as lines over their last axis, each with its spectrogram. */

import { useEffect, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { fromWire, type TensorPart } from "../../kernel/protocol.ts";
import { decode, gradient } from "../../look/color_map.ts";
import type { Drawn } from "../../look/tensor_state.ts";
import { formatNumber } from "../inspector/statistics.tsx";
import { TensorCanvas } from "./canvas.tsx";

const ROWS = 8,
  HEIGHT = 120,
  /** Elements from which a spectrogram says something. */
  LEAST_HEARD = 256;

export function Wave({ app, part }: { app: App; part: TensorPart }) {
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const rank = part.shape.length;
  useEffect(() => {
    let live = true;
    const axes = rank > 1 ? { rows: rank - 2, columns: rank - 1 } : {};
    app.numbers.draw({ value: part.id, picture: "heat", ...axes }).then(
      (drawing) => live && setDrawn(drawing),
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
          {(part.shape.at(-1) ?? 0) >= LEAST_HEARD && <Spectrogram app={app} part={part} row={row} />}
        </figure>
      ))}
      <p class="ol-dim">
        {formatNumber(low)} … {formatNumber(high)} over {part.shape.at(-1)} elements
        {(part.shape.at(-1) ?? 0) > width && `, means of ${Math.ceil((part.shape.at(-1) ?? 0) / width)}`}
      </p>
    </div>
  );
}

/** The power of a row's frequencies, from 0 below to half the sampling rate on top. */
function Spectrogram({ app, part, row }: { app: App; part: TensorPart; row: number }) {
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const rank = part.shape.length;
  useEffect(() => {
    let live = true;
    const at = part.shape.map((_, axis) => (axis === rank - 2 ? row : 0));
    app.numbers.draw({ value: part.id, picture: "spectrogram", columns: rank - 1, at }).then(
      (answer) => live && setDrawn(answer),
      (error) => app.notices.fail(error),
    );
    return () => {
      live = false;
    };
  }, []);
  if (!drawn) return null;
  const { low, high } = drawn.picture;
  return (
    <>
      <div class="ol-spectrogram" data-testid="spectrogram">
        <TensorCanvas drawn={asRising(drawn)} label={`spectrogram of row ${row}`} />
        <span class="ol-spectrogram-top">½ rate</span>
        <span class="ol-spectrogram-foot">0</span>
      </div>
      <figcaption class="ol-tensor-scale">
        <span>{formatNumber(low)} dB</span>
        <span class="ol-tensor-gradient" style={{ background: gradient(0, 1) }} aria-hidden="true" />
        <span>{formatNumber(high)} dB</span>
      </figcaption>
    </>
  );
}

/** Decibels have no sign worth two colors: the same picture on a scale from 0. */
function asRising({ part, picture, bytes }: Drawn): Drawn {
  return { part, picture: { ...picture, low: 0, high: 1 }, bytes };
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
