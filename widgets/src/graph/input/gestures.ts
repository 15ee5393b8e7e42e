/** Pointer and wheel on the picture, as calls on what handles them. Knows nothing of graphs. */

export interface GestureHandler {
  /** Whether the keyboard is with the picture: only then does it take the wheel. */
  hasFocus(): boolean;
  takeFocus(): void;
  pan(dx: number, dy: number): void;
  zoom(factor: number, x: number, y: number): void;
  hover(x: number, y: number): void;
  leave(): void;
  click(x: number, y: number, add: boolean): void;
  /** A double click; `all`: with Alt. */
  doubleClick(x: number, y: number, all: boolean): void;
  menu(x: number, y: number): void;
  /** A rectangle drawn with Shift, corner to corner; `done` on the last call. */
  lasso(x1: number, y1: number, x2: number, y2: number, done: boolean): void;
  panning(active: boolean): void;
  /** Space is held: the next drag pans, whatever it begins on. */
  holding(active: boolean): void;
  /** Space was tapped. */
  fit(): void;
  /** Whether a press here takes hold of a wire, which then follows the pointer by `wire`; `done` on the last call. */
  grabs(x: number, y: number): boolean;
  wire(x: number, y: number, done: boolean): void;
}

/** Pixels that a press may move and still be a click. */
const SLACK = 4;
const LINE_HEIGHT = 16;
const DOUBLE_MS = 350;

type Mode = "idle" | "press" | "pan" | "lasso" | "pinch" | "wire";

export class Gestures {
  readonly #element: HTMLElement;
  readonly #handler: GestureHandler;
  readonly #abort = new AbortController();
  readonly #pointers = new Map<number, { x: number; y: number }>();
  #mode: Mode = "idle";
  #start = { x: 0, y: 0 };
  #shift = false;
  /** Space is down; whether a drag has used it. */
  #space: "up" | "down" | "used" = "up";
  #lastClick = { time: -Infinity, x: 0, y: 0 };

