/** Titles of the open groups around what shows that are out of sight, at the upper edge of the picture. */

import type { App } from "../../app.ts";
import { whereIs } from "../../model/where.ts";
import { useCell } from "../../state.ts";

export function StickyPath({ app }: { app: App }) {
  const where = whereIs(app.store, useCell(app.seen).path);
  const groups = where.flatMap(({ id, hidden }) => (hidden && app.store.groups.get(id)) || []);
  if (!groups.length) return null;
  return (
    <div class="ol-sticky" data-testid="sticky-path">
      {groups.map(({ id, name, about }) => (
        <button
          key={id}
          type="button"
          class="ol-sticky-group"
          title={about || name}
          onClick={() => app.picked.revealGroup(id)}
        >
          {name}
        </button>
      ))}
    </div>
  );
}
