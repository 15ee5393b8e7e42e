/**
 * One view's state and commands: what the toolbar, the keys, the menu and the panels call.
 *
 * The model's truth is in the kernel: a command is a request, its effect arrives as a commit event through the store,
 * and a refusal becomes a toast. Nothing here renders.
 */

import { Blast } from "./edit/edit_impact.ts";
import { Blocks } from "./model/equal_blocks.ts";
import { Editing } from "./edit/editing.ts";
import { type Client, type RequestError, asRequestError } from "./kernel/client.ts";
import type { Flow } from "./graph/scene/flow.ts";
import { type Heat, heatOf } from "./look/node_heat.ts";
import { neighbors, nodeLabel, plural, valueLabel } from "./model/names.ts";
import { Numbers } from "./look/tensor_state.ts";
import type { AttributeValue, ProgressEvent, RunResult, Statistics } from "./kernel/protocol.ts";
import { type Hits, SearchIndex } from "./find/search.ts";
import { Cell } from "./state.ts";
import type { Store } from "./model/store.ts";
import { Travel } from "./find/navigation.ts";
import type { Picture, PointerTarget } from "./view_contract.ts";

export interface Toast {
  id: number;
  kind: "error" | "info" | "success";
  text: string;
  /** Further lines, shown on demand. */
  details: string;
  /** A node that the text is about, 0: none. */
  node: number;
}

export type Drawer = "problems" | "results" | "tensor" | "changes" | "history" | "table" | null;

/** The run under way: its request id and how far it is. */
export interface Running {
  id: number;
  done: number;
  total: number;
  node: string;
  stopping: boolean;
}

export interface Results extends RunResult {
  /** Version of the model that was run. */
  version: number;
  byValue: Map<number, Statistics>;
}

export interface SearchState extends Hits {
  query: string;
  /** Index of the hit shown in the picture, -1: none yet. */
  current: number;
}

/** What the inspector is about. */
export type Subject =
  | { kind: "model" }
  | { kind: "nodes"; nodes: number[] }
  | { kind: "value"; value: number }
  | { kind: "group"; group: number };

const NOTHING: Subject = { kind: "model" };
const NO_SEARCH: SearchState = { query: "", hits: [], total: 0, current: -1 };
const MAX_TOASTS = 3;
const TOAST_MS = { info: 5000, success: 3500, error: 12_000 };

export class App {
  readonly store: Store;
  readonly client: Client;
  readonly index: SearchIndex;
  readonly editing = new Editing(this);
  readonly blast = new Blast(this);
  readonly blocks = new Blocks(this);
  readonly numbers = new Numbers(this);
  readonly travel = new Travel(this);
  /** Null until the picture is on the page. */
  readonly attached = new Cell<Picture | null>(null);

  readonly subject = new Cell<Subject>(NOTHING);
  readonly scope = new Cell(0);
  /** What to call the model instead of its own name; "" for that. */
  readonly title = new Cell("");
  readonly running = new Cell<Running | null>(null);
  readonly results = new Cell<Results | null>(null);
  readonly search = new Cell<SearchState>(NO_SEARCH);
  readonly drawer = new Cell<Drawer>(null);
  readonly inspectorOpen = new Cell(true);
  readonly toasts = new Cell<Toast[]>([]);
  readonly menu = new Cell<PointerTarget | null>(null);
  readonly saving = new Cell(false);
  /** Whether the page that asks before a save shows. */
  readonly savePanel = new Cell(false);
  /** What the boxes are colored by; null: by what they are. */
  readonly overlay = new Cell<Heat | null>(null);
  /** A measure is being taken. */
  readonly measuring = new Cell(false);
  /** A name that asks to be edited: the inspector focuses its field. */
  readonly renaming = new Cell(false);

