/** The meaning of gestures and keys: clicks select, double clicks fold and enter, arrows walk. */

import type { Store } from "../../model/store.ts";
import type { PointerTarget } from "../../view_contract.ts";
import type { Camera } from "../canvas/camera.ts";
import type { SceneIndex } from "../canvas/visible.ts";
import { shownOf } from "../groups/fold.ts";
import { BODY, GROUP, idOf, NODE, REPEAT } from "../groups/group_keys.ts";
import type { Overlay } from "../marks/overlay.ts";
import type { Box } from "../scene/boxes.ts";
import { type Pick, pickAt } from "../scene/pick.ts";
import type { Viewpoint } from "../view/viewpoint.ts";
import type { GestureHandler } from "./gestures.ts";
import type { KeyboardTarget } from "./keyboard.ts";
import { PORT_SLACK, type Port, portAt, portsOf } from "./ports.ts";
import { type Direction, type Ground, step } from "./walk.ts";

/** The view, as far as interaction needs it. */
export interface Stage {
  readonly store: Store;
  readonly overlay: Overlay;
  readonly camera: Camera;
  readonly index: SceneIndex | null;
  readonly ground: Ground | null;
  readonly viewpoint: Viewpoint;
  hasFocus(): boolean;
  focus(): void;
  fit(): void;
  /** Selects one kind of thing (or nothing) and says so. */
  choose(nodes: readonly number[], group?: number, value?: number): void;
  /** Folds or unfolds what has a key (keys.ts); `all`: with all below it. */
  toggle(key: number, all?: boolean): void;
  /** Lets a repeat show all its groups, or one for all. */
  turnRepeat(key: number): void;
  openScope(scope: number): void;
  reveal(node: number): void;
  /** Opens what has a key and zooms to it. */
  enter(key: number, all: boolean): void;
  /** The overlay changed; `spoken`: in a way that the outline tells too. */
  overlayChanged(spoken: boolean): void;
  cameraChanged(): void;
  setCursor(cursor: string): void;
  hovered(target: PointerTarget | null): void;
  menuAsked(target: PointerTarget): void;
  /** Lists the values of a ribbon at a point of the view. */
  listRibbon(values: readonly number[], x: number, y: number): void;
  wireGrabbed(value: number): void;
  wireOver(node: number): void;
  wireDropped(node: number, share: number): void;
}

/** Pixels within which a line counts as hit. */
const LINE_SLACK = 6;

export class Interaction implements GestureHandler, KeyboardTarget {
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  hasFocus(): boolean {
    return this.#stage.hasFocus();
  }

  takeFocus(): void {
    this.#stage.focus();
  }

  // ------------------------------------------------------------------------------------------------------------ camera

  fit(): void {
    this.#stage.fit();
  }

  pan(dx: number, dy: number): void {
    this.#stage.hovered(null); // what is beside the pointer moves away from it
    this.#stage.camera.pan(dx, dy);
    this.#stage.cameraChanged();
  }

  zoom(factor: number, x = this.#stage.camera.width / 2, y = this.#stage.camera.height / 2): void {
    this.#stage.hovered(null);
    this.#stage.camera.zoomAt(factor, x, y);
    this.#stage.cameraChanged();
  }

  panning(active: boolean): void {
    this.#stage.setCursor(active ? "grabbing" : "");
  }

  holding(active: boolean): void {
    this.#stage.setCursor(active ? "grab" : "");
  }

  // ----------------------------------------------------------------------------------------------------------- pointer

