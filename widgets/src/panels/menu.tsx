/** The context menu over a node, a value or a group. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { App } from "../app.ts";
import { calledFunction, plural } from "../names.ts";
import { GRAPH_INPUT, GRAPH_OUTPUT, INITIALIZER } from "../protocol.ts";
import { useCell } from "../state.ts";
import type { PointerTarget } from "../view_contract.ts";

interface Item {
  label: string;
  keys?: string;
  testid: string;
  disabled?: boolean;
  act: () => void;
}

export function Menu({ app }: { app: App }) {
  const target = useCell(app.menu);
  return target ? <OpenMenu app={app} target={target} /> : null;
}

function OpenMenu({ app, target }: { app: App; target: PointerTarget }) {
  const menu = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ x: target.x, y: target.y });
  const groups = itemsFor(app, target);
  const close = () => { app.menu.value = null; };

  useLayoutEffect(() => {
    const element = menu.current, around = element?.parentElement;
    if (!element || !around) return;
    setPlace({
      x: Math.max(0, Math.min(target.x, around.clientWidth - element.offsetWidth - 4)),
      y: Math.max(0, Math.min(target.y, around.clientHeight - element.offsetHeight - 4)),
    });
    element.querySelector<HTMLElement>("button:not(:disabled)")?.focus();
  }, [target]);
  useEffect(() => {
    const away = (event: PointerEvent) => {
      // Inside a shadow root the event's target is the host; the path still names the menu.
      if (menu.current && !event.composedPath().includes(menu.current)) close();
    };
    document.addEventListener("pointerdown", away, true);
    return () => document.removeEventListener("pointerdown", away, true);
  }, []);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape" || event.key === "Tab") close();
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") moveFocus(menu.current, event.key === "ArrowDown" ? 1 : -1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      class="ol-popup ol-menu" role="menu" ref={menu} data-testid="context-menu" onKeyDown={onKeyDown}
      style={{ left: `${place.x}px`, top: `${place.y}px` }}
      onContextMenu={(event) => event.preventDefault()}
    >
      {groups.map((items, i) => (
        <div class="ol-menu-group" role="group" key={i}>
          {items.map((item) => (
            <button
              key={item.testid} type="button" role="menuitem" class="ol-menu-item" disabled={item.disabled} data-testid={item.testid}
              onClick={() => {
                close();
                item.act();
              }}
            >
              <span>{item.label}</span>{item.keys && <kbd>{item.keys}</kbd>}
            </button>
          ))}
        </div>
      ))}
    </div>
  );
}

function moveFocus(menu: HTMLElement | null, by: number): void {
  const buttons = [...(menu?.querySelectorAll<HTMLElement>("button:not(:disabled)") ?? [])];
  const at = buttons.findIndex((button) => button === menu?.ownerDocument.activeElement || button.matches(":focus"));
  buttons[(at + by + buttons.length) % buttons.length]?.focus();
}

/** Groups of items; a click on one of several selected nodes is about all of them. */
function itemsFor(app: App, target: PointerTarget): Item[][] {
  if (target.node) return nodeItems(app, app.selection.includes(target.node) ? app.selection : [target.node]);
  if (target.value) return valueItems(app, target.value);
  if (target.group) return groupItems(app, target.group);
  return [viewItems(app)];
}

