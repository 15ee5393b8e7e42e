/**
 * Edits beyond fields: those with the palette of operators, wires that are dragged, and the history.
 *
 * Every edit is a request "edit", a row of `edits.ts`; its statement in Python comes back and is kept to be copied.
 */

import type { App } from "../app.ts";
import type { Target } from "./commands.ts";
import { asRequestError } from "../kernel/request_error.ts";
import type { EditName, Edits, NewElements, Subject } from "./edits.ts";
import type { Field } from "./fields.ts";
import { formFields, parametersOf } from "./forms.ts";
import { mainScope, plural, shortOp, valueLabel } from "../model/names.ts";
import { GRAPH_INPUT, INITIALIZER, type OperatorInfo, type Steps, type Targets } from "../kernel/protocol.ts";
import { Cell } from "../state.ts";
import type { PointerTarget } from "../view_contract.ts";

/** An open palette: what is asked, and what to do with the operator that is chosen. */
export interface Palette {
  title: string;
  /** Only operators that take at least so many inputs are offered. */
  inputs: number;
  choose: (operator: OperatorInfo) => void;
}

/** An open dialog: what it asks for, and what is done with the answers; a refusal is shown in it. */
export interface Form {
  title: string;
  fields: Field[];
  submit: (answers: Record<string, unknown>) => Promise<void>;
}

type Changed = NewElements["elements"];

