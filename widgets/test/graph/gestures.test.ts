import assert from "node:assert/strict";
import { test } from "node:test";
import { type GestureHandler, Gestures } from "../../src/graph/input/gestures.ts";
import { handleCanvasKey, type KeyboardTarget } from "../../src/graph/input/keyboard.ts";

/** An element that counts its listeners; the page's offset is (10, 20). */
class FakeElement extends EventTarget {
  listeners = 0;
  clientHeight = 400;

  getBoundingClientRect() {
    return { left: 10, top: 20 };
  }

  setPointerCapture() {
    throw new Error("synthetic pointers cannot be captured");
  }

  override addEventListener(type: string, listener: EventListener, options: { signal: AbortSignal }) {
    this.listeners++;
    options.signal.addEventListener("abort", () => this.listeners--);
    super.addEventListener(type, listener, options);
  }
}

function setUp(focused = true) {
  const calls: unknown[][] = [];
  const note =
    (name: string) =>
    (...rest: unknown[]) =>
      void calls.push([name, ...rest]);
  const handler: GestureHandler = {
    hasFocus: () => focused,
    takeFocus: note("focus"),
    pan: note("pan"),
    zoom: note("zoom"),
    hover: note("hover"),
    leave: note("leave"),
    click: note("click"),
    doubleClick: note("double"),
    menu: note("menu"),
    lasso: note("lasso"),
    panning: note("panning"),
    grabs: (x) => x > 200,
    wire: note("wire"),
    holding: note("holding"),
    fit: note("fit"),
  };
  const element = new FakeElement();
  const gestures = new Gestures(element as unknown as HTMLElement, handler);
  const send = (type: string, x: number, y: number, more: object = {}): Event => {
    const event = new Event(type, { cancelable: true });
    const base = {
      clientX: x + 10,
      clientY: y + 20,
      pointerId: 1,
      button: 0,
      deltaX: 0,
      deltaY: 0,
      deltaMode: 0,
      timeStamp: 0,
      ctrlKey: false,
      metaKey: false,
      shiftKey: false,
      altKey: false,
    };
    for (const [key, value] of Object.entries({ ...base, ...more })) Object.defineProperty(event, key, { value });
    element.dispatchEvent(event);
    return event;
  };
  const named = (name: string): unknown[][] => calls.filter(([call]) => call === name);
  return { element, gestures, send, calls, named };
}

test("a press without a move is a click, a second one soon after a double click", () => {
  const { send, named } = setUp();
  for (const timeStamp of [0, 200, 900]) {
    send("pointerdown", 5, 6, { timeStamp });
    send("pointerup", 7, 6, { timeStamp, ctrlKey: timeStamp === 900, altKey: timeStamp === 200 });
  }
  assert.deepEqual(named("click"), [
    ["click", 7, 6, false],
    ["click", 7, 6, true],
  ]);
  assert.deepEqual(named("double"), [["double", 7, 6, true]]);
  assert.equal(named("focus").length, 3);
});

test("dragging pans by exactly what the pointer moved, with Shift it draws a rectangle", () => {
  const { send, named } = setUp();
  send("pointerdown", 0, 0);
  for (const x of [2, 10, 30]) send("pointermove", x, 0);
  send("pointerup", 30, 0);
  assert.equal(
    named("pan").reduce((sum, [, dx]) => sum + (dx as number), 0),
    30,
  );
  assert.deepEqual(named("panning"), [
    ["panning", true],
    ["panning", false],
  ]);
  send("pointerdown", 0, 0, { shiftKey: true });
  send("pointermove", 40, 50);
  send("pointerup", 40, 50);
  assert.deepEqual(named("lasso").at(-1), ["lasso", 0, 0, 40, 50, true]);
  assert.deepEqual(named("click"), []);
});

test("the wheel is the page's until the view has the focus; with Ctrl it zooms at the pointer", () => {
  const away = setUp(false);
  assert.equal(away.send("wheel", 5, 5, { deltaY: 30 }).defaultPrevented, false);
  assert.deepEqual(away.named("pan"), []);
  assert.equal(away.send("wheel", 5, 6, { deltaY: -30, ctrlKey: true }).defaultPrevented, true);
  const [[, factor, x, y]] = away.named("zoom") as [[string, number, number, number]];
  assert.ok(factor > 1.1 && x === 5 && y === 6);
  const stage = setUp(true);
  assert.equal(stage.send("wheel", 5, 5, { deltaY: 3, deltaMode: 1 }).defaultPrevented, true);
  assert.deepEqual(stage.named("pan"), [["pan", -0, -48]]);
});