  #pick(x: number, y: number): Pick | null {
    const { index, camera } = this.#stage;
    return index && pickAt(index, camera.toSceneX(x), camera.toSceneY(y), LINE_SLACK / camera.zoom);
  }

  #boxOf(pick: Pick): Box | undefined {
    if (pick.what === "value") return undefined;
    return this.#stage.index!.scene.boxes[pick.what === "ground" ? pick.frame : pick.index];
  }

  /** The pick as the panels name it. */
  #target(pick: Pick, x: number, y: number): PointerTarget {
    const target: PointerTarget = { node: 0, value: 0, group: 0, x, y };
    const box = this.#boxOf(pick);
    if (pick.what === "value") target.value = pick.value;
    else if (box) Object.assign(target, this.#standsFor(box));
    return target;
  }

  /** The thing of the model that a box is about: a subgraph for its node, a repeat for the group that it shows. */
  #standsFor(box: Box): { node: number } | { group: number } | { value: number } {
    if (box.kind === NODE) return { node: box.id };
    if (box.kind === BODY) return { node: this.#stage.store.scopes.get(box.id)?.owner ?? 0 };
    if (box.kind === GROUP) return { group: box.id };
    const ground = box.kind === REPEAT ? this.#stage.ground : null;
    if (ground) return { group: idOf(shownOf(ground.hierarchy, ground.open, box.key)[0] ?? 0) || box.id };
    return { value: box.id };
  }

  hover(x: number, y: number): void {
    this.#setHover(this.#pick(x, y), x, y);
  }

  leave(): void {
    this.#setHover(null, 0, 0);
  }

  #setHover(pick: Pick | null, x: number, y: number): void {
    const { overlay } = this.#stage;
    const something = pick !== null && pick.what !== "ground";
    this.#stage.setCursor(something ? "pointer" : "");
    const port = this.#portAt(x, y);
    if (port) this.#stage.setCursor("crosshair");
    if (!samePick(overlay.hover, pick)) {
      overlay.hover = pick;
      const over = port || pick?.what !== "box" ? -1 : pick.index;
      if (!port) overlay.ports = over < 0 ? [] : portsOf(this.#stage.index!.scene, this.#stage.store, over);
      this.#stage.overlayChanged(false);
    }
    this.#stage.hovered(something ? this.#target(pick, x, y) : null);
  }

  click(x: number, y: number, add: boolean): void {
    const stage = this.#stage;
    const pick = this.#pick(x, y);
    if (!pick) return;
    const box = this.#boxOf(pick);
    if (pick.what === "value" && pick.ribbon >= 0) {
      stage.listRibbon(stage.index!.scene.ribbons[pick.ribbon]!, x, y);
    } else if (pick.what === "value") {
      stage.choose([], 0, pick.value);
      if (pick.portal >= 0) this.#jump(pick.portal);
    } else if (pick.what === "ground") {
      if (!add) stage.choose([]);
    } else if (pick.fold) stage.toggle(box!.key);
    else if (pick.what === "frame" && pick.all) stage.turnRepeat(box!.key);
    else if (pick.what === "box" && pick.enter) stage.openScope(box!.scope);
    else this.#select(box!, add);
  }

  /** Goes to where a cut line continues: the same number in another column, or the node that makes the value. */
  #jump(at: number): void {
    const { index, camera, store } = this.#stage;
    const portal = index!.scene.portals[at]!;
    if (portal.elsewhere) {
      const { x, y } = portal.elsewhere,
        [left, top] = [camera.toScreenX(x), camera.toScreenY(y)];
      if (left > 0 && left < camera.width && top > 0 && top < camera.height) return;
      camera.centerOn(x, y);
      this.#stage.cameraChanged();
      return;
    }
    const producer = portal.atSource ? undefined : store.producer(portal.value);
    if (producer) this.#stage.reveal(producer.node);
  }

  /** Selects what a box stands for; `add` adds a node to the selection, or takes it out. */
  #select(box: Box, add: boolean): void {
    const { overlay } = this.#stage;
    overlay.focusKey = box.key;
    const {
      node = 0,
      group = 0,
      value = 0,
    } = this.#standsFor(box) as { node?: number; group?: number; value?: number };
    if (!node) this.#stage.choose([], group, value);
    else if (!add) this.#stage.choose([node]);
    else {
      const without = overlay.nodes.filter((id) => id !== node);
      this.#stage.choose(without.length < overlay.nodes.length ? without : [...without, node]);
    }
  }

  doubleClick(x: number, y: number, all: boolean): void {
    const { index } = this.#stage;
    const pick = this.#pick(x, y);
    if (!pick || !index || pick.what === "ground") return;
    // What a click does on a sign or a line has been done with the first one.
    if (pick.what !== "value" && !pick.fold && !(pick.what === "frame" && pick.all)) this.#enter(pick.index, all);
  }

  /** Folds, unfolds or enters what a box stands for. */
  #enter(index: number, all: boolean): void {
    const box = this.#stage.index!.scene.boxes[index]!;
    if (box.folds && this.#stage.index!.scene.frame[index]) this.#stage.toggle(box.key, all);
    else if (box.folds) this.#stage.enter(box.key, all);
    else if (box.scope) this.#stage.openScope(box.scope);
  }

  menu(x: number, y: number): void {
    const pick = this.#pick(x, y);
    if (!pick) return;
    const target = this.#target(pick, x, y);
    if (target.node && !this.#stage.overlay.nodes.includes(target.node)) this.#stage.choose([target.node]);
    this.#stage.menuAsked(target);
  }

  /** The target at a point of the picture, as the panels name it. */
  targetAt(x: number, y: number): PointerTarget | null {
    const pick = this.#pick(x, y);
    return pick && this.#target(pick, x, y);
  }

  menuAtFocus(): void {
    const { ground, overlay, camera } = this.#stage;
    const at = ground ? overlay.focusBox(ground) : -1;
    const selected = { node: overlay.nodes[overlay.nodes.length - 1] ?? 0, value: overlay.value, group: 0 };
    if (!ground || at < 0) {
      this.#stage.menuAsked({ ...selected, x: camera.width / 2, y: camera.height / 2 });
      return;
    }
    const { scene } = ground;
    const x = camera.toScreenX(scene.x[at]! + scene.w[at]! / 2),
      y = camera.toScreenY(scene.y[at]! + scene.h[at]! / 2);
    const something = selected.node || selected.value;
    this.#stage.menuAsked(
      something ? { ...selected, x, y } : this.#target({ what: "box", index: at, fold: false, enter: false }, x, y),
    );
  }

  #portAt(x: number, y: number): Port | null {
    const { index, camera, store } = this.#stage;
    return index && portAt(index, store, camera.toSceneX(x), camera.toSceneY(y), PORT_SLACK / camera.zoom);
  }

  grabs(x: number, y: number): boolean {
    const { overlay, camera } = this.#stage;
    const port = this.#portAt(x, y),
      pick = this.#pick(x, y);
    const value = port?.value ?? (pick?.what === "value" && pick.value === overlay.value ? pick.value : 0);
    if (!value) return false;
    overlay.wire = {
      fromX: port?.x ?? camera.toSceneX(x),
      fromY: port?.y ?? camera.toSceneY(y),
      x: camera.toSceneX(x),
      y: camera.toSceneY(y),
    };
    this.#stage.wireGrabbed(value);
    return true;
  }

  wire(x: number, y: number, done: boolean): void {
    const { overlay, camera, index } = this.#stage;
    const pick = this.#pick(x, y);
    const box = pick?.what === "box" || pick?.what === "frame" ? this.#boxOf(pick) : undefined;
    const node = box?.kind === NODE ? box.id : 0;
    if (overlay.wire) overlay.wire = done ? null : { ...overlay.wire, x: camera.toSceneX(x), y: camera.toSceneY(y) };
    if (!done) this.#stage.wireOver(node);
    else {
      const at = pick && "index" in pick ? pick.index : -1,
        { scene } = index!;
      const inside = x >= 0 && y >= 0 && x <= camera.width && y <= camera.height;
      this.#stage.wireDropped(inside ? node : -1, at < 0 ? 0 : (camera.toSceneX(x) - scene.x[at]!) / scene.w[at]!);
    }
    this.#stage.overlayChanged(false);
  }

  lasso(x1: number, y1: number, x2: number, y2: number, done: boolean): void {
    const { camera, overlay, index } = this.#stage;
    const left = camera.toSceneX(Math.min(x1, x2)),
      top = camera.toSceneY(Math.min(y1, y2));
    const right = camera.toSceneX(Math.max(x1, x2)),
      bottom = camera.toSceneY(Math.max(y1, y2));
    overlay.lasso = done ? null : { x: left, y: top, width: right - left, height: bottom - top };
    this.#stage.overlayChanged(false);
    if (!done || !index || x1 === x2) return;
    const boxes = index.boxesIn(left, top, right, bottom).map((i) => index.scene.boxes[i]!);
    const nodes = boxes.filter(({ kind }) => kind === NODE).map(({ id }) => id);
    if (nodes.length) this.#stage.choose([...overlay.nodes, ...nodes]);
  }

  // ---------------------------------------------------------------------------------------------------------- keyboard

  walk(direction: Direction, add: boolean): void {
    const { ground, overlay } = this.#stage;
    if (!ground) return;
    const from = overlay.focusBox(ground);
    this.#goTo(from < 0 ? this.#middle(ground) : step(ground, from, direction), add);
  }

  walkOrder(by: 1 | -1): boolean {
    const { ground, overlay } = this.#stage;
    if (!ground) return false;
    const from = overlay.focusBox(ground);
    return this.#goTo(from < 0 ? this.#middle(ground) : from + by, false);
  }

  #middle(ground: Ground): number {
    return this.#stage.viewpoint.middleBox(this.#stage.camera, ground.scene);
  }

  #goTo(index: number, add: boolean): boolean {
    const { scene } = this.#stage.ground!;
    const box = scene.boxes[index];
    if (!box) return false;
    this.#select(box, add);
    this.#stage.viewpoint.bringIntoView(this.#stage.camera, scene, index, 0);
    this.#stage.cameraChanged();
    return true;
  }

  enterFocused(all: boolean): boolean {
    const { ground, overlay } = this.#stage;
    const index = ground ? overlay.focusBox(ground) : -1;
    if (index >= 0) this.#enter(index, all);
    return index >= 0;
  }
}

function samePick(a: Pick | null, b: Pick | null): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
