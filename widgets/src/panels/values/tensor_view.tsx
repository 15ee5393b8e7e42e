/** A tensor in the drawer: two of its axes as a grid of numbers and as a heat map or image, indices for the others. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { fromWire, type TensorPart } from "../../kernel/protocol.ts";
import { asRequestError } from "../../kernel/request_error.ts";
import { gradient } from "../../look/color_map.ts";
import type { Drawn } from "../../look/tensor_state.ts";
import { valueLabel } from "../../model/names.ts";
import { useCell, useEvents } from "../../state.ts";
import { formatNumber } from "../inspector/statistics.tsx";
import { Elided } from "../parts/controls.tsx";
import { TensorCanvas } from "./canvas.tsx";

/** Pixels of a cell, and cells asked for beyond those in sight. */
const ROW = 20,
  COLUMN = 76,
  MARGIN = 6;
/** Browsers place nothing beyond some 16 million pixels. */
const MOST = 15_000_000;

type Mode = "heat" | "gray" | "image";

/** The part that is shown: axes and indices; undefined: what the kernel takes by default. */
interface Shown {
  rows?: number;
  columns?: number;
  at?: number[];
}

export function TensorDrawer({ app }: { app: App }) {
  const value = useCell(app.numbers.looking);
  useEvents(app.store, "commit", "reset");
  useCell(app.runs.results);
  if (!app.store.values.has(value)) return <p class="ol-empty">Choose a value and press “Look into it”.</p>;
  return (
    <TensorView key={`${value}/${app.store.version}/${app.runs.results.value?.run ?? 0}`} app={app} value={value} />
  );
}

function TensorView({ app, value }: { app: App; value: number }) {
  const [shown, setShown] = useState<Shown>({});
  const [mode, setMode] = useState<Mode>("heat");
  const [corner, setCorner] = useState<{ top: number; left: number } | null>(null);
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const [error, setError] = useState("");
  const [part, setPart] = useState<TensorPart | null>(null);
  useEffect(() => {
    let live = true;
    const params = { value, ...shown };
    const failed = (problem: unknown) => {
      if (live) setError(asRequestError(problem).sentence);
    };
    app.client.request("tensor", params).then((tensor) => {
      if (live) setPart(tensor);
    }, failed);
    app.numbers.draw({ ...params, picture: mode === "image" ? "image" : "heat" }).then((drawing) => {
      if (live) setDrawn(drawing);
    }, failed);
    return () => {
      live = false;
    };
  }, [shown, mode]);
  if (!part)
    return (
      <p class="ol-empty" data-testid="tensor-error">
        {error || "Reading…"}
      </p>
    );
  const pick = (row: number, column: number) =>
    setCorner({
      top: Math.floor(row * (part.shape[part.rows] ?? 1)),
      left: Math.floor(column * (part.shape[part.columns] ?? 1)),
    });
  const name = valueLabel(app.store, value);
  return (
    <div class="ol-tensor" data-testid="tensor-view">
      <div class="ol-tensor-bar">
        <button type="button" class="ol-link ol-mono ol-tensor-name" onClick={() => app.picked.revealValue(value)}>
          <Elided text={name} middle />
        </button>
        <span class={part.source === "stale" ? "ol-stale" : "ol-dim"}>
          {part.dtype} {part.shape.join("×") || "scalar"} · {SOURCES[part.source]}
        </span>
        <Axes part={part} change={setShown} />
        <label class="ol-tensor-mode">
          as{" "}
          <select
            class="ol-input ol-select"
            value={mode}
            data-testid="tensor-mode"
            aria-label="Draw as"
            onChange={(event) => setMode(event.currentTarget.value as Mode)}
          >
            <option value="heat">heat map</option>
            <option value="gray">gray image</option>
            {part.image && <option value="image">color image</option>}
          </select>
        </label>
      </div>
      <div class="ol-tensor-body">
        {drawn && (
          <figure class="ol-tensor-figure">
            <TensorCanvas drawn={drawn} gray={mode === "gray"} label={`${mode} of ${name}`} onPick={pick} />
            <Scale drawn={drawn} mode={mode} />
          </figure>
        )}
        {error && <p class="ol-empty">{error}</p>}
        <Grid app={app} part={part} shown={shown} corner={corner} />
      </div>
    </div>
  );
}

const SOURCES = {
  stored: "stored in the model",
  pinned: "pinned",
  run: "of the last run",
  stale: "of before the last edits: run again for those of now",
};

function Scale({ drawn, mode }: { drawn: Drawn; mode: Mode }) {
  const { low, high } = drawn.picture;
  const bar = mode === "heat" ? gradient(fromWire(low), fromWire(high)) : "linear-gradient(to right, #000, #fff)";
  return (
    <figcaption class="ol-tensor-scale">
      <span>{formatNumber(low)}</span>
      {mode !== "image" && <span class="ol-tensor-gradient" style={{ background: bar }} aria-hidden="true" />}
      <span>{formatNumber(high)}</span>
    </figcaption>
  );
}

