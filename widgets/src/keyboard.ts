/** Keys of the widget. What it does not know stays inside all the same: Jupyter's shortcuts are for cells. */

import type { App } from "./app.ts";
import type { Target } from "./edit/commands/command.ts";
import { commandsFor } from "./edit/commands/command_registry.ts";
import { groupMembers } from "./panels/inspector/inspect_group.tsx";

/** True for a field in which keys write text. */
function isField(element: EventTarget | null): element is HTMLElement {
  return element instanceof Element && element.matches("input, textarea, select");
}

/** True for a field whose text differs from what the model holds: there Ctrl+Z undoes typing. */
function isBeingTyped(element: EventTarget | null): boolean {
  return isField(element) && element.dataset.clean === undefined && !element.matches("select");
}

/**
 * Handles a key pressed inside `root`; true when it was one of the widget's.
 *
 * Ctrl and Cmd are the same here. Canvas keys (arrows, Space, Tab, +, -) are the picture's own.
 */
export function handleKey(app: App, root: HTMLElement, event: KeyboardEvent): boolean {
  // Inside a shadow root the event's target is seen as the host; composedPath names the field.
  const target = event.composedPath()[0] ?? event.target;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if ((event.ctrlKey || event.metaKey) && !event.altKey) return handleControl(app, root, target, key, event.shiftKey);
  if (key === "F2") return rename(app);
  if (key === "F6") return nextPart(root, event.shiftKey ? -1 : 1);
  if (isField(target)) return key === "Escape" && leaveField(root, target);
  if (key === "Delete" || key === "Backspace") {
    void app.edits.remove(app.picked.nodes, !event.shiftKey);
    return true;
  }
  if (key === "Escape") return stepOut(app, root);
  // On an empty spot of a panel the browser would scroll the notebook.
  if (key === " " && target instanceof Element && !target.closest("button, a, summary, [data-testid=outline]"))
    return true;
  if (event.altKey) return handleTravel(app, key);
  return handleLook(app, key, event.shiftKey) || handleEdit(app, key);
}

/** Handles the keys that go back and forward. */
function handleTravel(app: App, key: string): boolean {
  if (key !== "ArrowLeft" && key !== "ArrowRight") return false;
  app.travel.go(key === "ArrowLeft" ? -1 : 1);
  return true;
}

/**
 * Bookmark, Next bookmark, Map, constants with K, ways: [ what a node depends on, ] what depends on it, Paths between
 * two.
 */
function handleLook(app: App, key: string, shift: boolean): boolean {
  const selection = app.picked.nodes;
  if (key === "b" && selection.length) app.travel.toggleBookmarks(selection);
  else if (key === "n") app.travel.nextBookmark(shift ? -1 : 1);
  else if (key === "?") app.keysOpen.value = !app.keysOpen.value;
  else if (key === "o") app.outlineOpen.value = !app.outlineOpen.value;
  else if (key === "m") app.picture?.toggleMinimap();
  else if (key === "k" && app.picture) app.picture.constants = !app.picture.constants;
  else if (key === "[" && selection.length) app.travel.light(selection, "ancestors");
  else if (key === "]" && selection.length) app.travel.light(selection, "descendants");
  else if (key === "p" && selection.length > 1) app.travel.lightPaths(selection);
  else return false;
  return true;
}

/**
 * Letters for edits: Add, Connect, all Edits, Insert behind, its Likes in copies, Replace; V goes through its Values.
 */
function handleEdit(app: App, key: string): boolean {
  const subject = app.picked.subject.value,
    [node = 0] = app.picked.nodes;
  const value =
    subject.kind === "value" ? subject.value : (app.store.nodes.get(node)?.outputs.find((id) => id > 0) ?? 0);
  const target = { nodes: app.picked.nodes, value: subject.kind === "value" ? subject.value : 0 };
  if (key === "a") app.palette.addNode(value ? [value] : []);
  else if (key === "e" && app.client.editable) app.dialogs.list.value = target;
  else if (key === "i" && value) app.palette.insertAfter(value);
  else if (key === "r" && node) app.palette.replace(app.picked.nodes);
  else if (key === "c" && node) app.dialogs.connect(node);
  else if (key === "c" && value) runCommand(app, "redirect", target);
  else if (key === "v" && (node || value)) nextValue(app, node, target.value);
  else if (key === "l" && node) void app.picked.selectCopies(app.picked.nodes);
  else return false;
  return true;
}

