/** The selection, and so the subject of the inspector: in the panels, in the picture and in the kernel. */

import type { App } from "../app.ts";
import { neighbors, nodeLabel, plural, valueLabel } from "../model/names.ts";
import { Cell } from "../state.ts";

/** The subject of the inspector. */
export type Subject =
  | { kind: "model" }
  | { kind: "nodes"; nodes: number[] }
  | { kind: "value"; value: number }
  | { kind: "group"; group: number };

const NOTHING: Subject = { kind: "model" };

export class Selection {
  readonly subject = new Cell<Subject>(NOTHING);
  /** Called with the selected nodes when they changed in the page, to write the trait. */
  onSelect: (nodes: number[]) => void = () => undefined;
  readonly #app: App;

  constructor(app: App) {
    this.#app = app;
  }

  /** The selected nodes, [] when something else or nothing is selected. */
  get nodes(): number[] {
    const subject = this.subject.value;
    return subject.kind === "nodes" ? subject.nodes : [];
  }

  /** The scope of what is selected, which may be a subgraph inside the scope that is shown. */
  get here(): number {
    const subject = this.subject.value,
      { nodes, values, groups } = this.#app.store;
    const of =
      subject.kind === "nodes"
        ? nodes.get(subject.nodes[0] ?? 0)
        : subject.kind === "value"
          ? values.get(subject.value)
          : subject.kind === "group"
            ? groups.get(subject.group)
            : undefined;
    return of?.scope || this.#app.scope.value;
  }

  /** Takes what was selected in the picture. */
  take(nodes: number[]): void {
    const before = this.nodes;
    if (before.length === nodes.length && before.every((id, i) => id === nodes[i])) return;
    this.subject.value = nodes.length ? { kind: "nodes", nodes } : NOTHING;
    this.onSelect(nodes);
  }

  /** Takes the value selected in the picture, 0: none. */
  takeValue(value: number): void {
    this.subject.value = value ? { kind: "value", value } : NOTHING;
  }

  /** Takes the group selected in the picture, 0: none. */
  takeGroup(group: number): void {
    this.subject.value = group ? { kind: "group", group } : NOTHING;
  }

  /** Selects nodes everywhere: panels, picture, kernel. */
  select(nodes: number[]): void {
    if (this.#app.picture) this.#app.picture.selection = nodes;
    this.take(nodes);
  }

  /** Selects what the kernel says is selected and moves to it, without telling the kernel again. */
  selectFromKernel(nodes: number[]): void {
    const known = nodes.filter((id) => this.#app.store.nodes.has(id));
    const before = this.nodes;
    if (before.length === known.length && before.every((id, i) => id === known[i])) return;
    this.subject.value = known.length ? { kind: "nodes", nodes: known } : NOTHING;
    if (!this.#app.picture) return;
    this.#app.picture.selection = known;
    if (known.length) this.#app.picture.seek();
  }

  selectValue(value: number): void {
    if (this.nodes.length) this.onSelect([]);
    if (this.#app.picture) this.#app.picture.selectedValue = value;
    this.subject.value = { kind: "value", value };
  }

  /** Selects a node, brings it into view and opens what it is folded in. */
  reveal(node: number): void {
    if (!this.#app.store.nodes.has(node)) return;
    this.#app.picture?.reveal(node, { select: true });
    this.take([node]);
  }

  /** Selects nodes and brings one of them into view. */
  show(nodes: readonly number[]): void {
    const present = nodes.filter((node) => this.#app.store.nodes.has(node));
    if (present.length === 1) this.reveal(present[0]!);
    else if (present.length) {
      this.select([...present]);
      this.#app.picture?.seek();
    }
  }

  /** Selects a group and brings it into view, with what it is in open. */
  revealGroup(group: number): void {
    this.#app.picture?.revealGroup(group);
    if (this.nodes.length) this.onSelect([]);
    this.subject.value = { kind: "group", group };
  }

  selectNeighbors(nodes: number[], direction: "producers" | "consumers"): void {
    const adjacent = neighbors(this.#app.store, nodes, direction);
    if (adjacent.length === 0) {
      this.#app.notices.toast(
        "info",
        direction === "producers" ? "No node makes its inputs." : "No node takes its outputs.",
      );
    } else if (adjacent.length === 1) this.reveal(adjacent[0]!);
    else this.select(adjacent);
  }

  /** Takes the inspector back to what it was about. */
  resume(subject: Subject): void {
    if (subject.kind === "nodes") this.select(subject.nodes.filter((node) => this.#app.store.nodes.has(node)));
    else if (subject.kind === "value" && this.#app.store.values.has(subject.value)) this.selectValue(subject.value);
    else {
      this.select([]);
      this.subject.value = subject.kind === "group" && this.#app.store.groups.has(subject.group) ? subject : NOTHING;
    }
  }

  /** Forgets what was removed from under the selection and the breadcrumb. */
  dropMissing(): void {
    const subject = this.subject.value;
    if (subject.kind === "nodes") {
      const left = subject.nodes.filter((id) => this.#app.store.nodes.has(id));
      if (left.length !== subject.nodes.length) this.select(left);
    } else if (subject.kind === "value" && !this.#app.store.values.has(subject.value)) this.subject.value = NOTHING;
    else if (subject.kind === "group" && !this.#app.store.groups.has(subject.group)) this.subject.value = NOTHING;
  }

  /** Brings the node at one end of a value into view and shows the value in the inspector. */
  revealValue(value: number): void {
    const end = this.#app.store.producer(value) ?? this.#app.store.uses(value)[0];
    if (end) this.#app.picture?.reveal(end.node, { select: false });
    this.selectValue(value);
  }

  /** The names of what is selected, one a line, to the clipboard. */
  async copyNames(nodes = this.nodes): Promise<void> {
    const subject = this.subject.value;
    const names = nodes.map((id) => this.#app.store.nodes.get(id)?.name || nodeLabel(this.#app.store, id));
    if (names.length === 0 && subject.kind === "value") names.push(valueLabel(this.#app.store, subject.value));
    if (names.length)
      await this.#app.notices.copyText(
        names.join("\n"),
        names.length === 1 ? `Copied ${names[0]}` : `Copied ${plural(names.length, "name")}`,
      );
  }

  /** Adds what a node (or several) is in every copy of its block to the selection. */
  async selectCopies(nodes: number[]): Promise<void> {
    try {
      const { copies } = await this.#app.client.request("copies", { nodes });
      if (!copies.length) this.#app.notices.toast("info", "No other nodes of this model do the same.");
      else {
        this.select([...nodes, ...copies.flat()]);
        this.#app.notices.toast(
          "info",
          `Selected ${plural(copies.length + 1, "copy", "copies")}: an edit of the selection changes all of them`,
        );
      }
    } catch (error) {
      this.#app.notices.fail(error);
    }
  }
}
