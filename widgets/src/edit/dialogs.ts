/** Dialogs: edits that ask for their parameters first. */

import type { App } from "../app.ts";
import { asRequestError } from "../kernel/request_error.ts";
import { valueLabel } from "../model/names.ts";
import { Cell } from "../state.ts";
import type { Target } from "./commands/command.ts";
import type { NewElements } from "./edits.ts";
import type { Field } from "./fields.ts";
import { formFields } from "./forms.ts";

/** An open dialog: what it asks for, and what is done with the answers; a refusal is shown in it. */
export interface Form {
  title: string;
  fields: Field[];
  submit: (answers: Record<string, unknown>) => Promise<void>;
}

type Changed = NewElements["elements"];

export class Dialogs {
  readonly form = new Cell<Form | null>(null);
  /** The subject of the open list of all edits; null: it is closed. */
  readonly list = new Cell<Target | null>(null);
  readonly #app: App;

  constructor(app: App) {
    this.#app = app;
  }

  /** Opens a dialog once its fields are known. */
  async open(title: string, fields: Field[] | Promise<Field[]>, submit: Form["submit"]): Promise<void> {
    if (!this.#app.client.editable) return;
    try {
      this.form.value = { title, fields: await fields, submit };
    } catch (error) {
      this.#app.notices.fail(error);
    }
  }

  /** Asks for what an input of a node shall read. */
  connect(node: number, slot = 0): void {
    const inputs = this.#app.store.nodes.get(node)?.inputs ?? [];
    const label = (value: number, at: number) =>
      `${at}: ${value ? valueLabel(this.#app.store, value) : "not connected"}`;
    const choices = [...inputs.map(label), `${inputs.length}: a further input`].map((text, at) => ({
      value: String(at),
      label: text,
    }));
    const scope = this.#app.store.nodes.get(node)?.scope ?? 0;
    void this.open(
      "Rewire an input",
      [
        { kind: "choice", name: "slot", label: "Input", choices, initial: String(slot) },
        { kind: "value", name: "value", label: "Reads", scope, node, slot: "slot" },
      ],
      (answers) =>
        this.#app.edits.make("set_input", "node", [node], { slot: Number(answers.slot), value: Number(answers.value) }),
    );
  }

  /** Asks for the name of a group: of nodes that become one, or of the one that holds just these. */
  group(nodes: number[], name = ""): void {
    void this.open(name ? "Rename the group" : "Make a group", formFields("group_nodes", { name }), (answers) =>
      this.#app.edits.make("group_nodes", "nodes", nodes, { name: String(answers.name) }),
    );
  }

  /** Shows a small tensor as a grid to type into: an initializer's, or that of a node's attribute. */
  async editElements(title: string, of: { value: number } | { node: number; name: string }): Promise<void> {
    const fields = this.#app.client
      .request("elements", of)
      .then(({ dtype, shape, numbers }): Field[] => [
        { kind: "grid", name: "elements", label: `${dtype}[${shape.join(", ")}]`, shape, numbers },
      ]);
    await this.open(title, fields, ({ elements }) =>
      "value" in of
        ? this.#app.edits.make("set_initializer", "value", [of.value], { array: { elements: elements as Changed } })
        : this.#app.edits.make("set_attribute", "node", [of.node], {
            name: of.name,
            value: { elements: elements as Changed },
          }),
    );
  }

  /** Sends the answers of a dialog; what is wrong with them as a sentence, "" where it was done. */
  async submit(form: Form, answers: Record<string, unknown>): Promise<string> {
    try {
      for (const [name, answer] of Object.entries(answers))
        if (answer instanceof File) answers[name] = await this.#app.files.upload(answer);
      await form.submit(answers);
      return "";
    } catch (error) {
      return asRequestError(error).sentence;
    }
  }
}