test("two fingers zoom between them", () => {
  const { send, named } = setUp();
  send("pointerdown", 100, 100, { pointerId: 1 });
  send("pointerdown", 200, 100, { pointerId: 2 });
  send("pointermove", 300, 100, { pointerId: 2 });
  assert.deepEqual(named("zoom"), [["zoom", 2, 200, 100]]);
});

test("destroying takes every listener away", () => {
  const { element, gestures, send, calls } = setUp();
  assert.ok(element.listeners >= 7);
  gestures.destroy();
  assert.equal(element.listeners, 0);
  send("pointerdown", 0, 0);
  send("wheel", 0, 0, { ctrlKey: true });
  assert.deepEqual(calls, []);
});

test("keys walk, fold and zoom; the rest is left to others", () => {
  const calls: unknown[][] = [];
  const note =
    (name: string) =>
    (...rest: unknown[]) => {
      calls.push([name, ...rest]);
      return name !== "order";
    };
  const view: KeyboardTarget = {
    walk: note("walk"),
    walkOrder: note("order"),
    enterFocused: note("enter"),
    zoom: note("zoom"),
    pan: note("pan"),
    menuAtFocus: note("menu"),
  };
  const press = (key: string, more = {}): boolean => handleCanvasKey(view, { key, ...more } as KeyboardEvent);
  assert.ok(press("ArrowDown", { shiftKey: true }) && press("Enter", { altKey: true }) && press("-"));
  assert.deepEqual(calls, [
    ["walk", "down", true],
    ["enter", true],
    ["zoom", 0.8],
  ]);
  assert.ok(press("F10", { shiftKey: true }) && press("ContextMenu"));
  assert.deepEqual(calls.splice(3), [["menu"], ["menu"]]);
  assert.equal(press("F10"), false);
  assert.equal(press("Tab"), false, "Tab leaves after the last box");
  assert.equal(press("Escape") || press("Delete") || press("z", { ctrlKey: true }), false);
});

test("Space taps to fit and holds to pan, also from where a drag would draw or take a wire", () => {
  const { send, named, element } = setUp();
  const space = { key: " " };
  assert.ok(send("keydown", 0, 0, space).defaultPrevented);
  send("keydown", 0, 0, { ...space, repeat: true });
  send("keyup", 0, 0, space);
  assert.deepEqual(
    [named("fit").length, named("holding")],
    [
      1,
      [
        ["holding", true],
        ["holding", false],
      ],
    ],
  );
  send("keydown", 0, 0, space);
  send("pointerdown", 210, 50, { shiftKey: true });
  send("pointermove", 230, 60);
  send("pointerup", 230, 60);
  send("keyup", 0, 0, space);
  assert.deepEqual(named("pan"), [["pan", 20, 10]]);
  assert.deepEqual([named("wire"), named("lasso"), named("click"), named("fit").length], [[], [], [], 1]);
  send("keydown", 0, 0, space);
  element.dispatchEvent(new Event("focusout"));
  send("keyup", 0, 0, space);
  assert.equal(named("fit").length, 1, "what was let go of by leaving is no tap");
});

test("a press on a wire that can be taken drags it; anywhere else it pans", () => {
  const { calls, send } = setUp();
  send("pointerdown", 210, 50);
  send("pointermove", 230, 60);
  send("pointermove", 240, 90);
  send("pointerup", 250, 100);
  assert.deepEqual(
    calls.filter(([name]) => name !== "focus"),
    [
      ["wire", 230, 60, false],
      ["wire", 240, 90, false],
      ["wire", 250, 100, true],
    ],
  );
  calls.length = 0;
  send("pointerdown", 100, 50);
  send("pointermove", 130, 50);
  send("pointerup", 130, 50);
  assert.ok(calls.some(([name]) => name === "pan") && !calls.some(([name]) => name === "wire"));
});
