/** The tooltip: a few words beside the pointer. All of it is text of the model, and stays text. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { quantity } from "../../look/node_heat.ts";
import { count, nodeName, plural, shortOp } from "../../model/names.ts";
import { useCell, useEvents } from "../../state.ts";
import type { PointerTarget } from "../../view_contract.ts";
import { groupMembers } from "../inspector/inspect_group.tsx";
import { formatNumber } from "../inspector/statistics.tsx";
import { Thumbnail } from "../values/thumbnail.tsx";

const DELAY_MS = 120;
const AWAY = 14;
/** Height that a thumbnail takes. */
const THUMBNAIL = 104;

export function Tooltip({ app, hover }: { app: App; hover: PointerTarget | null }) {
  const menu = useCell(app.menu);
  const wire = useCell(app.wires.wire);
  useEvents(app.store, "reset", "commit"); // the tooltip of a value follows edits
  const [shown, setShown] = useState<PointerTarget | null>(null);
  const tip = useRef<HTMLDivElement>(null);
  const lines = shown ? describe(app, shown) : null;
  const hoverKey = hover ? `${hover.node}/${hover.value}/${hover.group}` : "";
  useEffect(() => {
    if (!hover || menu || wire) {
      setShown(null);
      return undefined;
    }
    const timer = setTimeout(() => setShown(hover), shown ? 0 : DELAY_MS);
    return () => clearTimeout(timer);
  }, [hoverKey, menu, wire !== null]);
  useLayoutEffect(() => {
    const element = tip.current,
      around = element?.parentElement;
    if (!element || !around || !hover) return;
    // A thumbnail comes later, and makes the tip grow away from the pointer.
    const grows =
      lines && lines.value !== 0 && app.numbers.known(lines.value) && !element.querySelector("canvas") ? THUMBNAIL : 0;
    const below = hover.y + AWAY + element.offsetHeight + grows < around.clientHeight;
    const x = Math.min(hover.x + AWAY, around.clientWidth - element.offsetWidth - 4);
    element.style.left = `${Math.max(4, x)}px`;
    element.style.top = below ? `${hover.y + AWAY}px` : "auto";
    element.style.bottom = below
      ? "auto"
      : `${Math.min(around.clientHeight - hover.y + AWAY, around.clientHeight - element.offsetHeight - 4)}px`;
  });
  if (!lines) return null;
  return (
    <div class="ol-popup ol-tooltip" role="tooltip" ref={tip} data-testid="tooltip">
      <p class="ol-tooltip-title">{lines.title}</p>
      {lines.rest.map((line, i) => (
        <p key={i} class="ol-dim">
          {line}
        </p>
      ))}
      {lines.value !== 0 && app.numbers.known(lines.value) && (
        <Thumbnail key={lines.value} app={app} value={lines.value} />
      )}
    </div>
  );
}

/** The number that a node is colored by. */
function heatLine(app: App, node: number): string {
  const heat = app.runs.overlay.value,
    number = heat?.numbers.get(node);
  return heat && number !== undefined ? `${heat.title}: ${heat.kinds[number] ?? quantity(number, heat.unit)}` : "";
}

/** A title and further lines, null when there is nothing to say. */
function describe(app: App, target: PointerTarget): { title: string; rest: string[]; value: number } | null {
  const { store } = app;
  const node = store.nodes.get(target.node);
  const value = store.values.get(target.value);
  const group = store.groups.get(target.group);
  if (value) {
    const run = app.runs.results.value?.byValue.get(value.id);
    const rest = [[value.dtype, value.label].filter(Boolean).join(" ") || "type and shape unknown"];
    if (run && app.runs.results.value?.version !== store.version) rest.push("before the last edit:");
    if (run) rest.push(`min ${formatNumber(run.min)} · mean ${formatNumber(run.mean)} · max ${formatNumber(run.max)}`);
    if (run && run.nan + run.inf > 0)
      rest.push(`${count(run.nan)} NaN, ${count(run.inf)} infinite of ${count(run.count)}`);
    // dashed lines are captures
    if (store.uses(value.id).some(({ node: reader }) => store.nodes.get(reader)?.scope !== value.scope))
      rest.push("read inside a subgraph");
    return { title: value.name, rest, value: value.id };
  }
  if (node) {
    const outputs = node.outputs.flatMap((id) => store.values.get(id)?.label || []);
    const problem = store.diagnostics.find((diagnostic) => diagnostic.node === node.id);
    return {
      title: shortOp(node.op),
      rest: [nodeName(store, node.id), heatLine(app, node.id), outputs.join(", "), problem?.message ?? ""].filter(
        Boolean,
      ),
      value: node.outputs.find((id) => id > 0) ?? 0,
    };
  }
  if (!group) return null;
  const drawn = app.picture?.repeatOf(group.id);
  const rest = [
    plural(groupMembers(store, group.id).length, "node"),
    drawn && !drawn.all ? `stands for ${drawn.likes.length} alike` : "",
  ];
  return { title: group.name, rest: rest.filter(Boolean), value: 0 };
}