/** The values of a node in turn, outputs first: what a click on a line does. */
function nextValue(app: App, node: number, value: number): void {
  const home = node || (app.store.producer(value) ?? app.store.uses(value)[0])?.node || 0;
  const record = app.store.nodes.get(home);
  const values = [...new Set([...(record?.outputs ?? []), ...(record?.inputs ?? [])])].filter((id) => id > 0);
  const next = values[(values.indexOf(value) + 1) % values.length];
  if (next) app.picked.selectValue(next);
}

const PARTS = ['[data-testid="outline"]', ".ol-tree", ".ol-inspector", ".ol-drawer", ".ol-toolbar"];
const FOCUSABLE = 'button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea, [tabindex="0"]';

/** Moves the focus between picture, inspector, drawer and bar: the picture itself keeps Tab for walking. */
function nextPart(root: HTMLElement, by: 1 | -1): boolean {
  const parts = PARTS.map((part) => root.querySelector<HTMLElement>(part)).filter((part) => part !== null);
  const at = parts.findIndex((part) => part.matches(":focus-within"));
  for (let step = 1; step <= parts.length; step++) {
    const part = parts[(Math.max(0, at) + by * step + parts.length * step) % parts.length]!;
    const first = part.matches(FOCUSABLE) ? part : part.querySelector<HTMLElement>(FOCUSABLE);
    if (!first) continue;
    first.focus({ preventScroll: true });
    return true;
  }
  return false;
}

function runCommand(app: App, id: string, target: Target): void {
  commandsFor(app, target)
    .find((command) => command.id === id)
    ?.act(app, target);
}

function handleControl(app: App, root: HTMLElement, target: EventTarget | null, key: string, shift: boolean): boolean {
  if (key === "f") return focusSearch(root);
  if (key === "p" && shift) return openCommands(app);
  if (key === "s") {
    void app.edits.save();
    return true;
  }
  if (isBeingTyped(target)) return false;
  if (key === "z") {
    if (shift) app.edits.redo();
    else app.edits.undo();
    return true;
  }
  if (key === "y") {
    app.edits.redo();
    return true;
  }
  if (key === "g" && app.picked.nodes.length) {
    app.dialogs.group(app.picked.nodes);
    return true;
  }
  if (key === "d") {
    if (app.picked.nodes.length) void app.edits.attempt("duplicate_nodes", "nodes", app.picked.nodes, {});
    return true;
  }
  if (key === "c" && !isField(target) && !hasTextSelection(root)) {
    void app.picked.copyNames();
    return true;
  }
  return false;
}

/** Opens the list of all commands for the selection and the view. */
function openCommands(app: App): boolean {
  const subject = app.picked.subject.value;
  app.dialogs.list.value = { nodes: app.picked.nodes, value: subject.kind === "value" ? subject.value : 0 };
  return true;
}

function hasTextSelection(root: HTMLElement): boolean {
  const selection = root.ownerDocument.getSelection();
  return selection !== null && !selection.isCollapsed && root.contains(selection.anchorNode);
}

function focusSearch(root: HTMLElement): boolean {
  const input = root.querySelector<HTMLInputElement>('[data-testid="search-input"]');
  input?.focus();
  input?.select();
  return true;
}

function rename(app: App): boolean {
  const subject = app.picked.subject.value;
  if (subject.kind === "group") {
    app.dialogs.group(groupMembers(app.store, subject.group), app.store.groups.get(subject.group)?.name);
    return true;
  }
  if (subject.kind !== "value" && app.picked.nodes.length !== 1) return false;
  app.inspectorOpen.value = true;
  app.edits.renaming.value = true;
  return true;
}

function leaveField(root: HTMLElement, field: HTMLElement): boolean {
  field.blur();
  (root.querySelector<HTMLElement>('[data-testid="outline"]') ?? root).focus({ preventScroll: true });
  return true;
}

/**
 * Leaves one layer at a time: what is open, the selection, then the widget, which hands the keyboard back to the
 * notebook.
 */
function stepOut(app: App, root: HTMLElement): boolean {
  if (app.numbers.asking.value) app.numbers.asking.value = false;
  else if (app.travel.trail.value) app.travel.unlight();
  else if (app.drawer.value) app.drawer.value = null;
  else if (!["model", "group"].includes(app.picked.subject.value.kind)) app.picked.select([]);
  else if (app.picture?.back()) return true;
  else if (app.picked.subject.value.kind === "group") app.picked.select([]);
  else release(root);
  return true;
}

/** Focus goes to the notebook cell around the widget, where there is one. */
function release(root: HTMLElement): void {
  // In a shadow root the document knows the focus only as its host.
  (root.matches(":focus") ? root : root.querySelector<HTMLElement>(":focus"))?.blur();
  root.closest<HTMLElement>(".jp-Cell, .cell")?.focus({ preventScroll: true });
}
