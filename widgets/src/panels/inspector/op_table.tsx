/** The number of nodes of each operator, as bars; a click searches for it. */

import { useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { count, shortOp } from "../../model/names.ts";

const SHOWN = 12;

export function OpTable({ app, nodes }: { app: App; nodes: Iterable<number> }) {
  const [all, setAll] = useState(false);
  const counts = countOps(app, nodes);
  const most = counts[0]?.[1] ?? 1;
  const shown = all ? counts : counts.slice(0, SHOWN);
  return (
    <>
      <ul class="ol-ops">
        {shown.map(([op, number]) => (
          <li key={op}>
            <button
              type="button"
              class="ol-op-row"
              title={`Search for ${op}`}
              onClick={() => app.finder.setQuery(shortOp(op))}
            >
              <span class="ol-elided">{shortOp(op)}</span>
              <span class="ol-bar">
                <span style={{ width: `${(100 * number) / most}%` }} />
              </span>
              <span class="ol-number">{count(number)}</span>
            </button>
          </li>
        ))}
      </ul>
      {counts.length > shown.length && (
        <button type="button" class="ol-link" onClick={() => setAll(true)}>
          {counts.length - shown.length} more
        </button>
      )}
    </>
  );
}

function countOps(app: App, nodes: Iterable<number>): [string, number][] {
  const counts = new Map<string, number>();
  for (const id of nodes) {
    const op = app.store.nodes.get(id)?.op;
    if (op) counts.set(op, (counts.get(op) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
}
