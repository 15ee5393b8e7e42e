/** Keys of the picture itself; those of the whole widget are in ../keyboard.ts. */

import type { Direction } from "./walk.ts";

/** The actions of keys on a view. */
export interface KeyboardTarget {
  walk(direction: Direction, add: boolean): void;
  walkOrder(by: 1 | -1): boolean;
  enterFocused(all: boolean): boolean;
  zoom(factor: number): void;
  pan(dx: number, dy: number): void;
  /** The menu of what the focus is on. */
  menuAtFocus(): void;
}

const ARROWS: Record<string, Direction> = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };
const ZOOM_STEP = 1.25,
  PAGE = 400;

/** Handles a key; true when it was one of the picture's. */
export function handleCanvasKey(view: KeyboardTarget, event: KeyboardEvent): boolean {
  const { key } = event;
  const arrow = ARROWS[key];
  if (event.ctrlKey || event.metaKey || (arrow && event.altKey)) return false;
  if (arrow) view.walk(arrow, event.shiftKey);
  else if (key === "Tab") return view.walkOrder(event.shiftKey ? -1 : 1);
  else if (key === "Enter") return view.enterFocused(event.altKey);
  else if (key === "+" || key === "=") view.zoom(ZOOM_STEP);
  else if (key === "-") view.zoom(1 / ZOOM_STEP);
  else if (key === "ContextMenu" || (key === "F10" && event.shiftKey)) view.menuAtFocus();
  else if (key === "PageDown") view.pan(0, -PAGE);
  else if (key === "PageUp") view.pan(0, PAGE);
  else return false;
  return true;
}
