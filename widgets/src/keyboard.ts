/** Keys of the widget. What it does not know stays inside all the same: Jupyter's shortcuts are for cells. */

import type { App } from "./app.ts";

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
  if (isField(target)) return key === "Escape" && leaveField(root, target);
  if (key === "Delete" || key === "Backspace") {
    void app.remove(app.selection, !event.shiftKey);
    return true;
  }
  if (key === "Escape") return escape(app, root);
  return event.altKey ? false : handleEdit(app, key);
}

/** Letters that ask for an operator: Add, Insert behind, Replace. */
function handleEdit(app: App, key: string): boolean {
  const subject = app.subject.value, [node = 0] = app.selection;
  const value = subject.kind === "value" ? subject.value : (app.store.nodes.get(node)?.outputs.find((id) => id > 0) ?? 0);
  if (key === "a") app.editing.addNode(value ? [value] : []);
  else if (key === "i" && value) app.editing.insertAfter(value);
  else if (key === "r" && app.selection.length === 1) app.editing.replace(node);
  else return false;
  return true;
}

function handleControl(app: App, root: HTMLElement, target: EventTarget | null, key: string, shift: boolean): boolean {
  if (key === "f") return focusSearch(root);
  if (key === "s") {
    void app.save();
    return true;
  }
  if (isBeingTyped(target)) return false;
  if (key === "z") {
    if (shift) app.redo();
    else app.undo();
    return true;
  }
  if (key === "y") {
    app.redo();
    return true;
  }
  if (key === "d") {
    if (app.selection.length) void app.editing.gesture("duplicate", app.selection);
    return true;
  }
  if (key === "c" && !isField(target) && !hasTextSelection(root)) {
    void app.copyNames();
    return true;
  }
  return false;
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
  const subject = app.subject.value;
  if (subject.kind !== "value" && app.selection.length !== 1) return false;
  app.inspectorOpen.value = true;
  app.renaming.value = true;
  return true;
}

function leaveField(root: HTMLElement, field: HTMLElement): boolean {
  field.blur();
  (root.querySelector<HTMLElement>('[data-testid="outline"]') ?? root).focus({ preventScroll: true });
  return true;
}

/** One layer at a time: the selection, then the widget itself, which hands the keyboard back to the notebook. */
function escape(app: App, root: HTMLElement): boolean {
  if (app.drawer.value) app.drawer.value = null;
  else if (app.subject.value.kind !== "model") app.select([]);
  else release(root);
  return true;
}

/** Focus goes to the notebook cell around the widget, where there is one. */
function release(root: HTMLElement): void {
  const active = root.ownerDocument.activeElement;
  if (active instanceof HTMLElement) active.blur();
  root.closest<HTMLElement>(".jp-Cell, .cell")?.focus({ preventScroll: true });
}
