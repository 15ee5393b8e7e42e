/** Attention as rows × columns: the heads as small pictures to choose from, one at large with its axes. */

import { useEffect, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { fromWire, type TensorPart } from "../../kernel/protocol.ts";
import { asRequestError } from "../../kernel/request_error.ts";
import { decode, gradient } from "../../look/color_map.ts";
import type { Drawn } from "../../look/tensor_state.ts";
import { planesOf, ticks } from "../../look/tensor_ways.ts";
import { formatNumber } from "../inspector/statistics.tsx";
import { TensorCanvas } from "./canvas.tsx";

const SMALL = 48,
  LARGE = 256,
  /** Heads that are drawn to choose from; others by their number. */
  HEADS = 64;

interface Props {
  app: App;
  part: TensorPart;
  batch: number;
}

export function Attention({ app, part, batch }: Props) {
  const { axis, count } = planesOf(part.shape);
  const [head, setHead] = useState(0);
  const [heads, setHeads] = useState<(Drawn | null)[]>([]);
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const [error, setError] = useState("");
  const rank = part.shape.length;
  const ask = (place: number, pixels: number) =>
    app.numbers.draw({
      value: part.id,
      at: part.shape.map((_, i) => (i === axis ? place : i === 0 && rank > 3 ? batch : 0)),
      rows: rank - 2,
      columns: rank - 1,
      picture: "heat",
      pixels,
    });
  useEffect(() => {
    let live = true;
    const failed = (problem: unknown) => live && setError(asRequestError(problem).sentence);
    ask(head, LARGE).then((answer) => live && setDrawn(answer), failed);
    return () => {
      live = false;
    };
  }, [head]);
  useEffect(() => {
    let live = true;
    const read = async () => {
      const pictures: (Drawn | null)[] = [];
      for (let place = 0; place < Math.min(count, HEADS) && live && count > 1; place++) {
        pictures.push(await ask(place, SMALL));
        if (live && (place % 8 === 7 || place === Math.min(count, HEADS) - 1)) setHeads([...pictures]);
      }
    };
    read().catch((problem) => live && setError(asRequestError(problem).sentence));
    return () => {
      live = false;
    };
  }, []);
  return (
    <div class="ol-attention" data-testid="attention">
      {count > 1 && (
        <div class="ol-heads" role="listbox" aria-label="Heads" aria-orientation="vertical">
          {heads.map(
            (drawing, place) =>
              drawing && (
                <button
                  key={place}
                  type="button"
                  role="option"
                  class="ol-head-choice"
                  aria-selected={place === head}
                  aria-label={`head ${place}`}
                  data-testid={`attention-head-${place}`}
                  onClick={() => setHead(place)}
                >
                  <TensorCanvas drawn={drawing} label={`head ${place}`} />
                  <span>{place}</span>
                </button>
              ),
          )}
          {count > HEADS && (
            <label class="ol-tensor-axis">
              head{" "}
              <input
                type="number"
                class="ol-input"
                min={0}
                max={count - 1}
                value={head}
                onInput={(event) => {
                  const next = event.currentTarget.valueAsNumber;
                  if (next >= 0 && next < count) setHead(next);
                }}
              />
            </label>
          )}
        </div>
      )}
      {error && <p class="ol-empty">{error}</p>}
      {drawn && <Matrix drawn={drawn} head={count > 1 ? head : -1} part={part} />}
    </div>
  );
}

/** One head with its axes; the weight under the pointer is told below. */
function Matrix({ drawn, head, part }: { drawn: Drawn; head: number; part: TensorPart }) {
  const [place, setPlace] = useState<[number, number] | null>(null);
  const [keys, queries] = [part.shape.at(-1)!, part.shape.at(-2)!];
  const { low, high, width, height } = drawn.picture;
  const ends = { low: fromWire(low), high: fromWire(high) };
  const point = (event: MouseEvent) => {
    const lying = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const share = (at: number, from: number, length: number) => Math.min(0.9999, Math.max(0, (at - from) / length));
    setPlace([
      Math.floor(share(event.clientY, lying.top, lying.height) * queries),
      Math.floor(share(event.clientX, lying.left, lying.width) * keys),
    ]);
  };
  const code =
    place && drawn.bytes[Math.floor((place[0] / queries) * height) * width + Math.floor((place[1] / keys) * width)]!;
  return (
    <figure class="ol-matrix">
      <div class="ol-matrix-name ol-dim">query ↓ key →{head >= 0 && `, head ${head}`}</div>
      <div class="ol-matrix-columns" aria-hidden="true">
        {ticks(keys).map((tick) => (
          <span key={tick} style={{ left: `${((tick + 0.5) / keys) * 100}%` }}>
            {tick}
          </span>
        ))}
      </div>
      <div class="ol-matrix-rows" aria-hidden="true">
        {ticks(queries).map((tick) => (
          <span key={tick} style={{ top: `${((tick + 0.5) / queries) * 100}%` }}>
            {tick}
          </span>
        ))}
      </div>
      <div class="ol-matrix-canvas" onMouseMove={point} onMouseLeave={() => setPlace(null)}>
        <TensorCanvas drawn={drawn} label={`attention of ${queries} queries to ${keys} keys`} />
      </div>
      <figcaption class="ol-tensor-scale">
        <span>{formatNumber(low)}</span>
        <span class="ol-tensor-gradient" style={{ background: gradient(ends.low, ends.high) }} aria-hidden="true" />
        <span>{formatNumber(high)}</span>
        <span class="ol-mono" data-testid="attention-place">
          {place &&
            code !== null &&
            `query ${place[0]}, key ${place[1]}: ${formatNumber(decode(code, ends.low, ends.high))}`}
          {place && (keys > width || queries > height) && " (mean)"}
        </span>
      </figcaption>
    </figure>
  );
}
