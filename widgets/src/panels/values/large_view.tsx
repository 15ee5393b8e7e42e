/** One value at large, over picture and panels: its planes side by side, an image, a wave form, the largest few. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { imagePlace } from "../../kernel/npy.ts";
import { GRAPH_OUTPUT, type TensorPart } from "../../kernel/protocol.ts";
import { asRequestError } from "../../kernel/request_error.ts";
import { type Around, WAY_WORDS, type Way, waysToLook } from "../../look/tensor_ways.ts";
import { mainScope, shortOp, valueLabel } from "../../model/names.ts";
import { useCell, useEvents } from "../../state.ts";
import { focusPicture } from "../edit/form.tsx";
import { Elided, ToolButton } from "../parts/controls.tsx";
import { Attention } from "./attention.tsx";
import { Boxes } from "./boxes.tsx";
import { Largest } from "./largest.tsx";
import { Planes } from "./planes.tsx";
import { Wave } from "./wave.tsx";

export function LargeView({ app }: { app: App }) {
  const value = useCell(app.numbers.large);
  useEvents(app.store, "commit", "reset");
  const run = useCell(app.runs.results)?.run ?? 0;
  if (!value || !app.store.values.has(value)) return null;
  return <OpenView key={`${value}/${app.store.version}/${run}`} app={app} value={value} />;
}

function OpenView({ app, value }: { app: App; value: number }) {
  const [part, setPart] = useState<TensorPart | null>(null);
  const [error, setError] = useState("");
  const [chosen, setWay] = useState<Way | null>(null);
  const [batch, setBatch] = useState(0);
  const panel = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => panel.current?.focus({ preventScroll: true }), []);
  useEffect(() => {
    app.client.request("tensor", { value }).then(setPart, (problem) => setError(asRequestError(problem).sentence));
  }, []);
  const close = () => {
    const { current } = panel;
    app.numbers.large.value = 0;
    focusPicture(current);
  };
  const ways = part ? waysToLook(part.shape, part.dtype, part.image, around(app, value)) : [];
  const way = chosen ?? ways[0];
  return (
    <div
      class="ol-large"
      role="dialog"
      aria-label={`Numbers of ${valueLabel(app.store, value)}`}
      tabIndex={-1}
      ref={panel}
      data-testid="large-view"
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        close();
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      <div class="ol-large-head">
        <b class="ol-mono ol-large-name">
          <Elided text={valueLabel(app.store, value)} middle />
        </b>
        {part && (
          <span class={part.source === "stale" ? "ol-stale" : "ol-dim"}>
            {part.dtype} {part.shape.join("×") || "scalar"} {app.runs.ranWith && `· ${app.runs.ranWith}`}
            {part.source === "stale" && " · of before the last edits"}
          </span>
        )}
        <span class="ol-stretch" />
        {part && (part.shape.length > 3 || way === "boxes") && part.shape.length > 2 && part.shape[0]! > 1 && (
          <label class="ol-tensor-axis">
            item{" "}
            <input
              type="number"
              class="ol-input"
              min={0}
              max={part.shape[0]! - 1}
              value={batch}
              data-testid="large-item"
              onInput={(event) => {
                const next = event.currentTarget.valueAsNumber;
                if (next >= 0 && next < part.shape[0]!) setBatch(next);
              }}
            />
          </label>
        )}
        <div class="ol-tabs ol-large-ways" role="tablist" aria-label="Look at it as">
          {ways.map((choice) => (
            <button
              key={choice}
              type="button"
              role="tab"
              class="ol-tab"
              aria-selected={choice === way}
              data-testid={`large-${choice}`}
              onClick={() => setWay(choice)}
            >
              {WAY_WORDS[choice]}
            </button>
          ))}
        </div>
        <button
          type="button"
          class="ol-link"
          onClick={() => {
            app.numbers.look(value);
            close();
          }}
        >
          as numbers
        </button>
        <ToolButton icon="close" title="Close (Esc)" testid="large-close" onClick={close} />
      </div>
      {error && <p class="ol-empty">{error}</p>}
      {!part && !error && <p class="ol-empty">Reading…</p>}
      {part && !way && <p class="ol-empty">There is nothing to draw: {part.dtype} of no or one element.</p>}
      {part && (way === "channels" || way === "image" || way === "plane") && (
        <Planes key={`${way}/${batch}`} app={app} part={part} way={way} batch={batch} />
      )}
      {part && way === "attention" && <Attention key={batch} app={app} part={part} batch={batch} />}
      {part && way === "boxes" && <Boxes key={batch} app={app} part={part} batch={batch} />}
      {part && way === "wave" && <Wave app={app} part={part} />}
      {part && way === "top" && <Largest app={app} part={part} />}
    </div>
  );
}

/** The facts of the model around a value that tell how to look at it. */
function around(app: App, value: number): Around {
  const { store } = app;
  const producer = store.producer(value);
  const inputs = store.scopes.get(mainScope(store))?.inputs ?? [];
  return {
    isSoftmax: producer ? shortOp(store.nodes.get(producer.node)?.op ?? "") === "Softmax" : false,
    isOutput: ((store.values.get(value)?.flags ?? 0) & GRAPH_OUTPUT) !== 0,
    takesImages: inputs.some((input) => {
      const { rank, channels } = imagePlace(store.values.get(input)?.label ?? "") ?? { rank: 0, channels: 0 };
      return rank > 2 && channels === 3;
    }),
  };
}
