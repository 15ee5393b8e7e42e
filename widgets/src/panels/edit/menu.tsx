/** The context menu over a node, a value or a group. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import type { Command, Target } from "../../edit/commands/command.ts";
import { commandsFor } from "../../edit/commands/command_registry.ts";
import { CUTS_OF_NODES } from "../../edit/commands/cut_commands.ts";
import { calledFunction, plural } from "../../model/names.ts";
import { useCell } from "../../state.ts";
import type { PointerTarget } from "../../view_contract.ts";
import { groupMembers } from "../inspector/inspect_group.tsx";
import { focusPicture } from "./form.tsx";

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
  const close = () => {
    app.menu.value = null;
  };
  const leave = () => {
    focusPicture(menu.current);
    close();
  };

  useLayoutEffect(() => {
    const element = menu.current,
      around = element?.parentElement;
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
    if (event.key === "Escape" || event.key === "Tab") leave();
    else if (event.key in STEPS) moveFocus(menu.current, STEPS[event.key]!);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      class="ol-popup ol-menu"
      role="menu"
      ref={menu}
      data-testid="context-menu"
      onKeyDown={onKeyDown}
      style={{ left: `${place.x}px`, top: `${place.y}px` }}
      onContextMenu={(event) => event.preventDefault()}
    >
      {groups.map((items, i) => (
        <div class="ol-menu-group" role="group" key={i}>
          {items.map((item) => (
            <button
              key={item.testid}
              type="button"
              role="menuitem"
              class="ol-menu-item"
              disabled={item.disabled}
              data-testid={item.testid}
              onClick={() => {
                leave();
                item.act();
              }}
            >
              <span>{item.label}</span>
              {item.keys && <kbd>{item.keys}</kbd>}
            </button>
          ))}
        </div>
      ))}
    </div>
  );
}

type Step = 1 | -1 | "first" | "last";
const STEPS: Record<string, Step> = { ArrowDown: 1, ArrowUp: -1, Home: "first", End: "last" };

function moveFocus(menu: HTMLElement | null, step: Step): void {
  const buttons = [...(menu?.querySelectorAll<HTMLElement>("button:not(:disabled)") ?? [])];
  const at = buttons.findIndex((button) => button.matches(":focus"));
  const to =
    step === "first" ? 0 : step === "last" ? buttons.length - 1 : (at + step + buttons.length) % buttons.length;
  buttons[to]?.focus();
}

/** Groups of items; a click on one of several selected nodes is about all of them. */
function itemsFor(app: App, target: PointerTarget): Item[][] {
  const nodes = target.node ? (app.picked.nodes.includes(target.node) ? app.picked.nodes : [target.node]) : [];
  const about: Target = { nodes, value: target.node ? 0 : target.value };
  const [edits, ofModel] = editItems(app, about);
  const look = nodes.length
    ? nodeItems(app, nodes)
    : about.value
      ? valueItems(app, about.value)
      : target.group
        ? groupItems(app, target.group)
        : [];
  const anything = nodes.length > 0 || about.value > 0;
  const all: Item = {
    label: "All edits…",
    keys: "E",
    testid: "menu-all",
    disabled: !app.client.editable,
    act: () => {
      app.dialogs.list.value = about;
    },
  };
  return [look, anything ? [...edits, all] : [...ofModel, all], anything ? [] : viewItems(app)].filter(
    (items) => items.length > 0,
  );
}

/** Edits of the target, and those of the model. */
function editItems(app: App, target: Target): [Item[], Item[]] {
  const item = (command: Command): Item => ({
    label: command.title,
    keys: command.keys,
    testid: `menu-${command.id}`,
    disabled: !app.client.editable,
    act: () => command.act(app, target),
  });
  const commands = commandsFor(app, target).filter(({ menu }) => menu);
  return [commands.filter(({ on }) => on !== "model").map(item), commands.filter(({ on }) => on === "model").map(item)];
}