/** Bytes of a piece of a file: base64 of it stays well below what one message may have. */
const PIECE = 384 * 1024;

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
  /** An operator that is being dragged out of the palette. */
  readonly carried = new Cell<OperatorInfo | null>(null);
  readonly dialog = new Cell<Form | null>(null);
  /** What the open list of all edits is about; null: it is closed. */
  readonly list = new Cell<Target | null>(null);
  readonly operators = new Cell<OperatorInfo[]>([]);
  readonly steps = new Cell<Steps>({ steps: [], position: 0, dropped: 0 });
  readonly wire = new Cell<Wire | null>(null);
  /** The last edit of this view in Python, "" before the first. */
  readonly line = new Cell("");
  readonly #app: App;

  constructor(app: App) {
    this.#app = app;
  }

  /** Makes an edit of the table; a refusal is thrown as RequestError, for a field to show beside itself. */
  make<E extends EditName>(edit: E, on: Subject, subject: number[], parameters: Edits[E]): Promise<void> {
    return this.#app.client.edit("edit", { edit, on, subject, parameters });
  }

  /** The same; false, with a toast, when it was refused. */
  async attempt<E extends EditName>(edit: E, on: Subject, subject: number[], parameters: Edits[E]): Promise<boolean> {
    if (!this.#app.client.editable) return false;
    try {
      await this.make(edit, on, subject, parameters);
      return true;
    } catch (error) {
      this.#app.notices.fail(error);
      return false;
    }
  }

  // ------------------------------------------------------------------------------------------------------ palette

  /** Asks for an operator and does something with it. */
  ask(title: string, inputs: number, choose: Palette["choose"]): void {
    if (!this.#app.client.editable) return;
    this.palette.value = { title, inputs, choose };
    this.#app.client.request("operators", {}).then(
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
      ({ op }) => void this.attempt("add_node", "model", [], { ...named(op), inputs, scope: this.#scope() }),
    );
  }

  /** The scope that one is in, 0 for the main graph. */
  #scope(): number {
    const scope = this.#app.picked.here;
    return scope === mainScope(this.#app.store) ? 0 : scope;
  }

  replace(node: number): void {
    const op = shortOp(this.#app.store.nodes.get(node)?.op ?? "");
    this.ask(
      `Another operator in place of ${op}`,
      0,
      (chosen) => void this.attempt("set_operator", "node", [node], named(chosen.op)),
    );
  }

  insertAfter(value: number): void {
    const title = `Insert a node behind ${valueLabel(this.#app.store, value)}`;
    this.ask(title, 1, ({ op }) => void this.attempt("insert_after", "value", [value], named(op)));
  }

  /**
   * Lets go of an operator on the picture: on a line it is inserted there, on a node behind it, elsewhere it stands
   * alone.
   */
  dropOperator({ op, inputs }: OperatorInfo, target: PointerTarget): void {
    this.palette.value = null;
    const value = target.value || (this.#app.store.nodes.get(target.node)?.outputs.find((id) => id > 0) ?? 0);
    if (value && inputs[1] > 0) void this.attempt("insert_after", "value", [value], named(op));
    else void this.attempt("add_node", "model", [], { ...named(op), inputs: [], scope: this.#scope() });
  }

  /**
   * Lets go of a file on the picture: a model is inserted, on a line where that is; an array becomes what the input
   * under it is fed in a run, or the data of an initializer that the node under it reads.
   */
  async dropFile(file: File, { value, node }: { value: number; node: number }): Promise<void> {
    const { store } = this.#app,
      found = store.values.get(value);
    if (!/\.(npy|npz|pb)$/i.test(file.name)) {
      const wire = value && store.uses(value).length ? [value] : [];
      await this.insertModel({ connect: wire, feed: wire, file });
    } else if (found && found.flags & GRAPH_INPUT) await this.#feed(found.name, file);
    else {
      const stored = [value, ...(store.nodes.get(node)?.inputs ?? [])].filter(
        (id) => (store.values.get(id)?.flags ?? 0) & INITIALIZER,
      );
      await this.#replaceData(stored, file);
    }
  }

  async #feed(input: string, file: File): Promise<void> {
    const { numbers } = this.#app;
    try {
      numbers.choose(input, { how: "file", file: await this.upload(file), fileName: file.name });
      numbers.asking.value = true;
    } catch (error) {
      this.#app.notices.fail(error);
    }
  }

  /** Asks which of some initializers an array replaces. */
  async #replaceData(stored: number[], file: File): Promise<void> {
    const choices = [...new Set(stored)].map((id) => ({
      value: String(id),
      label: `${valueLabel(this.#app.store, id)} ${this.#app.store.values.get(id)?.label ?? ""}`,
    }));
    if (!choices.length) {
      this.#app.notices.toast("info", `Drop ${file.name} on an input or on a node with weights.`);
      return;
    }
    await this.form(
      `Replace data with ${file.name}`,
      [
        { kind: "choice", name: "value", label: "Initializer", choices },
        { kind: "file", name: "file", label: "File", accept: ".npy,.npz,.pb", initial: file },
      ],
      ({ value, file: sent }) => this.make("set_initializer", "value", [Number(value)], { array: { file: String(sent) } }),
    );
  }

  insertBefore(node: number, slot: number): void {
    this.ask(
      "Insert a node on this wire",
      1,
      ({ op }) => void this.attempt("insert_on_edge", "node", [node], { slot, ...named(op) }),
    );
  }

  // ------------------------------------------------------------------------------------------------------ dialogs

  /** Opens a dialog once its fields are known. */
  async form(title: string, fields: Field[] | Promise<Field[]>, submit: Form["submit"]): Promise<void> {
    if (!this.#app.client.editable) return;
    try {
      this.dialog.value = { title, fields: await fields, submit };
    } catch (error) {
      this.#app.notices.fail(error);
    }
  }

  /** Asks for what an input of a node shall read. */
  connect(node: number, slot = 0): void {
    const inputs = this.#app.store.nodes.get(node)?.inputs ?? [];
    const label = (value: number, at: number) =>
      `${at}: ${value ? valueLabel(this.#app.store, value) : "not connected"}`;
    const choices = [...inputs.map(label), `${inputs.length}: a further input`].map((each, at) => ({
      value: String(at),
      label: each,
    }));
    const scope = this.#app.store.nodes.get(node)?.scope ?? 0;
    void this.form(
      "Rewire an input",
      [
        { kind: "choice", name: "slot", label: "Input", choices, initial: String(slot) },
        { kind: "value", name: "value", label: "Reads", scope, node, slot: "slot" },
      ],
      (answers) => this.make("set_input", "node", [node], { slot: Number(answers.slot), value: Number(answers.value) }),
    );
  }

  /**
   * Asks for a model to put into this one: its inputs read `connect` in turn, its outputs are read instead of `feed`.
   */
  async insertModel({
    connect = [],
    feed = [],
    file = null,
  }: {
    connect?: number[];
    feed?: number[];
    file?: File | null;
  } = {}): Promise<void> {
    const called = (values: number[]): string => values.map((value) => valueLabel(this.#app.store, value)).join(", ");
    const where =
      connect.length && feed.length
        ? `a model onto ${called(connect)}`
        : connect.length
          ? `a model that reads ${called(connect)}`
          : "";
    await this.form(
      `Insert ${where || (feed.length ? `a model in front of ${called(feed)}` : "another model")}`,
      formFields("insert_model", { file, outputs: !connect.length && !feed.length }),
      (answers) =>
        this.make("insert_model", "model", [], { ...parametersOf("insert_model", answers), connect, feed }),
    );
  }

  /** Shows a small tensor as a grid to type into: an initializer's, or that of a node's attribute. */
  async editElements(title: string, of: { value: number } | { node: number; name: string }): Promise<void> {
    const fields = this.#app.client
      .request("elements", of)
      .then(({ dtype, shape, numbers }): Field[] => [
        { kind: "grid", name: "elements", label: `${dtype}[${shape.join(", ")}]`, shape, numbers },
      ]);
    await this.form(title, fields, ({ elements }) =>
      "value" in of
        ? this.make("set_initializer", "value", [of.value], { array: { elements: elements as Changed } })
        : this.make("set_attribute", "node", [of.node], { name: of.name, value: { elements: elements as Changed } }),
    );
  }

  /** Adds what a node (or several) is in every copy of its block to the selection. */
  async selectCopies(nodes: number[]): Promise<void> {
    try {
      const { copies } = await this.#app.client.request("copies", { nodes });
      if (!copies.length) this.#app.notices.toast("info", "There is no copy of it in this model.");
      else {
        this.#app.picked.select([...nodes, ...copies.flat()]);
        this.#app.notices.toast(
          "info",
          `Selected ${plural(copies.length + 1, "copy", "copies")}: an edit of the selection changes all of them`,
        );
      }
    } catch (error) {
      this.#app.notices.fail(error);
    }
  }

  /** Hands nodes out as a file of their own. */
  async download(nodes: number[]): Promise<void> {
    try {
      const { result, buffer } = await this.#app.client.requestBytes("extract", { nodes });
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([buffer as BlobPart], { type: "application/octet-stream" }));
      link.download = result.name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      this.line.value = result.python;
      this.#app.notices.toast("success", `Downloaded ${result.name}`, result.python);
    } catch (error) {
      this.#app.notices.fail(error);
    }
  }

  /** Sends a file to the kernel, piece by piece; returns the id by which an edit names it. */
  async upload(file: File): Promise<string> {
    const id = `${file.name}/${file.size}/${Date.now()}`;
    let offset = 0;
    do {
      const piece = new Uint8Array(await file.slice(offset, offset + PIECE).arrayBuffer());
      await this.#app.client.request("upload", { file: id, name: file.name, offset, data: toBase64(piece) });
      offset += piece.length;
    } while (offset < file.size);
    return id;
  }

  /** Sends the answers of a dialog; what is wrong with them as a sentence, "" where it was done. */
  async submit(form: Form, answers: Record<string, unknown>): Promise<string> {
    try {
      for (const [name, given] of Object.entries(answers))
        if (given instanceof File) answers[name] = await this.upload(given);
      await form.submit(answers);
      return "";
    } catch (error) {
      return asRequestError(error).sentence;
    }
  }

  /** Why an input of a node cannot read a value, "" where it can. */
  async refusal(value: number, node: number, slot: number): Promise<string> {
    const { allowed, refused } = await this.#app.client.request("targets", { value, nodes: [node] });
    const free = allowed[node];
    if (!free) return refused[node] ?? "";
    return free.includes(slot) ? "" : `It may be read by input ${free.join(" or ")}, not by ${slot}.`;
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
        this.#app.picture?.mark({ dimmed: Object.keys(targets.refused).map(Number) });
      },
      (error) => {
        this.endWire();
        this.#app.notices.fail(error);
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
      this.#app.notices.toast("error", wire.targets.refused[node] ?? "This node cannot read the value.", "", node);
      return;
    }
    const slot = slots[Math.min(slots.length - 1, Math.floor(share * slots.length))]!;
    await this.attempt("set_input", "node", [node], { slot, value: wire.value });
  }

  endWire(): void {
    this.wire.value = null;
    this.#app.picture?.mark({ dimmed: [] });
  }

  /**
   * Why the node under the pointer cannot take the wire, or what dropping it does; "" while there is nothing to say.
   */
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
      this.#app.notices.fail(error);
    }
  }

  async goTo(position: number): Promise<void> {
    if (!this.#app.client.editable) return;
    try {
      await this.#app.client.edit("go_to", { position });
    } catch (error) {
      this.#app.notices.fail(error);
    }
  }
}

/** An operator's name as edits take it. */
function named(op: string): { op_type: string; domain: string } {
  const at = op.lastIndexOf("::");
  return at < 0 ? { op_type: op, domain: "" } : { op_type: op.slice(at + 2), domain: op.slice(0, at) };
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
