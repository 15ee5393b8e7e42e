/** Places in a model to return to: back and forward, bookmarks, and ways that are lit. */

import type { App } from "../app.ts";
import { nodeLabel, plural } from "../model/names.ts";
import { Cell } from "../state.ts";
import type { Place } from "../view_contract.ts";
import { between, cone, valuesBetween } from "./paths.ts";
import type { Subject } from "./selection.ts";

/** A place with what the inspector was about there. */
interface Stop {
  place: Place;
  subject: Subject;
}

export interface Trail {
  title: string;
  nodes: number[];
}

const MOST = 60;

export class Travel {
  /** The numbers of steps back and forward. */
  readonly reach = new Cell({ back: 0, forward: 0 });
  /** Bookmarked nodes by id, oldest first. */
  readonly bookmarks = new Cell<readonly number[]>([]);
  readonly trail = new Cell<Trail | null>(null);
  /** Called when bookmarks changed in the page, to write the trait. */
  onBookmarks: (nodes: number[]) => void = () => undefined;
  readonly #app: App;
  #back: Stop[] = [];
  #forward: Stop[] = [];

  constructor(app: App) {
    this.#app = app;
  }

  // -------------------------------------------------------------------------------------------------- back and forward

  #here(): Stop | null {
    const { picture } = this.#app;
    return picture && { place: picture.place, subject: this.#app.picked.subject.value };
  }

  /** Remembers where a jump starts; to be called before it. */
  leave(): void {
    const current = this.#here(),
      last = this.#back.at(-1);
    if (!current || (last && same(last, current))) return;
    this.#back = [...this.#back.slice(1 - MOST), current];
    this.#forward = [];
    this.#tell();
  }

  go(by: 1 | -1): void {
    const from = by < 0 ? this.#back : this.#forward,
      to = by < 0 ? this.#forward : this.#back;
    const current = this.#here(),
      stop = from.pop();
    if (!current || !stop) return;
    to.push(current);
    this.#tell();
    this.#app.picture?.show(stop.place, stop.subject.kind === "nodes" ? (stop.subject.nodes[0] ?? 0) : 0);
    this.#app.picked.resume(stop.subject);
  }

  #tell(): void {
    this.reach.value = { back: this.#back.length, forward: this.#forward.length };
  }

  // --------------------------------------------------------------------------------------------------------- bookmarks

  setBookmarks(nodes: readonly number[]): void {
    this.bookmarks.value = nodes;
    this.#app.picture?.mark({ bookmarks: nodes });
  }

  /** Marks nodes, or takes their marks off where all of them have one. */
  toggleBookmarks(nodes: readonly number[]): void {
    const marked = this.bookmarks.value;
    const all = nodes.every((node) => marked.includes(node));
    const next = all
      ? marked.filter((node) => !nodes.includes(node))
      : [...marked, ...nodes.filter((node) => !marked.includes(node))];
    this.setBookmarks(next);
    this.onBookmarks([...next]);
  }

  nextBookmark(by: 1 | -1): void {
    const marked = this.bookmarks.value.filter((node) => this.#app.store.nodes.has(node));
    if (!marked.length) {
      this.#app.notices.toast("info", "There is no bookmark yet: B marks the selected node.");
      return;
    }
    const at = marked.indexOf(this.#app.picked.nodes[0] ?? 0);
    this.#app.picked.reveal(
      marked[at < 0 ? (by > 0 ? 0 : marked.length - 1) : (at + by + marked.length) % marked.length]!,
    );
  }

  // ------------------------------------------------------------------------------------------------------------ trails

  /** Lights what nodes depend on, or what depends on them. */
  light(nodes: readonly number[], way: "ancestors" | "descendants"): void {
    const reached = cone(this.#app.store, nodes, way);
    const subject = nodes.length === 1 ? nodeLabel(this.#app.store, nodes[0]!) : plural(nodes.length, "node");
    this.#show(`${plural(reached.size - nodes.length, way.slice(0, -1), way)} of ${subject}`, reached);
  }

  /** Lights all paths between the first and the last of some nodes. */
  lightPaths(nodes: readonly number[]): void {
    const [first, last] = [nodes[0]!, nodes.at(-1)!];
    const { store } = this.#app;
    const nodesBetween = between(store, first, last);
    const ends = `${nodeLabel(store, first)} and ${nodeLabel(store, last)}`;
    if (nodesBetween.size)
      this.#show(`${plural(nodesBetween.size, "node")} on the paths between ${ends}`, nodesBetween);
    else this.#app.notices.toast("info", `No path leads from one to the other: ${ends}`);
  }

  /** Lights nodes, and values besides those between them. */
  lightNodes(title: string, nodes: readonly number[], values: readonly number[] = []): void {
    this.#show(title, new Set(nodes), values);
  }

  #show(title: string, nodes: Set<number>, values: readonly number[] = []): void {
    this.trail.value = { title, nodes: [...nodes] };
    const between = valuesBetween(this.#app.store, nodes);
    this.#app.picture?.mark({ trail: { nodes, values: new Set([...between, ...values]) } });
  }

  unlight(): void {
    this.trail.value = null;
    this.#app.picture?.mark({ trail: { nodes: new Set(), values: new Set() } });
  }

  /** Forgets lit and bookmarked nodes that a commit removed. */
  follow(): void {
    if (this.trail.value) this.unlight();
    const left = this.bookmarks.value.filter((node) => this.#app.store.nodes.has(node));
    if (left.length < this.bookmarks.value.length) this.setBookmarks(left);
  }
}

/** Whether two stops show the same part of the picture and the same subject in the inspector. */
function same({ place: a, subject }: Stop, { place: b, subject: other }: Stop): boolean {
  const unmoved = a.scope === b.scope && a.x === b.x && a.y === b.y && a.zoom === b.zoom;
  return unmoved && JSON.stringify(subject) === JSON.stringify(other);
}
