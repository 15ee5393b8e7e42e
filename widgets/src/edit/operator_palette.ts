/** The palette of operators: what it is open for, and the edits that take the operator that is chosen. */

import type { App } from "../app.ts";
import type { OperatorInfo } from "../kernel/protocol.ts";
import { mainScope, plural, shortOp, valueLabel } from "../model/names.ts";
import { Cell } from "../state.ts";
import type { PointerTarget } from "../view_contract.ts";

/** An open palette: what is asked, and what to do with the operator that is chosen. */
export interface PaletteQuestion {
  title: string;
  /** Least number of inputs of the operators that are offered. */
  inputs: number;
  /** The operator to be replaced: operators like it come first. */
  like?: string;
  choose: (operator: OperatorInfo) => void;
}

export class OperatorPalette {
  /** The question for which the palette is open; null: it is closed. */
  readonly question = new Cell<PaletteQuestion | null>(null);
  /** An operator that is being dragged out of the palette. */
  readonly carried = new Cell<OperatorInfo | null>(null);
  readonly operators = new Cell<OperatorInfo[]>([]);
  readonly #app: App;

  constructor(app: App) {
    this.#app = app;
  }

  /** Asks for an operator and does something with it. */
  ask(title: string, inputs: number, choose: PaletteQuestion["choose"], like?: string, reads = 0): void {
    if (!this.#app.client.editable) return;
    this.question.value = { title, inputs, choose, ...(like ? { like } : {}) };
    this.operators.value = [];
    this.#app.client.request("operators", reads ? { value: reads } : {}).then(
      ({ operators }) => {
        this.operators.value = operators;
      },
      (error) => this.#app.notices.fail(error),
    );
  }

  addNode(inputs: number[] = []): void {
    const after = inputs.length
      ? ` that reads ${inputs.length === 1 ? valueLabel(this.#app.store, inputs[0]!) : "these"}`
      : "";
    this.ask(
      `Add a node${after}`,
      inputs.length,
      ({ op }) => void this.#app.edits.attempt("add_node", "model", [], { ...named(op), inputs, scope: this.#scope() }),
      "",
      inputs[0] ?? 0,
    );
  }

  /** The scope of the selection, 0 for the main graph. */
  #scope(): number {
    const scope = this.#app.picked.here;
    return scope === mainScope(this.#app.store) ? 0 : scope;
  }

  /** Asks for another operator in the place of nodes: one edit for all of them. */
  replace(nodes: number[]): void {
    const ops = new Set(nodes.map((node) => this.#app.store.nodes.get(node)?.op ?? ""));
    const [first = ""] = ops;
    const opName = ops.size > 1 ? "" : shortOp(first);
    this.ask(
      nodes.length > 1
        ? `Another operator in place of ${ops.size > 1 ? plural(nodes.length, "node") : `${nodes.length} ${opName}`}`
        : `Another operator in place of ${opName}`,
      0,
      (chosen) => void this.#replaceBy(nodes, chosen.op),
      first,
    );
  }

  async #replaceBy(nodes: number[], op: string): Promise<void> {
    const on = nodes.length > 1 ? "nodes" : "node";
    if ((await this.#app.edits.attempt("set_operator", on, nodes, named(op))) && nodes.length > 1)
      this.#app.notices.done(this.#app, `${plural(nodes.length, "node")} are ${shortOp(op)} now`, nodes);
  }

  insertAfter(value: number): void {
    const title = `Insert a node behind ${valueLabel(this.#app.store, value)}`;
    this.ask(
      title,
      1,
      ({ op }) => void this.#app.edits.attempt("insert_after", "value", [value], named(op)),
      "",
      value,
    );
  }

  insertBefore(node: number, slot: number): void {
    this.ask(
      "Insert a node on this wire",
      1,
      ({ op }) => void this.#app.edits.attempt("insert_on_edge", "node", [node], { slot, ...named(op) }),
    );
  }

  /**
   * Lets go of an operator on the picture: on a line it is inserted there, on a node behind it, elsewhere it stands
   * alone.
   */
  drop({ op, inputs }: OperatorInfo, target: PointerTarget): void {
    this.question.value = null;
    const value = target.value || (this.#app.store.nodes.get(target.node)?.outputs.find((id) => id > 0) ?? 0);
    if (value && inputs[1] > 0) void this.#app.edits.attempt("insert_after", "value", [value], named(op));
    else void this.#app.edits.attempt("add_node", "model", [], { ...named(op), inputs: [], scope: this.#scope() });
  }
}

/** An operator's name as edits take it. */
function named(op: string): { op_type: string; domain: string } {
  const at = op.lastIndexOf("::");
  return at < 0 ? { op_type: op, domain: "" } : { op_type: op.slice(at + 2), domain: op.slice(0, at) };
}
