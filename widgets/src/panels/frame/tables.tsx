/**
 * The model as tables: nodes, values, initializers, functions and operators, sortable, with only the rows in sight
 * made.
 */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import type { Subject } from "../../find/selection.ts";
import { quantity } from "../../look/node_heat.ts";
import { count, plural } from "../../model/names.ts";
import {
  type Cell,
  type Extra,
  NO_EXTRA,
  type Row,
  rowsOf,
  sorted,
  TABLES,
  type TableName,
} from "../../model/tables.ts";
import { useCell, useEvents } from "../../state.ts";
import { Elided } from "../parts/controls.tsx";
import { useVisibleHeight } from "../parts/visible_height.ts";

/** Height of a row in pixels. */
const ROW_HEIGHT = 22,
  MARGIN_ROWS = 8;

export function ModelTables({ app }: { app: App }) {
  const [name, setName] = useState<TableName>("nodes");
  return (
    <div class="ol-tables">
      <div class="ol-tabs" role="tablist" aria-label="Tables">
        {(Object.keys(TABLES) as TableName[]).map((tableName) => (
          <button
            key={tableName}
            type="button"
            role="tab"
            class="ol-tab"
            aria-selected={tableName === name}
            data-testid={`table-tab-${tableName}`}
            onClick={() => setName(tableName)}
          >
            {tableName}
          </button>
        ))}
      </div>
      <Table key={name} app={app} name={name} />
    </div>
  );
}

function Table({ app, name }: { app: App; name: TableName }) {
  useEvents(app.store, "reset", "commit", "diagnostics");
  const subject = useCell(app.picked.subject);
  const [order, setOrder] = useState({ column: -1, down: false });
  const [top, setTop] = useState(0);
  const scroll = useRef<HTMLDivElement>(null);
  const height = useVisibleHeight(scroll, 200);
  const version = app.store.version;
  const extra = useExtra(app);
  const rows = useMemo(() => rowsOf(app.store, name, extra), [name, version, extra, app.store.diagnostics]);
  const shown = useMemo(() => sorted(rows, order.column, order.down), [rows, order]);
  useEffect(() => {
    // What is selected elsewhere comes into sight here.
    const element = scroll.current,
      at = shown.findIndex((row) => isSelected(subject, row));
    if (!element || at < 0) return;
    const y = at * ROW_HEIGHT;
    if (y < element.scrollTop || y + 2 * ROW_HEIGHT > element.scrollTop + element.clientHeight)
      element.scrollTop = y - element.clientHeight / 3;
  }, [subject]);
  const first = Math.max(0, Math.floor(top / ROW_HEIGHT) - MARGIN_ROWS);
  const last = Math.min(shown.length, Math.ceil((top + height) / ROW_HEIGHT) + MARGIN_ROWS);
  const { columns } = TABLES[name];
  return (
    <div
      class="ol-table-scroll"
      tabIndex={0}
      aria-label={`${name}: ${plural(rows.length, "row")}`}
      ref={scroll}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <table class="ol-table ol-model-table" aria-rowcount={rows.length + 1} data-testid={`table-${name}`}>
        <thead>
          <tr>
            {columns.map((title, i) => (
              <th
                key={title}
                scope="col"
                class={TABLES[name].numbers.includes(i) ? "" : "ol-left"}
                aria-sort={order.column !== i ? "none" : order.down ? "descending" : "ascending"}
              >
                <button
                  type="button"
                  class="ol-sort"
                  title={title === "FLOPs" ? "By shapes; dims of unknown size count 1" : undefined}
                  onClick={() => setOrder({ column: i, down: order.column === i && !order.down })}
                >
                  {title}
                  {order.column === i && (order.down ? " ↓" : " ↑")}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {first > 0 && (
            <tr aria-hidden="true">
              <td style={{ height: `${first * ROW_HEIGHT}px`, padding: 0 }} colSpan={columns.length} />
            </tr>
          )}
          {shown.slice(first, last).map((row, i) => (
            <TableRow
              key={row.key}
              app={app}
              row={row}
              name={name}
              index={first + i}
              selected={isSelected(subject, row)}
            />
          ))}
          {last < shown.length && (
            <tr aria-hidden="true">
              <td style={{ height: `${(shown.length - last) * ROW_HEIGHT}px`, padding: 0 }} colSpan={columns.length} />
            </tr>
          )}
        </tbody>
      </table>
      {rows.length === 0 && <p class="ol-empty">none</p>}
    </div>
  );
}

function isSelected(subject: Subject, { kind, id }: Row): boolean {
  if (subject.kind === "nodes") return kind === "node" && subject.nodes.includes(id);
  if (subject.kind === "group") return kind === "group" && subject.group === id;
  return subject.kind === "value" && kind === "value" && subject.value === id;
}

interface RowProps {
  app: App;
  row: Row;
  name: TableName;
  index: number;
  selected: boolean;
}

function TableRow({ app, row, name, index, selected }: RowProps) {
  const show = () => {
    if (row.kind === "node") app.picked.reveal(row.id);
    else if (row.kind === "value") app.picked.revealValue(row.id);
    else if (row.kind === "scope") app.picture?.openScope(row.id);
    else if (row.kind === "group") app.picked.revealGroup(row.id);
    else if (row.kind === "operator") app.finder.setQuery(`op:${row.cells[0]}`);
  };
  return (
    <tr class={selected ? "ol-selected" : ""} style={{ height: `${ROW_HEIGHT}px` }} aria-rowindex={index + 2}>
      {row.cells.map((cell, i) => {
        const number = TABLES[name].numbers.includes(i);
        const text = cellText(cell, TABLES[name].units?.[i]);
        if (i === 0 && row.kind !== "none") {
          return (
            <th key={i} scope="row" class="ol-left">
              <button type="button" class="ol-link ol-mono" onClick={show} data-testid={`table-row-${text}`}>
                <Elided text={text} middle />
              </button>
            </th>
          );
        }
        return (
          <td key={i} class={number ? "" : "ol-left"} title={text}>
            {text}
          </td>
        );
      })}
    </tr>
  );
}

function cellText(cell: Cell, unit: string | undefined): string {
  if (typeof cell !== "number") return cell;
  return unit ? (cell ? quantity(cell, unit) : "") : count(cell);
}

/** Milliseconds without an edit before the kernel counts again, as edits come first. */
const QUIET_MS = 500;

/** Operations and notes of the model as it is now; nothing where they are unknown. */
function useExtra(app: App): Extra {
  const [extra, setExtra] = useState(NO_EXTRA);
  const { version } = app.store;
  useEffect(() => {
    let live = true;
    const ask = () =>
      Promise.all([app.client.request("costs", {}), app.client.request("about", {})]).then(
        ([{ nodes, flops }, about]) => {
          if (live) setExtra({ flops: new Map(nodes.map((node, i) => [node, Number(flops[i])])), about });
        },
        // a page without a kernel that was written by an older version: tables show what the store holds
        () => undefined,
      );
    const timer = setTimeout(() => void ask(), extra === NO_EXTRA ? 0 : QUIET_MS);
    return () => {
      live = false;
      clearTimeout(timer);
    };
  }, [version]);
  return extra;
}
