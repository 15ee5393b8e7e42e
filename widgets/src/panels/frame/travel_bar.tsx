/** Back and forward in the bar; what is lit, over the picture; the bookmarks, in the inspector. */

import type { App } from "../../app.ts";
import { nodeName, shortOp } from "../../model/names.ts";
import { useCell, useEvents } from "../../state.ts";
import { Elided, Section, ToolButton } from "../parts/controls.tsx";

export function TravelButtons({ app }: { app: App }) {
  const { back, forward } = useCell(app.travel.reach);
  return (
    <div class="ol-tool-group ol-travel">
      <ToolButton
        icon="left"
        title="Back to where you were (Alt+←)"
        testid="toolbar-back"
        disabled={!back}
        onClick={() => app.travel.go(-1)}
      />
      <ToolButton
        icon="right"
        title="Forward (Alt+→)"
        testid="toolbar-forward"
        disabled={!forward}
        onClick={() => app.travel.go(1)}
      />
    </div>
  );
}

export function TrailNotice({ app }: { app: App }) {
  const trail = useCell(app.travel.trail);
  if (!trail) return null;
  return (
    <div class="ol-trail" role="status" data-testid="trail">
      <span class="ol-elided" title={trail.title}>
        {trail.title}
      </span>
      <button
        type="button"
        class="ol-link"
        data-testid="trail-select"
        onClick={() => {
          app.picked.select(trail.nodes);
          app.travel.unlight();
        }}
      >
        select
      </button>
      <ToolButton
        icon="close"
        title="Light everything again (Esc)"
        testid="trail-close"
        onClick={() => app.travel.unlight()}
      />
    </div>
  );
}

export function Bookmarks({ app }: { app: App }) {
  useEvents(app.store, "commit", "reset");
  const marked = useCell(app.travel.bookmarks);
  if (!marked.length) return null;
  return (
    <Section title="Bookmarks" count={marked.length}>
      {marked.map((node) => (
        <div key={node} class="ol-bookmark">
          <button
            type="button"
            class="ol-row ol-row-button"
            data-testid="bookmark"
            onClick={() => app.picked.reveal(node)}
          >
            <span class="ol-row-op">{shortOp(app.store.nodes.get(node)?.op ?? "")}</span>
            <Elided text={nodeName(app.store, node)} middle class="ol-mono" />
          </button>
          <ToolButton icon="close" title="Remove the bookmark" onClick={() => app.travel.toggleBookmarks([node])} />
        </div>
      ))}
    </Section>
  );
}
