/** The hits of a search, the ways to go on with its last word, and actions on all of them. */

import { useEffect, useMemo, useRef } from "preact/hooks";
import type { App } from "../../app.ts";
import type { Completion } from "../../find/completion.ts";
import type { SearchState } from "../../find/finder.ts";
import type { Hit } from "../../find/search.ts";
import { count, plural } from "../../model/names.ts";
import { Elided } from "../parts/controls.tsx";
import { BulkBar } from "./bulk_bar.tsx";

/** Rows shown at most; next and previous still reach every hit. */
const SHOWN = 60;

interface HitsProps {
  app: App;
  id: string;
  search: SearchState;
  completions: Completion[];
  onComplete: (query: string) => void;
  onPick: () => void;
}

export function Hits({ app, id, search, completions, onComplete, onPick }: HitsProps) {
  const { hits, total, current, problem, pending } = search;
  const list = useRef<HTMLUListElement>(null);
  const nodes = useMemo(() => app.finder.foundNodes(), [search]);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [current]);
  const first = Math.max(0, Math.min(current - SHOWN / 2, hits.length - SHOWN));
  return (
    <div class="ol-popup ol-hits">
      {completions.length > 0 && <Completions completions={completions} onComplete={onComplete} />}
      <ul class="ol-hit-list" role="listbox" id={id} ref={list} aria-label="Search results">
        {hits.length === 0 && (
          <li class="ol-empty" role="presentation">
            {pending ? "Looking at the attributes…" : problem || "No node, operator or value like this"}
          </li>
        )}
        {hits.length === 0 && !pending && (
          <li class="ol-empty" role="presentation">
            Conditions: op:Conv kernel_shape:3,3 strides:2,2 shape:*,64,*,* dtype:float16 dim:batch group:layer nan&gt;0
            elements&gt;1000 is:output -op:Relu; operators by their initials too (nms)
          </li>
        )}
        {hits.slice(first, first + SHOWN).map((hit, i) => (
          <Row key={`${hit.kind}${hit.id}`} app={app} hit={hit} at={first + i} current={current} onPick={onPick} />
        ))}
        {total > SHOWN && (
          <li class="ol-empty" role="presentation">
            {count(total)} in all; Enter walks through them
          </li>
        )}
      </ul>
      {nodes.length > 0 && (
        <div class="ol-hit-actions" data-testid="search-actions">
          <button
            type="button"
            class="ol-button ol-text-button ol-primary"
            title="Select every node that was found (Ctrl+Enter)"
            data-testid="search-select-all"
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => {
              onPick();
              app.finder.selectFound();
            }}
          >
            Select {nodes.length > 1 ? `all ${plural(nodes.length, "node")}` : "the node"}
          </button>
          <BulkBar app={app} nodes={() => app.finder.foundNodes()} from="search" onDone={onPick} />
        </div>
      )}
    </div>
  );
}

function Row({
  app,
  hit,
  at,
  current,
  onPick,
}: {
  app: App;
  hit: Hit;
  at: number;
  current: number;
  onPick: () => void;
}) {
  return (
    <li
      role="option"
      aria-selected={at === current}
      class="ol-hit"
      data-testid="search-result"
      data-kind={hit.kind}
      data-id={hit.id}
      onMouseDown={(event) => event.preventDefault()}
      onClick={() => {
        app.finder.showHit(at);
        onPick();
      }}
    >
      <span class={`ol-kind ol-kind-${hit.kind}`}>{hit.kind === "node" ? hit.detail : "value"}</span>
      <Elided text={hit.text} middle class="ol-hit-text" />
      {hit.kind === "value" && <span class="ol-dim ol-shape">{hit.detail}</span>}
    </li>
  );
}

function Completions({ completions, onComplete }: { completions: Completion[]; onComplete: (query: string) => void }) {
  return (
    <div class="ol-completions" role="group" aria-label="Completions (Tab takes the first)">
      {completions.map(({ query, word, count: nodes }, i) => (
        <button
          key={word}
          type="button"
          class="ol-completion ol-mono"
          title={i === 0 ? "Tab" : undefined}
          data-testid="search-completion"
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => onComplete(query)}
        >
          {word}
          {nodes > 0 && <span class="ol-dim"> {count(nodes)}</span>}
          {i === 0 && <kbd>Tab</kbd>}
        </button>
      ))}
    </div>
  );
}
