/** Planes of a tensor side by side, each or all on one scale; an image; a single heat map. */

import { useEffect, useMemo, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { fromWire, type TensorPart } from "../../kernel/protocol.ts";
import { asRequestError } from "../../kernel/request_error.ts";
import { gradient } from "../../look/color_map.ts";
import type { Drawn } from "../../look/tensor_state.ts";
import { planesOf, rescaled } from "../../look/tensor_ways.ts";
import { plural } from "../../model/names.ts";
import { formatNumber } from "../inspector/statistics.tsx";
import { TensorCanvas } from "./canvas.tsx";

/** Planes that are asked for at a time. */
const PAGE = 64,
  SMALL = 96,
  LARGE = 256;

interface Props {
  app: App;
  part: TensorPart;
  way: "channels" | "image" | "plane";
  batch: number;
}

export function Planes({ app, part, way, batch }: Props) {
  const { axis, count } = way === "channels" ? planesOf(part.shape) : { axis: -1, count: 1 };
  const [shown, setShown] = useState(PAGE);
  const [drawn, setDrawn] = useState<(Drawn | null)[]>([]);
  const [error, setError] = useState("");
  const [common, setCommon] = useState(false);
  const [gray, setGray] = useState(false);
  const planeCount = Math.min(count, shown);
  useEffect(() => {
    let live = true;
    const drawings: (Drawn | null)[] = [];
    const ask = async () => {
      for (let plane = 0; plane < planeCount && live; plane++) {
        const at = part.shape.map((_, i) => (i === axis ? plane : i === 0 && part.shape.length > 3 ? batch : 0));
        drawings[plane] = await app.numbers.draw({
          value: part.id,
          at,
          rows: part.shape.length - 2,
          columns: part.shape.length - 1,
          picture: way === "image" ? "image" : "heat",
          pixels: count > 16 ? SMALL : LARGE,
        });
        if (live && (plane % 8 === 7 || plane === planeCount - 1)) setDrawn([...drawings]);
      }
    };
    ask().catch((problem) => live && setError(asRequestError(problem).sentence));
    return () => {
      live = false;
    };
  }, [planeCount]);
  const ends = useMemo(() => {
    const all = drawn.flatMap((drawing) =>
      drawing ? [fromWire(drawing.picture.low), fromWire(drawing.picture.high)] : [],
    );
    return { low: Math.min(...all), high: Math.max(...all) };
  }, [drawn]);
  return (
    <>
      {way !== "image" && (
        <div class="ol-large-bar">
          {count > 1 && (
            <label class="ol-form-check">
              <input
                type="checkbox"
                checked={common}
                data-testid="large-common"
                onChange={(event) => setCommon(event.currentTarget.checked)}
              />
              one scale for all
            </label>
          )}
          <label class="ol-form-check">
            <input type="checkbox" checked={gray} onChange={(event) => setGray(event.currentTarget.checked)} />
            gray
          </label>
          {drawn.length > 0 && (common || count === 1) && (
            <span class="ol-tensor-scale">
              {formatNumber(ends.low)}{" "}
              <span
                class="ol-tensor-gradient"
                style={{ background: gray ? "linear-gradient(to right, #000, #fff)" : gradient(ends.low, ends.high) }}
                aria-hidden="true"
              />{" "}
              {formatNumber(ends.high)}
            </span>
          )}
        </div>
      )}
      {error && <p class="ol-empty">{error}</p>}
      <div class={`ol-planes ${count === 1 ? "ol-planes-one" : ""}`} tabIndex={0} role="region" aria-label="Planes">
        {drawn.map(
          (drawing, plane) =>
            drawing && (
              <figure key={plane} data-testid="large-figure">
                <TensorCanvas
                  drawn={common && way === "channels" ? onScale(drawing, ends) : drawing}
                  gray={gray}
                  label={count > 1 ? `plane ${plane}` : "heat map"}
                />
                {count > 1 && (
                  <figcaption>
                    <span>{plane}</span>
                    <span class="ol-dim">
                      {formatNumber(drawing.picture.low)} … {formatNumber(drawing.picture.high)}
                    </span>
                  </figcaption>
                )}
              </figure>
            ),
        )}
        {count > planeCount && (
          <button type="button" class="ol-link" data-testid="large-more" onClick={() => setShown(shown + PAGE)}>
            {plural(count - planeCount, "more plane")}
          </button>
        )}
      </div>
    </>
  );
}

/** The picture of a plane on a scale that others share. */
function onScale({ part, picture, bytes }: Drawn, ends: { low: number; high: number }): Drawn {
  const range = { low: fromWire(picture.low), high: fromWire(picture.high) };
  return { part, picture: { ...picture, ...ends }, bytes: rescaled(bytes, range, ends) };
}
