/** Edges that are dragged, or moved with the arrow keys, to make room: the widget's lower one, the drawer's upper one. */

import { useRef } from "preact/hooks";
import type { App } from "../../app.ts";
import { useCell } from "../../state.ts";

const STEP = 24;

interface EdgeProps {
  class: string;
  label: string;
  testid: string;
  /** The size now; `grows`: 1 where it grows downward, -1 where upward. */
  size: () => number;
  grows: 1 | -1;
  least: number;
  most: number;
  resize: (size: number) => void;
}

function Edge({ class: name, label, testid, size, grows, least, most, resize }: EdgeProps) {
  const drag = useRef<{ y: number; size: number } | null>(null);
  const to = (width: number) => resize(Math.round(Math.min(most, Math.max(least, width))));
  const end = () => {
    drag.current = null;
  };
  return (
    <div
      class={`ol-edge ${name}`}
      role="separator"
      aria-orientation="horizontal"
      aria-label={label}
      aria-valuenow={Math.round(size())}
      aria-valuemin={least}
      aria-valuemax={most}
      title={label}
      tabIndex={0}
      data-testid={testid}
      onPointerDown={(event) => {
        drag.current = { y: event.clientY, size: size() };
        event.currentTarget.setPointerCapture(event.pointerId);
        event.preventDefault();
      }}
      onPointerMove={(event) => {
        if (drag.current) to(drag.current.size + grows * (event.clientY - drag.current.y));
      }}
      onPointerUp={end}
      onLostPointerCapture={end}
      onKeyDown={(event) => {
        const by = event.key === "ArrowDown" ? STEP : event.key === "ArrowUp" ? -STEP : 0;
        if (!by) return;
        to(size() + grows * by);
        event.preventDefault();
        event.stopPropagation();
      }}
    />
  );
}

/** The widget's lower edge. */
export function HeightEdge({ app }: { app: App }) {
  const height = useCell(app.height);
  if (!height) return null;
  return (
    <Edge
      class="ol-edge-height"
      label="Height of the view"
      testid="height-edge"
      size={() => app.height.value}
      grows={1}
      least={240}
      most={4000}
      resize={(size) => {
        app.height.value = size;
      }}
    />
  );
}

/** The drawer's upper edge; its height is kept while it is closed. */
export function DrawerEdge({ app, measure }: { app: App; measure: () => number }) {
  useCell(app.drawerHeight);
  return (
    <Edge
      class="ol-edge-drawer"
      label="Height of the drawer"
      testid="drawer-edge"
      size={measure}
      grows={-1}
      least={80}
      most={1200}
      resize={(size) => {
        app.drawerHeight.value = size;
      }}
    />
  );
}
