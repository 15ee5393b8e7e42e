/** The model as a tree beside the picture: what shows is marked, a click goes there, bars say what weighs most. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { groupsAround, mainScope } from "../../model/names.ts";
import { type OutlineRow, outlineData, outlineRows } from "../../model/outline_rows.ts";
import { whereIs } from "../../model/where.ts";
import { useCell, useEvents } from "../../state.ts";
import { Elided, ToolButton } from "../parts/controls.tsx";
import { Icon } from "../parts/icons.tsx";
import { useVisibleHeight } from "../parts/visible_height.ts";

/** Height of a row in pixels. */
const ROW = 22,
  MARGIN = 8;

export function OutlinePanel({ app }: { app: App }) {
  return useCell(app.outlineOpen) ? <OpenOutline app={app} /> : null;
}

function OpenOutline({ app }: { app: App }) {
  useEvents(app.store, "reset", "commit", "diagnostics");
  const shownScope = useCell(app.scope);
  const subject = useCell(app.picked.subject);
  const seen = useCell(app.seen);
  const heat = useCell(app.runs.overlay);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const [filter, setFilter] = useState("");
  const [top, setTop] = useState(0);
  const [current, setCurrent] = useState(0);
  const scroll = useRef<HTMLDivElement>(null);
  const height = useVisibleHeight(scroll, 300);
  const { store } = app;
  const scope = shownScope || mainScope(store);
  const numbers = heat && heat.kinds.length === 0 ? heat.numbers : null;
  const data = useMemo(() => outlineData(store, scope, numbers), [store.version, scope, numbers]);
  const rows = useMemo(() => outlineRows(store, data, open, filter), [data, open, filter, store.diagnostics]);
  const chosen = (row: OutlineRow) =>
    row.kind === "group"
      ? subject.kind === "group" && subject.group === row.id
      : subject.kind === "nodes" && subject.nodes.includes(row.id);
  useEffect(() => {
    // What is selected elsewhere comes into sight here: the groups around it open.
    const group = subject.kind === "nodes" ? (store.nodes.get(subject.nodes[0] ?? 0)?.group ?? 0) : 0;
    const around = subject.kind === "group" ? groupsAround(store, subject.group).slice(1) : groupsAround(store, group);
    if (around.some((id) => !open.has(id))) setOpen(new Set([...open, ...around]));
  }, [subject]);
  const currentScope = whereIs(store, seen.path).at(-1)?.id ?? 0;
  const at = rows.findIndex(chosen);
  useEffect(() => {
    const element = scroll.current;
    if (!element || at < 0) return;
    setCurrent(at);
    if (at * ROW < element.scrollTop || (at + 1) * ROW > element.scrollTop + element.clientHeight)
      element.scrollTop = at * ROW - element.clientHeight / 3;
  }, [at]);
  const turn = (row: OutlineRow) => {
    const next = new Set(open);
    if (!next.delete(row.id)) next.add(row.id);
    setOpen(next);
  };
  const go = (row: OutlineRow) => {
    if (row.kind === "group") app.picked.revealGroup(row.id);
    else app.picked.reveal(row.id);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const row = rows[current];
    const move = (to: number) => {
      const next = Math.max(0, Math.min(rows.length - 1, to));
      setCurrent(next);
      const element = scroll.current;
      if (element && (next * ROW < element.scrollTop || (next + 1) * ROW > element.scrollTop + element.clientHeight))
        element.scrollTop = next * ROW - element.clientHeight / 2;
    };
    if (event.key === "ArrowDown") move(current + 1);
    else if (event.key === "ArrowUp") move(current - 1);
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(rows.length - 1);
    else if (event.key === "ArrowRight" && row?.more && !row.open) turn(row);
    else if (event.key === "ArrowLeft" && row?.more && row.open) turn(row);
    else if (event.key === "ArrowLeft" && row)
      move(rows.findLastIndex(({ depth }, i) => i < current && depth < row.depth));
    else if ((event.key === "Enter" || event.key === " ") && row) go(row);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const first = Math.max(0, Math.floor(top / ROW) - MARGIN);
  const last = Math.min(rows.length, Math.ceil((top + height) / ROW) + MARGIN);
  return (
    <aside class="ol-tree" aria-label="Outline of the model" data-testid="tree">
      <div class="ol-tree-head">
        <input
          type="text"
          class="ol-input"
          placeholder="Filter"
          spellcheck={false}
          value={filter}
          aria-label="Filter the outline"
          data-clean={filter === "" ? "" : undefined}
          data-testid="tree-filter"
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
        <ToolButton
          icon="close"
          title="Close the outline (O)"
          testid="tree-close"
          onClick={() => {
            app.outlineOpen.value = false;
          }}
        />
      </div>
      <div
        class="ol-tree-scroll"
        ref={scroll}
        role="tree"
        aria-label="Groups and nodes"
        tabIndex={0}
        aria-activedescendant={rows[current] ? `ol-tree-${rows[current].key}` : undefined}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        onKeyDown={onKeyDown}
      >
        <div style={{ height: `${first * ROW}px` }} />
        {rows.slice(first, last).map((row, i) => (
          <Row
            key={row.key}
            row={row}
            state={`${chosen(row) ? "ol-tree-chosen" : ""} ${first + i === current ? "ol-tree-current" : ""} ${
              row.kind === "group" && seen.groups.has(row.id) ? "ol-tree-seen" : ""
            }`}
            inView={row.kind === "group" && currentScope === row.id}
            selected={chosen(row)}
            onTurn={() => turn(row)}
            onGo={() => {
              setCurrent(first + i);
              go(row);
            }}
          />
        ))}
        <div style={{ height: `${Math.max(0, rows.length - last) * ROW}px` }} />
      </div>
      <p class="ol-tree-foot ol-dim">{numbers ? heat?.title : "parameters"}</p>
    </aside>
  );
}

interface RowProps {
  row: OutlineRow;
  state: string;
  inView: boolean;
  selected: boolean;
  onTurn: () => void;
  onGo: () => void;
}

function Row({ row, state, inView, selected, onTurn, onGo }: RowProps) {
  return (
    <div
      id={`ol-tree-${row.key}`}
      class={`ol-tree-row ${state}`}
      role="treeitem"
      aria-level={row.depth + 1}
      aria-expanded={row.more ? row.open : undefined}
      aria-selected={selected}
      title={row.title}
      aria-current={inView ? "location" : undefined}
      data-testid={`tree-${row.kind}`}
      data-id={row.id}
      style={{ paddingInlineStart: `${4 + 12 * Math.min(row.depth, 12)}px` }}
      onClick={onGo}
    >
      <span
        class={`ol-tree-turn ${row.open ? "ol-tree-open" : ""}`}
        aria-hidden="true"
        onClick={(event) => {
          if (!row.more) return;
          event.stopPropagation();
          onTurn();
        }}
      >
        {row.more && <Icon name="right" />}
      </span>
      {row.kind === "node" && row.name && <span class="ol-tree-op">{row.detail}</span>}
      <Elided text={row.name || row.detail} middle class="ol-tree-name" />
      {row.kind === "group" && row.detail && <span class="ol-dim ol-tree-about">{row.detail}</span>}
      {row.problem && <span class="ol-tree-problem" title="has a problem" />}
      <span class="ol-tree-share" aria-hidden="true">
        <span style={{ width: `${Math.min(100, 100 * row.share)}%` }} />
      </span>
    </div>
  );
}