  constructor(element: HTMLElement, handler: GestureHandler) {
    this.#element = element;
    this.#handler = handler;
    const { signal } = this.#abort;
    element.addEventListener("pointerdown", (event) => this.#down(event), { signal });
    element.addEventListener("pointermove", (event) => this.#move(event), { signal });
    element.addEventListener("pointerup", (event) => this.#up(event), { signal });
    element.addEventListener("pointercancel", (event) => this.#cancel(event), { signal });
    element.addEventListener("pointerleave", () => this.#handler.leave(), { signal });
    element.addEventListener("wheel", (event) => this.#wheel(event), { signal, passive: false });
    element.addEventListener("contextmenu", (event) => this.#menu(event), { signal });
    element.addEventListener("keydown", (event) => this.#hold(event), { signal });
    element.addEventListener("keyup", (event) => this.#release(event), { signal });
    element.addEventListener("focusout", () => this.#letGo(), { signal });
  }

  destroy(): void {
    this.#abort.abort();
    this.#pointers.clear();
  }

  #at(event: MouseEvent): { x: number; y: number } {
    const rect = this.#element.getBoundingClientRect();
    return { x: event.clientX - rect.left, y: event.clientY - rect.top };
  }

  #down(event: PointerEvent): void {
    if (event.button === 2) return;
    this.#handler.takeFocus();
    // The default would move the focus elsewhere or start a text selection.
    event.preventDefault();
    const at = this.#at(event);
    this.#pointers.set(event.pointerId, at);
    try {
      this.#element.setPointerCapture(event.pointerId);
    } catch {
      // A pointer that is gone already, as synthetic ones are, cannot be captured; its moves still arrive here.
    }
    if (this.#pointers.size === 2) {
      this.#mode = "pinch";
      return;
    }
    const held = this.#space !== "up";
    if (held) this.#space = "used";
    this.#mode = event.button === 1 || held ? "pan" : "press";
    this.#shift = event.shiftKey;
    this.#start = at;
    if (this.#mode === "pan") this.#handler.panning(true);
  }

  #move(event: PointerEvent): void {
    const at = this.#at(event);
    const before = this.#pointers.get(event.pointerId);
    if (!before) {
      this.#handler.hover(at.x, at.y);
      return;
    }
    if (this.#mode === "pinch") {
      this.#pinch(event.pointerId, before, at);
      return;
    }
    if (this.#mode === "press" && Math.hypot(at.x - this.#start.x, at.y - this.#start.y) > SLACK) {
      this.#mode = this.#shift ? "lasso" : this.#handler.grabs(this.#start.x, this.#start.y) ? "wire" : "pan";
      if (this.#mode === "pan") {
        this.#handler.panning(true);
        this.#handler.pan(before.x - this.#start.x, before.y - this.#start.y);
      }
    }
    if (this.#mode === "pan") this.#handler.pan(at.x - before.x, at.y - before.y);
    if (this.#mode === "lasso") this.#handler.lasso(this.#start.x, this.#start.y, at.x, at.y, false);
    if (this.#mode === "wire") this.#handler.wire(at.x, at.y, false);
    this.#pointers.set(event.pointerId, at);
  }

  #pinch(id: number, before: { x: number; y: number }, at: { x: number; y: number }): void {
    const other = [...this.#pointers].find(([pointer]) => pointer !== id)?.[1];
    this.#pointers.set(id, at);
    if (!other) return;
    const was = Math.hypot(before.x - other.x, before.y - other.y),
      now = Math.hypot(at.x - other.x, at.y - other.y);
    this.#handler.pan((at.x - before.x) / 2, (at.y - before.y) / 2);
    if (was > 1 && now > 1) this.#handler.zoom(now / was, (at.x + other.x) / 2, (at.y + other.y) / 2);
  }

  #up(event: PointerEvent): void {
    if (!this.#pointers.delete(event.pointerId)) return;
    const at = this.#at(event);
    const mode = this.#mode;
    if (mode === "pinch" && this.#pointers.size) return;
    this.#mode = "idle";
    if (mode === "pan") this.#handler.panning(false);
    if (mode === "lasso") this.#handler.lasso(this.#start.x, this.#start.y, at.x, at.y, true);
    if (mode === "wire") this.#handler.wire(at.x, at.y, true);
    if (mode === "press") this.#click(event, at);
  }

  /** Space taps to fit and holds to pan. */
  #hold(event: KeyboardEvent): void {
    if (event.key !== " " || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (this.#space !== "up") return;
    this.#space = "down";
    this.#handler.holding(true);
  }

  #release(event: KeyboardEvent): void {
    if (event.key !== " ") return;
    const tapped = this.#space === "down";
    this.#letGo();
    if (tapped) this.#handler.fit();
  }

  #letGo(): void {
    if (this.#space === "up") return;
    this.#space = "up";
    this.#handler.holding(false);
  }

  /** Makes a double click of two clicks in one place: the first one has done its work already. */
  #click(event: PointerEvent, { x, y }: { x: number; y: number }): void {
    const last = this.#lastClick;
    const again = event.timeStamp - last.time < DOUBLE_MS && Math.hypot(x - last.x, y - last.y) <= SLACK;
    this.#lastClick = again ? { time: -Infinity, x, y } : { time: event.timeStamp, x, y };
    if (again) this.#handler.doubleClick(x, y, event.altKey);
    else this.#handler.click(x, y, event.ctrlKey || event.metaKey || event.shiftKey);
  }

  #cancel(event: PointerEvent): void {
    this.#pointers.delete(event.pointerId);
    if (this.#mode === "pan") this.#handler.panning(false);
    if (this.#mode === "lasso") this.#handler.lasso(0, 0, 0, 0, true);
    if (this.#mode === "wire") this.#handler.wire(-1e9, -1e9, true);
    this.#mode = "idle";
  }

  #wheel(event: WheelEvent): void {
    const unit = event.deltaMode === 1 ? LINE_HEIGHT : event.deltaMode === 2 ? this.#element.clientHeight : 1;
    const dx = event.deltaX * unit,
      dy = event.deltaY * unit;
    const at = this.#at(event);
    if (event.ctrlKey || event.metaKey) {
      // A pinch on a touch pad sends small steps, a wheel's notch about 100.
      const step = Math.max(-60, Math.min(60, dy));
      this.#handler.zoom(Math.exp(-step * 0.006), at.x, at.y);
    } else if (this.#handler.hasFocus()) {
      if (event.shiftKey && dx === 0) this.#handler.pan(-dy, 0);
      else this.#handler.pan(-dx, -dy);
    } else return;
    event.preventDefault();
  }

  #menu(event: MouseEvent): void {
    event.preventDefault();
    const at = this.#at(event);
    this.#handler.takeFocus();
    this.#handler.menu(at.x, at.y);
  }
}
