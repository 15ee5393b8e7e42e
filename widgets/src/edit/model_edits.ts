/**
 * Edits, steps of the history and saves: each is a request, and a refusal becomes a toast.
 *
 * Every edit is a request "edit", a row of `edits.ts`; its statement in Python comes back and is kept to be copied.
 */

import type { App } from "../app.ts";
import type { AttributeValue, Steps } from "../kernel/protocol.ts";
import { nodeLabel, plural } from "../model/names.ts";
import { Cell } from "../state.ts";
import type { EditName, Edits, Numbers, Subject } from "./edits.ts";

export class ModelEdits {
  readonly saving = new Cell(false);
  /** Whether the page that asks before a save shows. */
  readonly savePanel = new Cell(false);
  /** A name that asks to be edited: the inspector focuses its field. */
  readonly renaming = new Cell(false);
  readonly steps = new Cell<Steps>({ steps: [], position: 0, dropped: 0 });
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

  /** Makes an edit of the table; false, with a toast, when it was refused. */
  attempt<E extends EditName>(edit: E, on: Subject, subject: number[], parameters: Edits[E]): Promise<boolean> {
    return this.#attempt(() => this.make(edit, on, subject, parameters));
  }

  async #attempt(request: () => Promise<void>): Promise<boolean> {
    if (!this.#app.client.editable) return false;
    try {
      await request();
      return true;
    } catch (error) {
      this.#app.notices.fail(error);
      return false;
    }
  }

  undo(): void {
    if (this.#app.store.history.undo !== null) void this.#attempt(() => this.#app.client.edit("undo", {}));
  }

  redo(): void {
    if (this.#app.store.history.redo !== null) void this.#attempt(() => this.#app.client.edit("redo", {}));
  }

  /** Undoes or redoes up to a step of the history. */
  goTo(position: number): void {
    void this.#attempt(() => this.#app.client.edit("go_to", { position }));
  }

  async fetchHistory(): Promise<void> {
    if (this.#app.client.can.edit === false) return;
    try {
      this.steps.value = await this.#app.client.request("history", {});
    } catch (error) {
      this.#app.notices.fail(error);
    }
  }

  /** Sets an attribute (null: back to its default). Throws RequestError for the field to show beside itself. */
  setAttribute(node: number, name: string, value: AttributeValue, type: string): Promise<void> {
    const plain = value as Numbers | null; // what stands in a field is no preview of a tensor
    return plain === null
      ? this.make("clear_attribute", "node", [node], { name })
      : this.make("set_attribute", "node", [node], { name, value: { type, value: plain } });
  }

  renameNode(node: number, name: string): Promise<void> {
    return this.make("rename_node", "node", [node], { name });
  }

  renameValue(value: number, name: string): Promise<void> {
    return this.make("rename_value", "value", [value], { name });
  }

  /** Deletes nodes; with `bypass` their readers read what they read. Undo is the confirmation. */
  async remove(nodes: number[], bypass: boolean): Promise<void> {
    if (nodes.length === 0 || !this.#app.client.editable) return;
    const subject = nodes.length === 1 ? nodeLabel(this.#app.store, nodes[0]!) : plural(nodes.length, "node");
    if (await this.attempt("remove_nodes", "nodes", nodes, { bypass })) {
      this.#app.notices.done(this.#app, `${bypass ? "Bypassed" : "Deleted"} ${subject}`);
    }
  }

  /** Asks for another name of a node or a value, in the inspector. */
  rename({ node = 0, value = 0 }: { node?: number; value?: number }): void {
    if (node) this.#app.picked.reveal(node);
    else this.#app.picked.selectValue(value);
    this.#app.inspectorOpen.value = true;
    this.renaming.value = true;
  }

  /** Shows what saving would change, and asks; where there is no file, says so. */
  async save(): Promise<void> {
    if (this.saving.value || this.savePanel.value || !this.#app.client.editable) return;
    if (this.#app.store.path === null)
      await this.#app.client.request("unsaved", {}).catch((error) => this.#app.notices.fail(error));
    else this.savePanel.value = true;
  }

  /** Replaces the file, or writes a copy; refused where the model is not any more what the page shows. */
  async confirmSave(copy: boolean): Promise<void> {
    this.saving.value = true;
    try {
      const { path, bytes } = await this.#app.client.request("save", { copy, version: this.#app.store.version });
      this.#app.store.setHistory(this.#app.store.history, false, path);
      this.#app.notices.toast("success", `Saved ${path.split(/[/\\]/).pop()}`, `${path}\n${plural(bytes, "byte")}`);
    } finally {
      this.saving.value = false;
    }
  }
}
