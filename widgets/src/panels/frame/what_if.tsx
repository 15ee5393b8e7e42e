/** The needs of a run for other sizes of the dims: shapes, and memory as a curve over the nodes; nothing is run. */

import { useEffect, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import type { MemoryCurve } from "../../kernel/protocol.ts";
import { asRequestError } from "../../kernel/request_error.ts";
import { quantity } from "../../look/node_heat.ts";
import { nodeLabel, plural, valueLabel } from "../../model/names.ts";
import { shortDims } from "../../model/short_dims.ts";
import { useEvents } from "../../state.ts";
import { Elided } from "../parts/controls.tsx";

const SETTLES_MS = 250,
  HEIGHT = 100,
  ENDS_SHOWN = 24;

export function WhatIf({ app }: { app: App }) {
  useEvents(app.store, "reset", "commit");
  const [sizes, setSizes] = useState<Record<string, number>>({});
  const [curve, setCurve] = useState<MemoryCurve | null>(null);
  const [error, setError] = useState("");
  const { version } = app.store;
  useEffect(() => {
    let live = true;
    const timer = setTimeout(
      () =>
        app.client.request("memory", { sizes }).then(
          (answer) => {
            if (!live) return;
            setCurve(answer);
            setError("");
          },
          (problem) => live && setError(asRequestError(problem).sentence),
        ),
      curve ? SETTLES_MS : 0,
    );
    return () => {
      live = false;
      clearTimeout(timer);
    };
  }, [sizes, version]);
  if (!app.client.editable && !curve) return null;
  return (
    <section class="ol-what-if" aria-label="What if" data-testid="what-if">
      <div class="ol-what-if-sizes">
        <b>What if</b>
        {curve &&
          Object.entries(curve.dims).map(([name, size]) => (
            <label key={name} class="ol-tensor-axis">
              <span class="ol-mono">{shortDims(app.store).shortened(name)}</span> ={" "}
              <input
                type="number"
                class="ol-input"
                min={0}
                value={sizes[name] ?? size}
                data-testid={`what-if-${name}`}
                onInput={(event) => {
                  const next = event.currentTarget.valueAsNumber;
                  if (Number.isInteger(next) && next >= 0) setSizes({ ...sizes, [name]: next });
                }}
              />
            </label>
          ))}
        {curve && (
          <span data-testid="what-if-peak">
            {curve.open > 0 && "at least "}
            {inBytes(Number(curve.peak))} at once, weights {inBytes(Number(curve.weights))} besides
          </span>
        )}
        {!curve && !error && <span class="ol-dim">Reading…</span>}
        {error && <span class="ol-field-error">{error}</span>}
      </div>
      {curve?.refused.map((sentence) => (
        <p key={sentence} class="ol-field-error" data-testid="what-if-refused">
          {sentence}
        </p>
      ))}
      {curve && curve.alive.length > 0 && <Curve app={app} curve={curve} />}
      {curve && <Ends app={app} curve={curve} />}
    </section>
  );
}

/** Bytes alive over the nodes; a click goes to the node, and the peak is marked. */
function Curve({ app, curve }: { app: App; curve: MemoryCurve }) {
  const [place, setPlace] = useState(-1);
  const alive = curve.alive.map(Number),
    most = Math.max(1, ...alive),
    count = alive.length;
  const peak = curve.nodes.indexOf(curve.peak_node);
  const at = place >= 0 && place < count ? place : peak;
  const tops = alive.map((bytes, i) => `L${i} ${HEIGHT - (bytes / most) * HEIGHT}h1`).join("");
  const point = (event: MouseEvent) => {
    const lying = (event.currentTarget as Element).getBoundingClientRect();
    setPlace(Math.min(count - 1, Math.max(0, Math.floor(((event.clientX - lying.left) / lying.width) * count))));
  };
  const node = curve.nodes[at] ?? 0;
  return (
    <div class="ol-memory">
      <svg
        viewBox={`0 0 ${count} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`memory over ${plural(curve.steps, "node")}, most at ${nodeLabel(app.store, curve.peak_node)}`}
        data-testid="memory-curve"
        onMouseMove={point}
        onMouseLeave={() => setPlace(-1)}
        onClick={() => app.picked.reveal(node)}
      >
        <path d={`M0 ${HEIGHT}${tops}V${HEIGHT}Z`} />
        <rect class="ol-memory-peak" x={peak} y={0} width={1} height={HEIGHT} />
        {place >= 0 && <rect class="ol-memory-place" x={at} y={0} width={1} height={HEIGHT} />}
      </svg>
      <div class="ol-memory-words">
        <span>{place >= 0 ? inBytes(alive[at] ?? 0) : `most: ${inBytes(most)}`} at</span>
        <button type="button" class="ol-link ol-mono" data-testid="memory-node" onClick={() => app.picked.reveal(node)}>
          <Elided text={nodeLabel(app.store, node)} middle />
        </button>
      </div>
      <ul class="ol-memory-alive" aria-label="Alive at the peak">
        {curve.at_peak.map(({ values, nbytes }, row) => (
          <li key={row}>
            <span class="ol-mono">{inBytes(Number(nbytes))}</span>{" "}
            {values.length > 0 && (
              <button type="button" class="ol-link ol-mono" onClick={() => app.picked.revealValue(values[0]!)}>
                <Elided text={valueLabel(app.store, values[0]!)} middle />
              </button>
            )}
            {values.length > 1 && <span class="ol-dim">and {values.length - 1} that share it</span>}
          </li>
        ))}
        {curve.more > 0 && <li class="ol-dim">and {curve.more} more</li>}
      </ul>
    </div>
  );
}

/** Shapes of inputs and outputs with these sizes, where they are others than those of the model. */
function Ends({ app, curve }: { app: App; curve: MemoryCurve }) {
  const rows = curve.values
    .map((value, place) => ({
      value,
      now: app.store.values.get(value)?.label ?? "",
      future: curve.labels[place] ?? "",
    }))
    .filter(({ now, future }) => now !== future);
  if (!rows.length) return null;
  return (
    <table class="ol-table">
      <caption>Shapes with these sizes</caption>
      <tbody>
        {rows.slice(0, ENDS_SHOWN).map(({ value, now, future }) => (
          <tr key={value} data-testid="what-if-shape">
            <th scope="row" class="ol-left ol-mono ol-dim-name">
              <Elided text={valueLabel(app.store, value)} middle />
            </th>
            <td class="ol-left ol-dim">{shortDims(app.store).shortened(now) || "?"}</td>
            <td class="ol-left ol-mono">{future || "scalar"}</td>
          </tr>
        ))}
        {rows.length > ENDS_SHOWN && (
          <tr>
            <td class="ol-left ol-dim">and {rows.length - ENDS_SHOWN} more</td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

function inBytes(bytes: number): string {
  return quantity(bytes, "B");
}
