/** The panel on the right: about the selected nodes, value or group, or the model when nothing is selected. */

import { useRef, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { targetLabel } from "../../edit/commands/command_registry.ts";
import { useCell, useEvents } from "../../state.ts";
import { Icon } from "../parts/icons.tsx";
import { GroupInspector } from "./inspect_group.tsx";
import { ModelInspector } from "./inspect_model.tsx";
import { NodeInspector } from "./inspect_node.tsx";
import { NodesInspector } from "./inspect_nodes.tsx";
import { ValueInspector } from "./inspect_value.tsx";

const MIN_WIDTH = 220,
  MAX_WIDTH = 720,
  STEP = 24;

export function Inspector({ app }: { app: App }) {
  const open = useCell(app.inspectorOpen);
  const [width, setWidth] = useState(320);
  if (!open) return null;
  const resize = (to: number) => setWidth(Math.round(Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, to))));
  return (
    <>
      <Splitter width={width} resize={resize} />
      <aside class="ol-inspector" style={{ width: `${width}px` }} data-testid="inspector" aria-label="Inspector">
        <div class="ol-inspector-body">
          <Content app={app} />
        </div>
        <AllEdits app={app} />
      </aside>
    </>
  );
}

/** Actions on the subject: the same list as the key E opens. */
function AllEdits({ app }: { app: App }) {
  useEvents(app.client, "connection");
  useEvents(app.store, "reset");
  const subject = useCell(app.picked.subject);
  if (!app.client.editable) return null;
  const target = {
    nodes: subject.kind === "nodes" ? subject.nodes : [],
    value: subject.kind === "value" ? subject.value : 0,
  };
  return (
    <button
      type="button"
      class="ol-all-edits"
      data-testid="all-edits"
      onClick={() => {
        app.dialogs.list.value = target;
      }}
    >
      <Icon name="plus" />
      <span class="ol-grow">{`Edit ${targetLabel(app, target)}…`}</span>
      <kbd>E</kbd>
    </button>
  );
}

function Content({ app }: { app: App }) {
  useEvents(app.store, "reset");
  const subject = useCell(app.picked.subject);
  if (app.store.version === 0) return null;
  switch (subject.kind) {
    case "nodes":
      return subject.nodes.length === 1 ? (
        <NodeInspector app={app} node={subject.nodes[0]!} key={subject.nodes[0]} />
      ) : (
        <NodesInspector app={app} nodes={subject.nodes} />
      );
    case "value":
      return <ValueInspector app={app} value={subject.value} key={subject.value} />;
    case "group":
      return <GroupInspector app={app} group={subject.group} />;
    default:
      return <ModelInspector app={app} />;
  }
}

/** The inspector's left edge: drag it, or focus it and use the arrow keys. */
function Splitter({ width, resize }: { width: number; resize: (to: number) => void }) {
  const drag = useRef<{ x: number; width: number } | null>(null);
  return (
    <div
      class="ol-splitter"
      role="separator"
      aria-orientation="vertical"
      aria-label="Width of the inspector"
      tabIndex={0}
      aria-valuenow={width}
      aria-valuemin={MIN_WIDTH}
      aria-valuemax={MAX_WIDTH}
      data-testid="inspector-splitter"
      onPointerDown={(event) => {
        drag.current = { x: event.clientX, width };
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        if (drag.current) resize(drag.current.width + drag.current.x - event.clientX);
      }}
      onPointerUp={() => {
        drag.current = null;
      }}
      onLostPointerCapture={() => {
        drag.current = null;
      }}
      onKeyDown={(event) => {
        if (event.key === "ArrowLeft") resize(width + STEP);
        else if (event.key === "ArrowRight") resize(width - STEP);
        else return;
        event.preventDefault();
      }}
    />
  );
}
