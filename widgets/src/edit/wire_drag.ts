/** A wire that is dragged from a value to the node that is to read it. */

import type { App } from "../app.ts";
import type { Targets } from "../kernel/protocol.ts";
import { valueLabel } from "../model/names.ts";
import { Cell } from "../state.ts";

/** A wire that is being dragged. */
export interface Wire {
  value: number;
  /** Nodes and inputs that the wire may go to; null until the kernel has answered. */
  targets: Targets | null;
  /** Node under the pointer, 0: none. */
  over: number;
}

export class WireDrag {
  /** The wire in hand; null: none is dragged. */
  readonly wire = new Cell<Wire | null>(null);
  readonly #app: App;

  constructor(app: App) {
    this.#app = app;
  }

  /** Begins to drag a wire of `value`; `shown` are the nodes on the screen. */
  begin(value: number, shown: number[]): void {
    if (!this.#app.client.editable) return;
    const wire: Wire = { value, targets: null, over: 0 };
    this.wire.value = wire;
    this.#app.client.request("targets", { value, nodes: shown }).then(
      (targets) => {
        if (this.wire.value?.value !== value) return;
        this.wire.value = { ...this.wire.value, targets };
        this.#app.picture?.mark({ dimmed: Object.keys(targets.refused).map(Number) });
      },
      (error) => {
        this.end();
        this.#app.notices.fail(error);
      },
    );
  }

  over(node: number): void {
    if (this.wire.value && this.wire.value.over !== node) this.wire.value = { ...this.wire.value, over: node };
  }

  /** Lets go of the wire on a node (0: beside all, -1: outside of the picture); `share` is how far from the node's left edge, 0 to 1. */
  async drop(node: number, share: number): Promise<void> {
    const wire = this.wire.value;
    this.end();
    if (node < 0) return;
    if (wire && !node) this.#app.palette.addNode([wire.value]);
    if (!wire?.targets || !node) return;
    const slots = wire.targets.allowed[node];
    if (!slots) {
      this.#app.notices.toast("error", wire.targets.refused[node] ?? "This node cannot read the value.", "", node);
      return;
    }
    const slot = slots[Math.min(slots.length - 1, Math.floor(share * slots.length))]!;
    await this.#app.edits.attempt("set_input", "node", [node], { slot, value: wire.value });
  }

  end(): void {
    this.wire.value = null;
    this.#app.picture?.mark({ dimmed: [] });
  }

  /**
   * The refusal of the node under the pointer, or the effect of dropping the wire; "" while there is neither.
   */
  hint(): string {
    const wire = this.wire.value;
    if (!wire) return "";
    const name = valueLabel(this.#app.store, wire.value);
    if (!wire.targets) return `Looking where ${name} may go…`;
    if (!wire.over) return `Drop ${name} on the node that is to read it, or beside all for a new one`;
    return wire.targets.refused[wire.over] ?? `Drop here: the node reads ${name}`;
  }

  /** The reason why an input of a node cannot read a value, "" where it can. */
  async refusal(value: number, node: number, slot: number): Promise<string> {
    const { allowed, refused } = await this.#app.client.request("targets", { value, nodes: [node] });
    const free = allowed[node];
    if (!free) return refused[node] ?? "";
    return free.includes(slot) ? "" : `It may be read by input ${free.join(" or ")}, not by ${slot}.`;
  }
}
