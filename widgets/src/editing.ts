/**
 * Edits by hand beyond fields: gestures with the palette of operators, wires that are dragged, and the history.
 *
 * Every gesture is a request "edit" (onnxlab/notebook/gestures.py); its line of Python comes back and is kept to be copied.
 */

import type { App } from "./app.ts";
import { shortOp, valueLabel } from "./names.ts";
import type { OperatorInfo, Steps, Targets } from "./protocol.ts";
import { Cell } from "./state.ts";

/** An open palette: what is asked, and what to do with the operator that is chosen. */
export interface Palette {
  title: string;
  choose: (operator: OperatorInfo) => void;
}

/** A wire that is being dragged. */
export interface Wire {
  value: number;
  /** Null until the kernel has said where it may go. */
  targets: Targets | null;
  /** Node under the pointer, 0: none. */
  over: number;
}

export class Editing {
  readonly palette = new Cell<Palette | null>(null);
  readonly operators = new Cell<OperatorInfo[]>([]);
  readonly steps = new Cell<Steps>({ steps: [], position: 0 });
  readonly wire = new Cell<Wire | null>(null);
  /** The last edit of this view in Python, "" before the first. */
  readonly line = new Cell("");
  readonly #app: App;

  constructor(app: App) {
    this.#app = app;
  }

  /** Makes an edit by its name; false, with a toast, when it was refused. */
  async gesture(gesture: string, subject: number[], given: Record<string, unknown> = {}): Promise<boolean> {
    if (!this.#app.client.editable) return false;
    try {
      await this.#app.client.edit("edit", { gesture, subject, given });
      return true;
    } catch (error) {
      this.#app.fail(error);
      return false;
    }
  }

  /** The same for a field, which shows the refusal beside itself: throws RequestError. */
  set(gesture: string, subject: number[], given: Record<string, unknown>): Promise<void> {
    return this.#app.client.edit("edit", { gesture, subject, given });
  }

  // ------------------------------------------------------------------------------------------------------ palette

  /** Asks for an operator and does something with it. */
  ask(title: string, choose: Palette["choose"]): void {
    if (!this.#app.client.editable) return;
    this.palette.value = { title, choose };
    this.#app.client.request("operators", {}).then(
      ({ operators }) => { this.operators.value = operators; },
      (error) => this.#app.fail(error),
    );
  }

  addNode(inputs: number[] = []): void {
    const after = inputs.length ? ` that reads ${inputs.length === 1 ? valueLabel(this.#app.store, inputs[0]!) : "these"}` : "";
    this.ask(`Add a node${after}`, ({ op }) => void this.gesture("add_node", [], { ...named(op), inputs }));
  }

  replace(node: number): void {
    const op = shortOp(this.#app.store.nodes.get(node)?.op ?? "");
    this.ask(`Another operator in place of ${op}`, (chosen) => void this.gesture("replace", [node], named(chosen.op)));
  }

  insertAfter(value: number): void {
    const title = `Insert a node behind ${valueLabel(this.#app.store, value)}`;
    this.ask(title, ({ op }) => void this.gesture("insert_after", [value], named(op)));
  }

  insertBefore(node: number, slot: number): void {
    this.ask("Insert a node on this wire", ({ op }) => void this.gesture("insert_before", [node], { slot, ...named(op) }));
  }

  // -------------------------------------------------------------------------------------------------------- wires

  /** Begins to drag a wire of `value`; `shown` are the nodes on the screen. */
  beginWire(value: number, shown: number[]): void {
    const wire: Wire = { value, targets: null, over: 0 };
    this.wire.value = wire;
    this.#app.client.request("targets", { value, nodes: shown }).then(
      (targets) => {
        if (this.wire.value?.value !== value) return;
        this.wire.value = { ...this.wire.value, targets };
        this.#app.picture?.setDimmed(Object.keys(targets.refused).map(Number));
      },
      (error) => {
        this.endWire();
        this.#app.fail(error);
      },
    );
  }

  overNode(node: number): void {
    if (this.wire.value && this.wire.value.over !== node) this.wire.value = { ...this.wire.value, over: node };
  }

  /** Lets go of the wire on a node (0: nowhere); `share` is how far from the node's left edge, 0 to 1. */
  async drop(node: number, share: number): Promise<void> {
    const wire = this.wire.value;
    this.endWire();
    if (!wire?.targets || !node) return;
    const slots = wire.targets.allowed[node];
    if (!slots) {
      this.#app.toast("error", wire.targets.refused[node] ?? "This node cannot read the value.", "", node);
      return;
    }
    const slot = slots[Math.min(slots.length - 1, Math.floor(share * slots.length))]!;
    await this.gesture("connect", [node], { slot, value: wire.value });
  }

  endWire(): void {
    this.wire.value = null;
    this.#app.picture?.setDimmed([]);
  }

  /** Why the node under the pointer cannot take the wire, or what dropping it does; "" while there is nothing to say. */
  wireHint(): string {
    const wire = this.wire.value;
    if (!wire) return "";
    const name = valueLabel(this.#app.store, wire.value);
    if (!wire.targets) return `Looking where ${name} may go…`;
    if (!wire.over) return `Drop ${name} on the node that is to read it`;
    return wire.targets.refused[wire.over] ?? `Drop here: the node reads ${name}`;
  }

  // ------------------------------------------------------------------------------------------------------ history

  async fetchHistory(): Promise<void> {
    if (this.#app.client.can.edit === false) return;
    try {
      this.steps.value = await this.#app.client.request("history", {});
    } catch (error) {
      this.#app.fail(error);
    }
  }

  async goTo(position: number): Promise<void> {
    if (!this.#app.client.editable) return;
    try {
      await this.#app.client.edit("go_to", { position });
    } catch (error) {
      this.#app.fail(error);
    }
  }
}

/** An operator's name as gestures take it. */
function named(op: string): { op_type: string; domain: string } {
  const at = op.lastIndexOf("::");
  return at < 0 ? { op_type: op, domain: "" } : { op_type: op.slice(at + 2), domain: op.slice(0, at) };
}