/** The items that are no edit: running, looking around. */
function nodeItems(app: App, nodes: number[]): Item[] {
  const called = nodes.length === 1 ? calledFunction(app.store, nodes[0]!) : 0;
  const bodies = [...app.store.scopes.values()].filter(
    (scope) => nodes.length === 1 && (scope.owner === nodes[0] || scope.id === called),
  );
  const group = app.store.nodes.get(nodes[0]!)?.group ?? 0;
  return [
    {
      label: nodes.length > 1 ? `Run ${plural(nodes.length, "node")}` : "Run",
      testid: "menu-run",
      disabled: !app.client.editable || app.client.can.run === false,
      act: () => void app.runs.run(nodes),
    },
    ...bodies.map((scope) => ({
      label: `Enter ${scope.attribute || scope.name}`,
      testid: `menu-enter-${scope.attribute}`,
      act: () => app.picture?.openScope(scope.id),
    })),
    { label: "Select producers", testid: "menu-producers", act: () => app.picked.selectNeighbors(nodes, "producers") },
    { label: "Select consumers", testid: "menu-consumers", act: () => app.picked.selectNeighbors(nodes, "consumers") },
    {
      label: "Light what it depends on",
      keys: "[",
      testid: "menu-ancestors",
      act: () => app.travel.light(nodes, "ancestors"),
    },
    {
      label: "Light what depends on it",
      keys: "]",
      testid: "menu-descendants",
      act: () => app.travel.light(nodes, "descendants"),
    },
    ...(nodes.length > 1
      ? [
          {
            label: "Light the ways between first and last",
            keys: "P",
            testid: "menu-paths",
            act: () => app.travel.lightPaths(nodes),
          },
        ]
      : []),
    { label: "Bookmark", keys: "B", testid: "menu-bookmark", act: () => app.travel.toggleBookmarks(nodes) },
    {
      label: nodes.length > 1 ? "Copy names" : "Copy name",
      keys: "Ctrl+C",
      testid: "menu-copy",
      act: () => void app.picked.copyNames(nodes),
    },
    ...(group ? [{ label: "Fold its group", testid: "menu-fold", act: () => app.picture?.fold(group) }] : []),
  ];
}

function valueItems(app: App, value: number): Item[] {
  const producer = app.store.producer(value);
  const uses = [...new Set(app.store.uses(value).map((use) => use.node))];
  const copy = () => {
    app.picked.selectValue(value);
    void app.picked.copyNames([]);
  };
  return [
    {
      label: "Show the producer",
      testid: "menu-producers",
      disabled: !producer,
      act: () => producer && app.picked.reveal(producer.node),
    },
    {
      label: uses.length > 1 ? `Select ${uses.length} consumers` : "Show the consumer",
      testid: "menu-consumers",
      disabled: uses.length === 0,
      act: () => (uses.length === 1 ? app.picked.reveal(uses[0]!) : app.picked.select(uses)),
    },
    {
      label: app.numbers.known(value) ? "Look at its numbers" : "Run and look at its numbers",
      testid: "menu-large",
      disabled: !app.client.can.run,
      act: () => void app.numbers.lookAtLarge(value),
    },
    { label: "Copy name", keys: "Ctrl+C", testid: "menu-copy", act: copy },
  ];
}

function groupItems(app: App, group: number): Item[] {
  const repeat = app.picture?.repeatOf(group);
  const turn: Item | null = repeat
    ? {
        label: repeat.all ? "Show one for all" : `Show all ${repeat.likes.length}`,
        testid: "menu-repeat-all",
        act: () => app.picture?.showAll(group, !repeat.all),
      }
    : null;
  return [
    { label: "Unfold", testid: "menu-unfold", act: () => app.picture?.unfold(group) },
    { label: "Fold", testid: "menu-fold", act: () => app.picture?.fold(group) },
    ...(turn ? [turn] : []),
    {
      label: "Rename…",
      keys: "F2",
      testid: "menu-group-rename",
      disabled: !app.client.editable,
      act: () => app.dialogs.group(groupMembers(app.store, group), app.store.groups.get(group)?.name),
    },
    {
      label: "Dissolve",
      testid: "menu-ungroup",
      disabled: !app.client.editable,
      act: () => void app.edits.attempt("ungroup_nodes", "nodes", groupMembers(app.store, group), {}),
    },
    ...cutItems(app, groupMembers(app.store, group)),
  ];
}

/** Cuts of the model at a group. */
function cutItems(app: App, nodes: number[]): Item[] {
  const target = { nodes, value: 0 };
  return CUTS_OF_NODES.filter(({ fits }) => fits?.(app, target)).map(({ id, title, act }) => ({
    label: title,
    testid: `menu-${id}`,
    disabled: !app.client.editable,
    act: () => act(app, target),
  }));
}

function viewItems(app: App): Item[] {
  return [
    { label: "Fit to view", keys: "Space", testid: "menu-fit", act: () => app.picture?.fit() },
    { label: "Unfold all groups", testid: "menu-unfold-all", act: () => app.picture?.unfoldAll() },
    { label: "Fold all groups", testid: "menu-fold-all", act: () => app.picture?.foldAll() },
    {
      label: app.picture?.constants ? "Hide nodes that make constants" : "Show nodes that make constants",
      keys: "K",
      testid: "menu-constants",
      act: () => {
        if (app.picture) app.picture.constants = !app.picture.constants;
      },
    },
    { label: "Show or hide the small map", keys: "M", testid: "menu-map", act: () => app.picture?.toggleMinimap() },
    {
      label: "Keys…",
      keys: "?",
      testid: "menu-keys",
      act: () => {
        app.keysOpen.value = true;
      },
    },
  ];
}
