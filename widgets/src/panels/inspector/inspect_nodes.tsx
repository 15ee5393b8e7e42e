/** The inspector of several selected nodes: what they are, and what can be done with all of them. */

import type { App } from "../../app.ts";
import { nodeName, plural, shortOp } from "../../model/names.ts";
import { useEvents } from "../../state.ts";
import { BulkBar } from "../find/bulk_bar.tsx";
import { Elided, Section } from "../parts/controls.tsx";
import { LikeThese } from "./pattern.tsx";

const SHOWN = 100;

export function NodesInspector({ app, nodes }: { app: App; nodes: number[] }) {
  useEvents(app.store, "commit");
  useEvents(app.client, "connection");
  const able = app.client.editable;
  return (
    <div class="ol-panel" data-testid="inspector-nodes">
      <header class="ol-panel-head">
        <div class="ol-panel-title">
          <div class="ol-panel-words">
            <span class="ol-op">{plural(nodes.length, "node")}</span>
          </div>
        </div>
        <div class="ol-actions">
          <button
            type="button"
            class="ol-button ol-text-button"
            disabled={!able || app.client.can.run === false}
            onClick={() => void app.runs.run(nodes)}
          >
            Run
          </button>
          <button type="button" class="ol-button ol-text-button" onClick={() => void app.picked.copyNames(nodes)}>
            Copy names
          </button>
        </div>
        <BulkBar app={app} nodes={() => nodes} from="nodes" />
      </header>
      <Section title="Selected">
        {nodes.slice(0, SHOWN).map((id) => (
          <button
            key={id}
            type="button"
            class="ol-row ol-row-button"
            onClick={() => app.picked.reveal(id)}
            data-testid="selected-node"
          >
            <span class="ol-row-op">{shortOp(app.store.nodes.get(id)?.op ?? "")}</span>
            <Elided text={nodeName(app.store, id)} middle class="ol-mono" />
          </button>
        ))}
        {nodes.length > SHOWN && <p class="ol-empty">and {plural(nodes.length - SHOWN, "more", "more")}</p>}
      </Section>
      <LikeThese app={app} nodes={nodes} />
    </div>
  );
}
