/** The whole widget: bar, picture, inspector, drawer, and what floats above them. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { CounterpartPanel } from "../../pair/counterpart_panel.tsx";
import { useCell } from "../../state.ts";
import type { PointerTarget } from "../../view_contract.ts";
import { CommandList } from "../edit/command_list.tsx";
import { CutPanel } from "../edit/cut_panel.tsx";
import { RadiusNotice } from "../edit/edit_impact.tsx";
import { FilePanel } from "../edit/file_panel.tsx";
import { FormPanel } from "../edit/form.tsx";
import { Menu } from "../edit/menu.tsx";
import { PalettePanel } from "../edit/palette.tsx";
import { Inspector } from "../inspector/inspector.tsx";
import { OutlinePanel } from "../outline/outline_panel.tsx";
import { StickyPath } from "../outline/sticky_path.tsx";
import { Toasts } from "../parts/toasts.tsx";
import { SavePanel } from "../save.tsx";
import { LargeView } from "../values/large_view.tsx";
import { RunInputs } from "../values/run_inputs.tsx";
import { Banner } from "./banner.tsx";
import { Drawer, StatusLine } from "./drawer.tsx";
import { KeysPanel } from "./keys.tsx";
import { Placeholder } from "./placeholder.tsx";
import { HeightEdge } from "./room.tsx";
import { Toolbar } from "./toolbar.tsx";
import { Tooltip } from "./tooltip.tsx";
import { TrailNotice } from "./travel_bar.tsx";

interface Props {
  app: App;
  /** Called once with the element that the picture is drawn in. */
  onStage: (stage: HTMLElement) => void;
}

export function Root({ app, onStage }: Props) {
  const stage = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (stage.current) onStage(stage.current);
  }, []);
  return (
    <>
      <Toolbar app={app} />
      <div class="ol-body">
        <OutlinePanel app={app} />
        <div class="ol-picture" onDragOver={(event) => accept(app, event)} onDrop={(event) => drop(app, event)}>
          <div class="ol-stage" ref={stage} data-testid="stage" />
          <StickyPath app={app} />
          <Placeholder app={app} />
          <Banner app={app} />
          <Toasts app={app} />
          <Hover app={app} />
          <Menu app={app} />
          <RadiusNotice app={app} />
          <TrailNotice app={app} />
          <KeysPanel app={app} />
          <RunInputs app={app} />
          <PalettePanel app={app} />
          <CommandList app={app} />
          <CutPanel app={app} />
          <FormPanel app={app} />
          <FilePanel app={app} />
          <CounterpartPanel app={app} />
          <SavePanel app={app} />
          <WireHint app={app} />
        </div>
        <Inspector app={app} />
        <Drawer app={app} />
        <LargeView app={app} />
      </div>
      <StatusLine app={app} />
      <HeightEdge app={app} />
    </>
  );
}

/** An operator out of the palette, and any file, may be let go of over the picture. */
function accept(app: App, event: DragEvent): void {
  const isFile = event.dataTransfer?.types.includes("Files") ?? false;
  if (app.client.editable && (app.palette.carried.value || isFile)) event.preventDefault();
}

function drop(app: App, event: DragEvent): void {
  const operator = app.palette.carried.value,
    file = event.dataTransfer?.files[0];
  const target = app.picture?.targetAt(event.clientX, event.clientY);
  app.palette.carried.value = null;
  if (!app.client.editable || !(operator || file)) return;
  event.preventDefault();
  if (operator && target) app.palette.drop(operator, target);
  else if (file) void app.files.drop(file, target ?? { value: 0, node: 0 });
}

/** The effect of a wire in hand at its place. */
function WireHint({ app }: { app: App }) {
  const wire = useCell(app.wires.wire);
  if (!wire) return null;
  const refused = wire.over !== 0 && wire.targets?.refused[wire.over] !== undefined;
  return (
    <p class={`ol-wire-hint ${refused ? "ol-bad" : ""}`} role="status" data-testid="wire-hint">
      {app.wires.hint()}
    </p>
  );
}

/** Hovering renders only this, however often it comes. */
function Hover({ app }: { app: App }) {
  const attached = useCell(app.attached);
  const [hover, setHover] = useState<PointerTarget | null>(null);
  useEffect(() => attached?.on("hover", setHover), [attached]);
  return <Tooltip app={app} hover={hover} />;
}
