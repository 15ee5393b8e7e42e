/** Search by node name, operator type and value name, with the hits as a list to walk through. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import type { Hit } from "../../find/search.ts";
import { count } from "../../model/names.ts";
import { useCell } from "../../state.ts";
import { Elided, ToolButton } from "../parts/controls.tsx";
import { Icon } from "../parts/icons.tsx";

/** More than this many rows nobody reads; next and previous still reach every hit that was kept. */
const SHOWN = 60;

export function SearchBox({ app }: { app: App }) {
  const search = useCell(app.finder.search);
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const { query, hits, total, current } = search;

  const step = (by: number) => app.finder.showHit(current < 0 && by < 0 ? -1 : current + by);
  const close = () => setOpen(false);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") {
      event.preventDefault();
      step(event.shiftKey ? -1 : 1);
      close();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      step(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Escape" && (open || query)) {
      event.stopPropagation();
      if (open && query) close();
      else app.finder.setQuery("");
    }
  };
  const onFocusOut = (event: FocusEvent) => {
    if (!box.current?.contains(event.relatedTarget as Node | null)) close();
  };
  return (
    <div class="ol-search" ref={box} onFocusOut={onFocusOut} role="search">
      <Icon name="search" />
      <input
        type="text"
        class="ol-input ol-search-input"
        placeholder="Search, or op:Conv shape:*,64,*,*"
        spellcheck={false}
        autocomplete="off"
        size={1}
        value={query}
        data-testid="search-input"
        aria-label="Search nodes, operators and values (Ctrl+F)"
        title="Search nodes, operators and values (Ctrl+F)"
        role="combobox"
        aria-expanded={open && query !== ""}
        aria-controls={`ol-hits-${app.client.session}`}
        data-clean={query === "" ? "" : undefined}
        onInput={(event) => {
          app.finder.setQuery(event.currentTarget.value);
          setOpen(true);
        }}
        onFocus={() => {
          setOpen(true);
          setTimeout(() => app.finder.index.prepare()); // before the first letter comes
        }}
        onKeyDown={onKeyDown}
      />
      {query && (
        <span class="ol-search-count" data-testid="search-count">
          {total === 0 ? "none" : current < 0 ? count(total) : `${count(current + 1)} / ${count(total)}`}
        </span>
      )}
      {query && total > 0 && (
        <>
          <ToolButton icon="up" title="Previous (Shift+Enter)" testid="search-previous" onClick={() => step(-1)} />
          <ToolButton icon="down" title="Next (Enter)" testid="search-next" onClick={() => step(1)} />
        </>
      )}
      {query && (
        <ToolButton
          icon="close"
          title="Clear the search"
          testid="search-clear"
          onClick={() => app.finder.setQuery("")}
        />
      )}
      {open && query && (
        <Hits
          app={app}
          id={`ol-hits-${app.client.session}`}
          hits={hits}
          total={total}
          current={current}
          problem={search.problem ?? ""}
          onPick={close}
        />
      )}
    </div>
  );
}

interface HitsProps {
  app: App;
  id: string;
  hits: Hit[];
  total: number;
  current: number;
  problem: string;
  onPick: () => void;
}

function Hits({ app, id, hits, total, current, problem, onPick }: HitsProps) {
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [current]);
  const first = Math.max(0, Math.min(current - SHOWN / 2, hits.length - SHOWN));
  return (
    <ul class="ol-popup ol-hits" role="listbox" id={id} ref={list} aria-label="Search results">
      {hits.length === 0 && (
        <li class="ol-empty" role="presentation">
          {problem || "No node, operator or value like this"}
        </li>
      )}
      {hits.length === 0 && (
        <li class="ol-empty" role="presentation">
          Conditions: op:Conv shape:*,64,*,* dtype:float16 group:layer nan&gt;0 elements&gt;1000 is:output -op:Relu
        </li>
      )}
      {hits.slice(first, first + SHOWN).map((hit, i) => (
        <li
          key={`${hit.kind}${hit.id}`}
          role="option"
          aria-selected={first + i === current}
          class="ol-hit"
          data-testid="search-result"
          data-kind={hit.kind}
          data-id={hit.id}
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => {
            app.finder.showHit(first + i);
            onPick();
          }}
        >
          <span class={`ol-kind ol-kind-${hit.kind}`}>{hit.kind === "node" ? hit.detail : "value"}</span>
          <Elided text={hit.text} middle class="ol-hit-text" />
          {hit.kind === "value" && <span class="ol-dim ol-shape">{hit.detail}</span>}
        </li>
      ))}
      {total > SHOWN && (
        <li class="ol-empty" role="presentation">
          {count(total)} in all; Enter walks through them
        </li>
      )}
    </ul>
  );
}