/** The axes that are rows and columns, and the indices on the others. */
function Axes({ part, change }: { part: TensorPart; change: (shown: Shown) => void }) {
  const { shape, rows, columns, at } = part;
  if (shape.length < 2) return null;
  const set = (more: Shown) => change({ rows, columns, at, ...more });
  const choice = (
    label: string,
    current: number,
    other: number,
    key: "rows" | "columns",
    otherKey: "rows" | "columns",
  ) => (
    <label class="ol-tensor-axis">
      {label}{" "}
      <select
        class="ol-input ol-select"
        value={current}
        aria-label={`Axis of the ${label}`}
        data-testid={`tensor-${key}`}
        onChange={(event) => {
          const axis = Number(event.currentTarget.value);
          set(axis === other ? { [key]: axis, [otherKey]: current } : { [key]: axis });
        }}
      >
        {shape.map((dim, axis) => (
          <option key={axis} value={axis}>
            {axis}: {dim}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <>
      {choice("rows", rows, columns, "rows", "columns")}
      {choice("columns", columns, rows, "columns", "rows")}
      {shape.map(
        (dim, axis) =>
          axis !== rows &&
          axis !== columns && (
            <label class="ol-tensor-axis" key={axis}>
              [{axis}]{" "}
              <input
                type="number"
                class="ol-input"
                min={0}
                max={dim - 1}
                value={at[axis]}
                aria-label={`Index on axis ${axis}, below ${dim}`}
                data-testid={`tensor-at-${axis}`}
                onInput={(event) => {
                  const index = event.currentTarget.valueAsNumber;
                  if (index >= 0 && index < dim) set({ at: at.map((place, i) => (i === axis ? index : place)) });
                }}
              />
            </label>
          ),
      )}
    </>
  );
}

/** Cells in sight, asked for as they come into it. */
function Grid({
  app,
  part,
  shown,
  corner,
}: {
  app: App;
  part: TensorPart;
  shown: Shown;
  corner: { top: number; left: number } | null;
}) {
  const height = part.rows >= 0 ? part.shape[part.rows]! : 1,
    width = part.columns >= 0 ? part.shape[part.columns]! : 1;
  const scroll = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ top: 0, left: 0 });
  const [block, setBlock] = useState<{ top: number; left: number; cells: TensorPart["cells"] }>({
    top: 0,
    left: 0,
    cells: [],
  });
  const look = () => {
    const element = scroll.current;
    if (element) setPlace({ top: Math.floor(element.scrollTop / ROW), left: Math.floor(element.scrollLeft / COLUMN) });
  };
  useEffect(() => {
    if (corner) scroll.current?.scrollTo({ top: corner.top * ROW, left: corner.left * COLUMN });
  }, [corner]);
  useEffect(() => {
    const element = scroll.current;
    if (!element || !height || !width) return undefined;
    const top = Math.max(0, place.top - MARGIN),
      left = Math.max(0, place.left - 2);
    const rows = Math.ceil(element.clientHeight / ROW) + 2 * MARGIN,
      columns = Math.ceil(element.clientWidth / COLUMN) + 4;
    let live = true;
    const timer = setTimeout(
      () => {
        app.client.request("tensor", { value: part.id, ...shown, top, left, height: rows, width: columns }).then(
          ({ cells }) => {
            if (live) setBlock({ top, left, cells });
          },
          (error) => {
            if (live) app.notices.fail(error);
          },
        );
      },
      block.cells.length ? 30 : 0,
    );
    return () => {
      live = false;
      clearTimeout(timer);
    };
  }, [place.top, place.left, part]);
  const titles = block.cells[0]?.map((_, k) => block.left + k) ?? [];
  return (
    <div
      class="ol-grid"
      ref={scroll}
      tabIndex={0}
      role="region"
      aria-label="Numbers"
      onScroll={look}
      data-testid="tensor-grid"
    >
      <div
        class="ol-grid-space"
        style={{ height: `${Math.min(MOST, (height + 1) * ROW)}px`, width: `${Math.min(MOST, width * COLUMN + 52)}px` }}
      >
        <table class="ol-grid-table" style={{ top: `${block.top * ROW}px`, left: `${block.left * COLUMN}px` }}>
          <thead>
            <tr>
              <th class="ol-grid-corner" />
              {titles.map((title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {block.cells.map((row, i) => (
              <tr key={block.top + i}>
                <th scope="row">{block.top + i}</th>
                {row.map((cell, k) => (
                  <Cell key={block.left + k} cell={cell} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function Cell({ cell }: { cell: TensorPart["cells"][number][number] }) {
  const text =
    typeof cell === "number"
      ? formatNumber(cell)
      : cell === "nan"
        ? "NaN"
        : cell === "inf"
          ? "∞"
          : cell === "-inf"
            ? "−∞"
            : cell;
  const bad = cell === "nan" || cell === "inf" || cell === "-inf";
  return (
    <td class={bad ? "ol-bad" : ""} title={String(cell)}>
      {text}
    </td>
  );
}
