/** Boxes of a detector drawn on the image that was fed. */

import { useEffect, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { type FoundBoxes, fromWire, type TensorPart } from "../../kernel/protocol.ts";
import { asRequestError } from "../../kernel/request_error.ts";
import type { Drawn } from "../../look/tensor_state.ts";
import { withoutOverlaps } from "../../look/tensor_ways.ts";
import { plural } from "../../model/names.ts";
import { formatNumber } from "../inspector/statistics.tsx";
import { TensorCanvas } from "./canvas.tsx";

/** Colors that differ on photographs and under color blindness (Okabe and Ito). */
const COLORS = ["#56b4e9", "#e69f00", "#f0e442", "#009e73", "#d55e00", "#cc79a7", "#0072b2", "#ffffff"];
const FIRST_SCORE = 0.25,
  UNITS = 1000;

export function Boxes({ app, part, batch }: { app: App; part: TensorPart; batch: number }) {
  const [layout, setLayout] = useState<string | null>(null);
  const [answer, setAnswer] = useState<FoundBoxes | null>(null);
  const [image, setImage] = useState<Drawn | null>(null);
  const [least, setLeast] = useState(FIRST_SCORE);
  const [joined, setJoined] = useState(true);
  const [error, setError] = useState("");
  useEffect(() => {
    let live = true;
    const read = async () => {
      const boxes = await app.client.request("boxes", { value: part.id, item: batch, layout });
      const drawn = await app.numbers.draw({ value: boxes.image, picture: "image", at: [batch, 0, 0, 0] });
      if (!live) return;
      setAnswer(boxes);
      setImage(drawn);
    };
    read().catch((problem) => live && setError(asRequestError(problem).sentence));
    return () => {
      live = false;
    };
  }, [layout]);
  if (!answer || !image) return <p class="ol-empty">{error || "Reading…"}</p>;
  const certain = answer.boxes.filter(({ score }) => fromWire(score) >= least);
  const boxes = joined
    ? withoutOverlaps(certain.map((box) => ({ ...box, corners: box.corners.map(fromWire) })))
    : certain.map((box) => ({ ...box, corners: box.corners.map(fromWire) }));
  return (
    <>
      <div class="ol-large-bar">
        <label class="ol-tensor-axis">
          read as{" "}
          <select
            class="ol-input ol-select"
            value={answer.layout}
            data-testid="boxes-layout"
            onChange={(event) => setLayout(event.currentTarget.value)}
          >
            {answer.layouts.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label class="ol-tensor-axis">
          score from{" "}
          <input
            type="range"
            min={0}
            max={1}
            step={0.01}
            value={least}
            data-testid="boxes-least"
            onInput={(event) => setLeast(event.currentTarget.valueAsNumber)}
          />{" "}
          <span class="ol-mono">{least.toFixed(2)}</span>
        </label>
        <label class="ol-form-check">
          <input type="checkbox" checked={joined} onChange={(event) => setJoined(event.currentTarget.checked)} />
          only the best of those that overlap
        </label>
        <span class="ol-dim" data-testid="boxes-count">
          {plural(boxes.length, "box", "boxes")} of {answer.count}
        </span>
      </div>
      <div class="ol-planes ol-planes-one" tabIndex={0} role="region" aria-label="Boxes">
        <figure class="ol-boxes">
          <TensorCanvas drawn={image} label="the image that was fed" />
          <svg viewBox={`0 0 ${UNITS} ${UNITS}`} preserveAspectRatio="none" aria-hidden="true">
            {boxes.map(({ corners: [x0 = 0, y0 = 0, x1 = 0, y1 = 0], label }, place) => (
              <rect
                key={place}
                x={x0 * UNITS}
                y={y0 * UNITS}
                width={Math.max(0, x1 - x0) * UNITS}
                height={Math.max(0, y1 - y0) * UNITS}
                stroke={colorOf(label)}
                data-testid="found-box"
              />
            ))}
          </svg>
          {boxes.map(({ corners, label, score }, place) => (
            <span
              key={place}
              class="ol-box-label"
              style={{
                left: `${clamped(corners[0]) * 100}%`,
                top: `${clamped(corners[1]) * 100}%`,
                background: colorOf(label),
              }}
            >
              {label >= 0 && `${label} `}
              {formatNumber(score)}
            </span>
          ))}
        </figure>
      </div>
    </>
  );
}

function colorOf(label: number): string {
  return COLORS[Math.max(0, label) % COLORS.length]!;
}

function clamped(share = 0): number {
  return Number.isFinite(share) ? Math.min(1, Math.max(0, share)) : 0;
}