  /** Whether the page of keys shows. */
  readonly keysOpen = new Cell(false);
  /** Which way the picture reads. */
  readonly flow = new Cell<Flow>("down");
  /** Called when the user chose another way, for the trait. */
  onFlow: (flow: Flow) => void = () => undefined;
  /** Whether what is many times taller than wide is drawn in columns. */
  readonly columns = new Cell(true);
  /** Whether that would make a difference now. */
  readonly tall = new Cell(false);
  /** Called when the user chose otherwise, for the trait. */
  onColumns: (columns: boolean) => void = () => undefined;

  /** Why there is no model to show; null while there is hope. */
  readonly failure = new Cell<RequestError | null>(null);

  /** Called with the selected nodes when the user changed them, for the trait. */
  onSelect: (nodes: number[]) => void = () => undefined;

  #nextToast = 1;
  #toastTimers = new Set<ReturnType<typeof setTimeout>>();
  #offs: (() => void)[] = [];

  constructor(client: Client) {
    this.client = client;
    this.store = client.store;
    this.index = new SearchIndex(this.store);
    this.#offs.push(
      this.store.on("reset", () => this.#afterReset()),
      this.store.on("commit", (change) => {
        this.index.invalidate();
        this.#dropMissing();
        this.blast.follow(change);
        this.numbers.forget();
        this.travel.follow();
        this.blocks.refresh();
        if (change.structural || change.nodes.length) {
          this.#searchAgain();
          this.picture?.mark({ statistics: null });
        }
      }),
      client.on("progress", (event) => this.#progress(event)),
      client.on("overlay", (overlay) => {
        this.overlay.value = heatOf(overlay);
        this.picture?.mark({ heat: this.overlay.value });
      }),
      client.on("line", (line) => {
        this.editing.line.value = line;
      }),
      client.on("trouble", (error) => this.fail(error)),
    );
  }

  get picture(): Picture | null {
    return this.attached.value;
  }

  /** Fetches the model; a refusal is shown in the picture's place, with a way to try again. */
  async start(): Promise<void> {
    this.failure.value = null;
    try {
      await this.client.start();
    } catch (error) {
      const refused = asRequestError(error);
      if (refused.code !== "disconnected") this.failure.value = refused;
    }
  }

  /** Connects the picture's events; returns nothing, `dispose` lets go. */
  attach(picture: Picture): void {
    this.attached.value = picture;
    this.scope.value = picture.scope;
    this.#offs.push(
      picture.on("select", (nodes) => this.#selected(nodes)),
      picture.on("selectvalue", (value) => {
        this.subject.value = value ? { kind: "value", value } : NOTHING;
      }),
      picture.on("selectgroup", (group) => {
        this.subject.value = group ? { kind: "group", group } : NOTHING;
      }),
      picture.on("wire", ({ value, shown }) => this.editing.beginWire(value, shown)),
      picture.on("wireover", (node) => this.editing.overNode(node)),
      picture.on("wiredrop", ({ node, share }) => void this.editing.drop(node, share)),
      picture.on("leave", () => this.travel.leave()),
      picture.on("tall", (tall) => {
        this.tall.value = tall;
      }),
      picture.on("contextmenu", (target) => {
        this.menu.value = target;
      }),
      picture.on("scope", (scope) => {
        this.scope.value = scope;
      }),
      this.store.on("diagnostics", (diagnostics) => picture.mark({ diagnostics })),
    );
    picture.flow = this.flow.value;
    picture.columns = this.columns.value;
    picture.mark({
      diagnostics: this.store.diagnostics, heat: this.overlay.value, pinned: this.numbers.pinned.value, bookmarks: this.travel.bookmarks.value,
    });
  }

  /** Lets the picture read another way. */
  setFlow(flow: Flow): void {
    this.flow.value = flow;
    if (this.picture) this.picture.flow = flow;
  }

  setColumns(columns: boolean): void {
    this.columns.value = columns;
    if (this.picture) this.picture.columns = columns;
  }

  dispose(): void {
    for (const off of this.#offs) off();
    this.blast.dispose();
    this.blocks.dispose();
    for (const timer of this.#toastTimers) clearTimeout(timer);
    this.#offs = [];
    this.attached.value = null;
  }

  // --------------------------------------------------------------------------------------------------- selection

  /** The selected nodes, [] when something else or nothing is selected. */
  get selection(): number[] {
    const subject = this.subject.value;
    return subject.kind === "nodes" ? subject.nodes : [];
  }

  /** The scope that one is in: that of what is selected, which may be a subgraph inside the scope that is shown. */
  get here(): number {
    const subject = this.subject.value, { nodes, values, groups } = this.store;
    const of = subject.kind === "nodes" ? nodes.get(subject.nodes[0] ?? 0) : subject.kind === "value" ? values.get(subject.value) : subject.kind === "group" ? groups.get(subject.group) : undefined;
    return of?.scope || this.scope.value;
  }

  #selected(nodes: number[]): void {
    const before = this.selection;
    if (before.length === nodes.length && before.every((id, i) => id === nodes[i])) return;
    this.subject.value = nodes.length ? { kind: "nodes", nodes } : NOTHING;
    this.onSelect(nodes);
  }

  /** Selects nodes everywhere: panels, picture, kernel. */
  select(nodes: number[]): void {
    if (this.picture) this.picture.selection = nodes;
    this.#selected(nodes);
  }

  /** Selects what was selected elsewhere and moves to it, without telling the kernel, which has just told us. */
  selectFromKernel(nodes: number[]): void {
    const known = nodes.filter((id) => this.store.nodes.has(id));
    const before = this.selection;
    if (before.length === known.length && before.every((id, i) => id === known[i])) return;
    this.subject.value = known.length ? { kind: "nodes", nodes: known } : NOTHING;
    if (!this.picture) return;
    this.picture.selection = known;
    if (known.length) this.picture.seek();
  }

  selectValue(value: number): void {
    if (this.selection.length) this.onSelect([]);
    if (this.picture) this.picture.selectedValue = value;
    this.subject.value = { kind: "value", value };
  }

  /** Selects a node, brings it into view and opens what it is folded in. */
  reveal(node: number): void {
    if (!this.store.nodes.has(node)) return;
    this.picture?.reveal(node, { select: true });
    this.#selected([node]);
  }

  /** Selects a group and brings it into view, with what it is in open. */
  revealGroup(group: number): void {
    this.picture?.revealGroup(group);
    if (this.selection.length) this.onSelect([]);
    this.subject.value = { kind: "group", group };
  }

  selectNeighbors(nodes: number[], direction: "producers" | "consumers"): void {
    const found = neighbors(this.store, nodes, direction);
    if (found.length === 0) {
      this.toast("info", direction === "producers" ? "No node makes its inputs." : "No node takes its outputs.");
    } else if (found.length === 1) this.reveal(found[0]!);
    else this.select(found);
  }

  /** Takes the inspector back to what it was about. */
  resume(subject: Subject): void {
    if (subject.kind === "nodes") this.select(subject.nodes.filter((node) => this.store.nodes.has(node)));
    else if (subject.kind === "value" && this.store.values.has(subject.value)) this.selectValue(subject.value);
    else {
      this.select([]);
      this.subject.value = subject.kind === "group" && this.store.groups.has(subject.group) ? subject : NOTHING;
    }
  }

  #afterReset(): void {
    this.numbers.forget();
    this.numbers.setPinned(this.store.pinned);
    this.blocks.refresh();
    this.index.invalidate();
    this.#dropMissing();
    this.#searchAgain();
  }

  /** Forgets what was removed from under the selection and the breadcrumb. */
  #dropMissing(): void {
    const subject = this.subject.value;
    if (subject.kind === "nodes") {
      const left = subject.nodes.filter((id) => this.store.nodes.has(id));
      if (left.length !== subject.nodes.length) this.select(left);
    } else if (subject.kind === "value" && !this.store.values.has(subject.value)) this.subject.value = NOTHING;
    else if (subject.kind === "group" && !this.store.groups.has(subject.group)) this.subject.value = NOTHING;
  }

