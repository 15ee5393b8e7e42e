/** The changes by kind: added, removed, changed, renamed and moved; a click shows both sides. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { ChangeInfo, ChangeKind, PairInfo } from "../kernel/protocol.ts";
import { count } from "../model/names.ts";
import { Elided, ToolButton } from "../panels/parts/controls.tsx";
import { useCell } from "../state.ts";
import type { Pair } from "./pair.ts";

const SHOWN = 500;
const MARKS: Record<ChangeKind, string> = { changed: "~", added: "+", removed: "−", renamed: "=", moved: "↕" };
const KINDS = Object.keys(MARKS) as ChangeKind[];

export function ChangeList({ pair, info }: { pair: Pair; info: PairInfo }) {
  const current = useCell(pair.change);
  const [text, setText] = useState("");
  const [hidden, setHidden] = useState<ReadonlySet<ChangeKind>>(() => quiet(info));
  const query = text.toLowerCase();
  const rows = info.changes
    .map((change, place) => ({ change, place }))
    .filter(({ change }) => !hidden.has(change.kind) && change.text.toLowerCase().includes(query));
  const at = rows.findIndex(({ place }) => place === current);
  const list = useRef<HTMLUListElement>(null);
  const step = (by: number) => {
    const next = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
    if (next) pair.showChange(next.place);
  };
  useEffect(() => {
    pair.step = step;
    list.current?.querySelector("[aria-pressed=true]")?.scrollIntoView({ block: "nearest" });
  });
  if (!info.changes.length) return <p class="ol-empty">Nothing differs.</p>;
  return (
    <>
      <div class="ol-pair-filter">
        {KINDS.filter((kind) => info.counts[kind]).map((kind) => (
          <button
            key={kind}
            type="button"
            class="ol-pair-kind"
            aria-pressed={!hidden.has(kind)}
            data-testid={`pair-kind-${kind}`}
            onClick={() => setHidden(toggled(hidden, kind))}
          >
            <span class={`ol-pair-mark ol-pair-${kind}`}>{MARKS[kind]}</span> {count(info.counts[kind]!)} {kind}
          </button>
        ))}
        <span class="ol-pair-walk">
          <ToolButton
            icon="up"
            title="Change before (Alt ↑)"
            testid="pair-previous"
            disabled={at < 1}
            onClick={() => step(-1)}
          />
          <ToolButton
            icon="down"
            title="Next change (Alt ↓)"
            testid="pair-next"
            disabled={at >= rows.length - 1}
            onClick={() => step(1)}
          />
          <span class="ol-dim" role="status" data-testid="pair-at">
            {at < 0 ? "" : `${count(at + 1)} of `}
            {count(rows.length)}
          </span>
        </span>
        <input
          class="ol-input"
          type="search"
          placeholder="Filter changes"
          aria-label="Filter changes"
          value={text}
          data-testid="pair-filter"
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </div>
      <ul
        class="ol-pair-list"
        ref={list}
        tabIndex={0}
        aria-label="Changes"
        data-testid="pair-changes"
        onKeyDown={(event) => {
          if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
          step(event.key === "ArrowDown" ? 1 : -1);
          event.preventDefault();
          event.stopPropagation();
        }}
      >
        {rows.slice(0, SHOWN).map(({ change, place }) => (
          <Row key={place} pair={pair} change={change} place={place} selected={place === current} />
        ))}
        {rows.length > SHOWN && <li class="ol-empty">and {count(rows.length - SHOWN)} more: filter to see them</li>}
        {info.more > 0 && <li class="ol-empty">and {count(info.more)} that are only listed in Python</li>}
        {rows.length === 0 && <li class="ol-empty">No change is like this.</li>}
      </ul>
    </>
  );
}

function Row(props: { pair: Pair; change: ChangeInfo; place: number; selected: boolean }) {
  const { pair, change, place, selected } = props;
  const { kind, subject, name, field, old } = change;
  return (
    <li>
      <button
        type="button"
        class="ol-pair-row"
        aria-pressed={selected}
        title={change.text}
        data-testid="pair-change"
        onClick={() => pair.showChange(place)}
      >
        <span class={`ol-pair-mark ol-pair-${kind}`}>{MARKS[kind]}</span>
        <span class="ol-dim">{subject}</span>
        <span class="ol-mono">
          <Elided text={name} middle />
        </span>
        <span class="ol-dim ol-elided">{field || kind}</span>
        <span class="ol-elided ol-mono">
          {old && <del>{old}</del>} {change.new && <ins>{change.new}</ins>}
        </span>
      </button>
    </li>
  );
}

/** The kinds that are told in one line, where nearly everything was renamed or moved; other changes come first. */
function quiet(info: PairInfo): ReadonlySet<ChangeKind> {
  const loud = info.changes.some(({ kind }) => kind !== "renamed" && kind !== "moved");
  return loud ? new Set<ChangeKind>(["renamed", "moved"]) : new Set<ChangeKind>();
}

function toggled<T>(set: ReadonlySet<T>, item: T): ReadonlySet<T> {
  const next = new Set(set);
  if (!next.delete(item)) next.add(item);
  return next;
}
