/** The elements of a small tensor as a grid of fields: last axis across, the others down, a page at a time. */

import { useState } from "preact/hooks";
import type { Entry, Field } from "../../edit/fields.ts";

const ROWS = 16,
  COLUMNS = 8;

interface Props {
  id: string;
  field: Extract<Field, { kind: "grid" }>;
  changed: ReadonlyMap<number, string>;
  change: (entry: Entry) => void;
}

export function ElementGrid({ id, field, changed, change }: Props) {
  const { shape, numbers } = field;
  const width = Math.max(1, shape.length ? shape[shape.length - 1]! : 1),
    height = Math.ceil(numbers.length / width);
  const [top, setTop] = useState(0);
  const [left, setLeft] = useState(0);
  const rows = range(top, Math.min(height, top + ROWS)),
    columns = range(left, Math.min(width, left + COLUMNS));
  const set = (place: number, text: string) => {
    const now = new Map(changed);
    if (text === String(numbers[place])) now.delete(place);
    else now.set(place, text);
    change(now);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowUp" ? -columns.length : event.key === "ArrowDown" ? columns.length : 0;
    if (!step || !(event.target instanceof HTMLInputElement)) return;
    const cells = [...(event.target.closest("table")?.querySelectorAll("input") ?? [])];
    cells[cells.indexOf(event.target) + step]?.focus();
    event.preventDefault();
  };
  if (numbers.length === 0) return <p class="ol-empty">The tensor has no elements.</p>;
  return (
    <div class="ol-elements" id={id}>
      <table onKeyDown={onKeyDown} aria-label="Elements">
        <thead>
          <tr>
            <td />
            {columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row}>
              <th scope="row">{rowLabel(row, shape)}</th>
              {columns.map((column) => {
                const place = row * width + column;
                return (
                  place < numbers.length && (
                    <td key={column}>
                      <input
                        type="text"
                        class={`ol-input ol-mono ${changed.has(place) ? "ol-changed" : ""}`}
                        spellcheck={false}
                        autocomplete="off"
                        value={changed.get(place) ?? String(numbers[place])}
                        aria-label={`Element ${rowLabel(row, shape)} ${column}`}
                        data-testid={`element-${place}`}
                        onInput={(event) => set(place, event.currentTarget.value)}
                      />
                    </td>
                  )
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      <div class="ol-elements-pages">
        {height > ROWS && <Pages axis="rows" at={top} step={ROWS} of={height} go={setTop} />}
        {width > COLUMNS && <Pages axis="columns" at={left} step={COLUMNS} of={width} go={setLeft} />}
      </div>
    </div>
  );
}

function Pages({
  axis,
  at,
  step,
  of,
  go,
}: {
  axis: string;
  at: number;
  step: number;
  of: number;
  go: (at: number) => void;
}) {
  return (
    <span>
      <button type="button" class="ol-link" disabled={at === 0} onClick={() => go(Math.max(0, at - step))}>
        before
      </button>
      {` ${axis} ${at} to ${Math.min(of, at + step) - 1} of ${of} `}
      <button type="button" class="ol-link" disabled={at + step >= of} onClick={() => go(at + step)}>
        behind
      </button>
    </span>
  );
}

/** The indices of a row: all axes but the last. */
function rowLabel(row: number, shape: readonly number[]): string {
  const indices: number[] = [];
  for (let axis = shape.length - 2; axis >= 0; axis--) {
    indices.unshift(row % shape[axis]!);
    row = Math.floor(row / shape[axis]!);
  }
  return indices.join(", ");
}

function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
}