  // ------------------------------------------------------------------------------------------------------- edits

  /** Makes an edit; false, with a toast, when it was refused. */
  async #edit(edit: Promise<void>): Promise<boolean> {
    try {
      await edit;
      return true;
    } catch (error) {
      this.fail(error);
      return false;
    }
  }

  undo(): void {
    if (this.store.history.undo !== null && this.client.editable) void this.#edit(this.client.edit("undo", {}));
  }

  redo(): void {
    if (this.store.history.redo !== null && this.client.editable) void this.#edit(this.client.edit("redo", {}));
  }

  /** Sets an attribute (null: back to its default). Throws RequestError for the field to show beside itself. */
  setAttribute(node: number, name: string, value: AttributeValue, type: string): Promise<void> {
    return this.client.edit("set_attribute", { node, name, value, type });
  }

  renameNode(node: number, name: string): Promise<void> {
    return this.client.edit("rename_node", { node, name });
  }

  renameValue(value: number, name: string): Promise<void> {
    return this.client.edit("rename_value", { value, name });
  }

  /** Deletes nodes; with `bypass` what they fed is fed by what fed them. Undo is the confirmation. */
  async remove(nodes: number[], bypass: boolean): Promise<void> {
    if (nodes.length === 0 || !this.client.editable) return;
    const what = nodes.length === 1 ? nodeLabel(this.store, nodes[0]!) : plural(nodes.length, "node");
    if (await this.#edit(this.client.edit("remove", { nodes, bypass }))) {
      this.toast("success", `Deleted ${what}`, "Ctrl+Z brings it back.");
    }
  }

  /** Asks for another name of a node or a value, in the inspector. */
  rename({ node = 0, value = 0 }: { node?: number; value?: number }): void {
    if (node) this.reveal(node);
    else this.selectValue(value);
    this.inspectorOpen.value = true;
    this.renaming.value = true;
  }

  /** Shows what saving would change, and asks; where there is no file, says so. */
  async save(): Promise<void> {
    if (this.saving.value || this.savePanel.value || !this.client.editable) return;
    if (this.store.path === null) await this.client.request("unsaved", {}).catch((error) => this.fail(error));
    else this.savePanel.value = true;
  }

  /** Replaces the file, or writes a copy; refused where the model is not any more what the page shows. */
  async confirmSave(copy: boolean): Promise<void> {
    this.saving.value = true;
    try {
      const { path, bytes } = await this.client.request("save", { copy, version: this.store.version });
      this.store.setHistory(this.store.history, false, path);
      this.toast("success", `Saved ${path.split(/[/\\]/).pop()}`, `${path}\n${plural(bytes, "byte")}`);
    } finally {
      this.saving.value = false;
    }
  }

  // ------------------------------------------------------------------------------------------------------- runs

  /** Runs some nodes (null: all) and shows the statistics of what they made. */
  async run(nodes: number[] | null): Promise<void> {
    if (this.running.value || !this.client.editable) return;
    const version = this.store.version;
    const { id, reply } = this.client.begin("run", { nodes, ...this.numbers.asked });
    this.running.value = { id, done: 0, total: nodes?.length ?? this.store.nodes.size, node: "", stopping: false };
    try {
      const result = await reply;
      const byValue = new Map(result.values.map((value) => [value.id, value]));
      this.results.value = { ...result, version, byValue };
      this.index.ran = byValue;
      this.numbers.forget();
      this.picture?.mark({ statistics: result.values });
      this.drawer.value = "results";
    } catch (error) {
      const refused = asRequestError(error);
      if (refused.code === "stopped") this.toast("info", "Run stopped");
      else this.fail(refused);
    } finally {
      this.running.value = null;
    }
  }

  stop(): void {
    const running = this.running.value;
    if (!running || running.stopping) return;
    this.running.value = { ...running, stopping: true };
    this.client.request("stop", { run: running.id }).catch((error) => this.fail(error));
  }

  #progress(event: ProgressEvent): void {
    const running = this.running.value;
    if (running?.id === event.run) {
      this.running.value = { ...running, done: event.done, total: event.total, node: event.node };
    }
  }

  /** Colors the boxes by a measure of the kernel's, null: by what they are. */
  async colorBy(by: string | null): Promise<void> {
    if (this.measuring.value) return;
    this.measuring.value = true;
    try {
      await this.client.request("overlay", { by });
    } catch (error) {
      this.fail(error);
    } finally {
      this.measuring.value = false;
    }
  }

  // ----------------------------------------------------------------------------------------------------- search

  setQuery(query: string): void {
    const found = this.index.search(query);
    this.search.value = { ...found, query, current: -1 };
    this.picture?.mark({ highlights: this.#hitNodes(found) });
  }

  #searchAgain(): void {
    const { query } = this.search.value;
    if (query) this.setQuery(query);
  }

  #hitNodes({ hits }: Hits): number[] {
    return hits.flatMap((hit) => {
      if (hit.kind === "node") return [hit.id];
      const end = this.store.producer(hit.id) ?? this.store.uses(hit.id)[0];
      return end ? [end.node] : [];
    });
  }

  /** Shows the hit at an index (modulo their number) in picture and inspector. */
  showHit(index: number): void {
    const { hits } = this.search.value;
    if (hits.length === 0) return;
    const current = ((index % hits.length) + hits.length) % hits.length;
    this.search.value = { ...this.search.value, current };
    const hit = hits[current]!;
    if (hit.kind === "node") this.reveal(hit.id);
    else this.revealValue(hit.id);
  }

  /** Brings the node at one end of a value into view and shows the value in the inspector. */
  revealValue(value: number): void {
    const end = this.store.producer(value) ?? this.store.uses(value)[0];
    if (end) this.picture?.reveal(end.node, { select: false });
    this.selectValue(value);
  }

  // ----------------------------------------------------------------------------------------------------- toasts

  toast(kind: Toast["kind"], text: string, details = "", node = 0): void {
    const toast = { id: this.#nextToast++, kind, text, details, node };
    this.toasts.value = [...this.toasts.value.slice(1 - MAX_TOASTS), toast];
    const timer = setTimeout(() => {
      this.#toastTimers.delete(timer);
      this.dismiss(toast.id);
    }, TOAST_MS[kind]);
    this.#toastTimers.add(timer);
  }

  /** Shows an error; a kernel that is gone has a banner already. */
  fail(error: unknown): void {
    const refused: RequestError = asRequestError(error);
    if (refused.code === "disconnected") return;
    const node = typeof refused.node === "number" ? refused.node : 0;
    const [line = "", ...rest] = refused.message.split("\n");
    this.toast("error", line, [...rest, refused.hint].filter(Boolean).join("\n"), node);
  }

  dismiss(id: number): void {
    this.toasts.value = this.toasts.value.filter((toast) => toast.id !== id);
  }

  // -------------------------------------------------------------------------------------------------- clipboard

  /** The names of what is selected, one a line, to the clipboard. */
  async copyNames(nodes = this.selection): Promise<void> {
    const subject = this.subject.value;
    const names = nodes.map((id) => this.store.nodes.get(id)?.name || nodeLabel(this.store, id));
    if (names.length === 0 && subject.kind === "value") names.push(valueLabel(this.store, subject.value));
    if (names.length) await this.copyText(names.join("\n"), names.length === 1 ? `Copied ${names[0]}` : `Copied ${plural(names.length, "name")}`);
  }

  async copyText(text: string, done = `Copied ${text}`): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      this.toast("info", done);
    } catch {
      this.toast("error", "The browser did not allow copying.", text);
    }
  }
}