function nodeItems(app: App, nodes: number[]): Item[][] {
  const fixed = !app.client.editable;
  const what = nodes.length > 1 ? ` ${plural(nodes.length, "node")}` : "";
  const called = nodes.length === 1 ? calledFunction(app.store, nodes[0]!) : 0;
  const bodies = [...app.store.scopes.values()].filter(
    (scope) => nodes.length === 1 && (scope.owner === nodes[0] || scope.id === called),
  );
  const group = app.store.nodes.get(nodes[0]!)?.group ?? 0;
  const rename = () => {
    app.reveal(nodes[0]!);
    app.inspectorOpen.value = true;
    app.renaming.value = true;
  };
  return [
    [
      { label: `Run${what}`, testid: "menu-run", disabled: fixed || app.client.can.run === false, act: () => void app.run(nodes) },
      ...bodies.map((scope) => ({
        label: `Enter ${scope.attribute || scope.name}`, testid: `menu-enter-${scope.attribute}`,
        act: () => app.picture?.openScope(scope.id),
      })),
    ],
    [
      { label: "Rename", keys: "F2", testid: "menu-rename", disabled: fixed || nodes.length > 1, act: rename },
      { label: `Duplicate${what}`, keys: "Ctrl+D", testid: "menu-duplicate", disabled: fixed, act: () => void app.editing.gesture("duplicate", nodes) },
      ...(nodes.length === 1 ? [
        { label: "Replace the operator…", keys: "R", testid: "menu-replace", disabled: fixed, act: () => app.editing.replace(nodes[0]!) },
        { label: "Insert a node behind…", keys: "I", testid: "menu-insert", disabled: fixed || !outputOf(app, nodes[0]!), act: () => app.editing.insertAfter(outputOf(app, nodes[0]!)) },
      ] : []),
      { label: `Delete${what}, joining around`, keys: "Del", testid: "menu-delete-bypass", disabled: fixed, act: () => void app.remove(nodes, true) },
      { label: `Delete${what}`, keys: "⇧ Del", testid: "menu-delete", disabled: fixed, act: () => void app.remove(nodes, false) },
    ],
    [
      { label: "Select producers", testid: "menu-producers", act: () => app.selectNeighbours(nodes, "producers") },
      { label: "Select consumers", testid: "menu-consumers", act: () => app.selectNeighbours(nodes, "consumers") },
      { label: nodes.length > 1 ? "Copy names" : "Copy name", keys: "Ctrl+C", testid: "menu-copy", act: () => void app.copyNames(nodes) },
    ],
    group ? [{ label: "Fold its group", testid: "menu-fold", act: () => app.picture?.fold(group) }] : [],
  ].filter((items) => items.length > 0);
}

function valueItems(app: App, value: number): Item[][] {
  const fixed = !app.client.editable;
  const producer = app.store.producer(value);
  const uses = [...new Set(app.store.uses(value).map((use) => use.node))];
  const rename = () => {
    app.selectValue(value);
    app.inspectorOpen.value = true;
    app.renaming.value = true;
  };
  const copy = () => {
    app.selectValue(value);
    void app.copyNames([]);
  };
  return [
    [
      { label: "Rename", keys: "F2", testid: "menu-rename", disabled: fixed, act: rename },
      { label: "Insert a node here…", keys: "I", testid: "menu-insert", disabled: fixed, act: () => app.editing.insertAfter(value) },
      { label: "Add a node that reads this…", keys: "A", testid: "menu-add", disabled: fixed, act: () => app.editing.addNode([value]) },
    ],
    roleItems(app, value),
    [
      { label: "Show the producer", testid: "menu-producers", disabled: !producer, act: () => producer && app.reveal(producer.node) },
      {
        label: uses.length > 1 ? `Select ${uses.length} consumers` : "Show the consumer", testid: "menu-consumers",
        disabled: uses.length === 0, act: () => (uses.length === 1 ? app.reveal(uses[0]!) : app.select(uses)),
      },
      { label: "Copy name", keys: "Ctrl+C", testid: "menu-copy", act: copy },
    ],
  ];
}

/** Whether a value is an input, an output or stored: only what it may become. */
function roleItems(app: App, value: number): Item[] {
  const flags = app.store.values.get(value)?.flags ?? 0, disabled = !app.client.editable;
  const become = (label: string, gesture: string): Item => ({
    label, testid: `menu-${gesture}`, disabled, act: () => void app.editing.gesture(gesture, [value]),
  });
  const items = [flags & GRAPH_OUTPUT ? become("No output any more", "remove_output") : become("Make it an output", "add_output")];
  if (flags & INITIALIZER) items.push(become("Make it an input", "to_input"), become("Make it a Constant", "to_constant"));
  else if (flags & GRAPH_INPUT) items.push(become("Store its default", "to_initializer"));
  return items;
}

function outputOf(app: App, node: number): number {
  return app.store.nodes.get(node)?.outputs.find((value) => value > 0) ?? 0;
}

function groupItems(app: App, group: number): Item[][] {
  return [
    [
      { label: "Unfold", testid: "menu-unfold", act: () => app.picture?.unfold(group) },
      { label: "Fold", testid: "menu-fold", act: () => app.picture?.fold(group) },
    ],
    viewItems(app),
  ];
}

function viewItems(app: App): Item[] {
  return [
    { label: "Add a node…", keys: "A", testid: "menu-add", disabled: !app.client.editable, act: () => app.editing.addNode() },
    { label: "Fit to view", keys: "Space", testid: "menu-fit", act: () => app.picture?.fit() },
    { label: "Fold all groups", testid: "menu-fold-all", act: () => app.picture?.foldAll() },
  ];
}
