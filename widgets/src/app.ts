/**
 * One view: its parts, and what they hear of each other.
 *
 * The model's truth is in the kernel: a command is a request, its effect arrives as a commit event through the store,
 * and a refusal becomes a toast. Nothing here renders.
 */

import { Cutting } from "./edit/cutting.ts";
import { Dialogs } from "./edit/dialogs.ts";
import { EditImpact } from "./edit/edit_impact.ts";
import { FileTransfer } from "./edit/file_transfer.ts";
import { ModelEdits } from "./edit/model_edits.ts";
import { OperatorPalette } from "./edit/operator_palette.ts";
import { Rewriting } from "./edit/rewriting.ts";
import { WireDrag } from "./edit/wire_drag.ts";
import { Finder } from "./find/finder.ts";
import { Travel } from "./find/navigation.ts";
import { Selection } from "./find/selection.ts";
import type { Flow, Reading } from "./graph/scene/flow.ts";
import type { InView } from "./graph/view/lookout.ts";
import type { Client } from "./kernel/client.ts";
import { asRequestError, type RequestError } from "./kernel/request_error.ts";
import { Profile } from "./look/profile.ts";
import { Runs } from "./look/runs.ts";
import { Numbers } from "./look/tensor_state.ts";
import { Watches } from "./look/watches.ts";
import { Blocks } from "./model/equal_blocks.ts";
import type { CommitChange, Store } from "./model/store.ts";
import { Notices } from "./panels/parts/toasts.tsx";
import { Cell } from "./state.ts";
import type { Picture, PointerTarget } from "./view_contract.ts";

export type Drawer =
  | "problems"
  | "results"
  | "tensor"
  | "changes"
  | "history"
  | "table"
  | "dims"
  | "profile"
  | "rewrites"
  | "watches"
  | null;

/** MOST_CHECKED of onnxlab/notebook/session/hub.py. */
const MOST_CHECKED = 20_000;

export class App {
  readonly store: Store;
  readonly client: Client;
  readonly notices = new Notices();
  readonly picked = new Selection(this);
  readonly edits = new ModelEdits(this);
  readonly palette = new OperatorPalette(this);
  readonly dialogs = new Dialogs(this);
  readonly files = new FileTransfer(this);
  readonly wires = new WireDrag(this);
  readonly cutting = new Cutting(this);
  readonly rewriting = new Rewriting(this);
  readonly profile = new Profile(this);
  readonly impact = new EditImpact(this);
  readonly blocks = new Blocks(this);
  readonly runs = new Runs(this);
  readonly numbers = new Numbers(this);
  readonly watches: Watches;
  readonly travel = new Travel(this);
  readonly finder: Finder;
  /** The picture; null until it is on the page. */
  readonly attached = new Cell<Picture | null>(null);

  readonly scope = new Cell(0);
  /** The title that stands for the model's own name; "" where the name is to show. */
  readonly title = new Cell("");
  readonly drawer = new Cell<Drawer>(null);
  readonly inspectorOpen = new Cell(true);
  /** Height of the widget in pixels; 0 where the page around it sets the height. */
  readonly height = new Cell(0);
  /** Height of the drawer in pixels; 0: as high as its content. */
  readonly drawerHeight = new Cell(0);
  /** Whether the tree beside the picture shows. */
  readonly outlineOpen = new Cell(false);
  /** The groups that show, and those around what shows. */
  readonly seen = new Cell<InView>({ path: [], groups: new Set() });
  readonly menu = new Cell<PointerTarget | null>(null);
  /** Whether it is asked for a model to compare with. */
  readonly comparing = new Cell(false);
  /** Whether the page of keys shows. */
  readonly keysOpen = new Cell(false);
  /** The direction asked of the picture, and the direction that it has. */
  readonly reading = new Cell<Reading>("auto");
  readonly flow = new Cell<Flow>("down");
  /** Called when another direction was chosen, to write the trait. */
  onReading: (reading: Reading) => void = () => undefined;
  /** Whether what is many times taller than wide is drawn in columns. */
  readonly columns = new Cell(true);
  /** Whether columns would change the picture now. */
  readonly tall = new Cell(false);
  /** Called when columns were turned on or off, to write the trait. */
  onColumns: (columns: boolean) => void = () => undefined;
  /** The reason why there is no model to show; null while one may still come. */
  readonly failure = new Cell<RequestError | null>(null);

  #offs: (() => void)[] = [];

  constructor(client: Client) {
    this.client = client;
    this.store = client.store;
    this.finder = new Finder(this);
    this.watches = new Watches(this);
    this.#offs.push(
      this.store.on("reset", () => this.#afterReset()),
      this.store.on("commit", (change) => this.#afterCommit(change)),
      client.on("progress", (event) => this.runs.progress(event)),
      client.on("overlay", (overlay) => this.runs.color(overlay)),
      client.on("line", (line) => {
        this.edits.line.value = line;
      }),
      client.on("trouble", (error) => this.notices.fail(error)),
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
      picture.on("select", (nodes) => this.picked.take(nodes)),
      picture.on("selectvalue", (value) => this.picked.takeValue(value)),
      picture.on("selectgroup", (group) => this.picked.takeGroup(group)),
      picture.on("wire", ({ value, shown }) => this.wires.begin(value, shown)),
      picture.on("wireover", (node) => this.wires.over(node)),
      picture.on("wiredrop", ({ node, share }) => void this.wires.drop(node, share)),
      picture.on("leave", () => this.travel.leave()),
      picture.on("seen", (seen) => {
        this.seen.value = seen;
      }),
      picture.on("laidout", ({ flow, isTall }) => {
        this.flow.value = flow;
        this.tall.value = isTall;
      }),
      picture.on("contextmenu", (target) => {
        this.menu.value = target;
      }),
      picture.on("scope", (scope) => {
        this.scope.value = scope;
      }),
      this.store.on("diagnostics", () => this.watches.mark()),
    );
    picture.reading = this.reading.value;
    picture.columns = this.columns.value;
    picture.mark({
      heat: this.runs.overlay.value,
      pinned: this.numbers.pinned.value,
      bookmarks: this.travel.bookmarks.value,
    });
    this.watches.mark();
  }

  /** Called to fill the window, or to go back into the page. */
  toggleFull: () => void = () => undefined;

  /** Lets the picture read another way. */
  setReading(reading: Reading): void {
    this.reading.value = reading;
    if (this.picture) this.picture.reading = reading;
  }

  setColumns(columns: boolean): void {
    this.columns.value = columns;
    if (this.picture) this.picture.columns = columns;
  }

  dispose(): void {
    for (const off of this.#offs) off();
    this.impact.dispose();
    this.blocks.dispose();
    this.watches.dispose();
    this.notices.dispose();
    this.#offs = [];
    this.attached.value = null;
  }

  #afterReset(): void {
    this.numbers.forget();
    this.numbers.setPinned(this.store.pinned);
    this.blocks.refresh();
    this.finder.invalidate();
    this.picked.dropMissing();
    this.finder.searchAgain();
    if (this.rulesFollow) this.checkRules();
  }

  /** Whether ONNX's rules are checked as a matter of course: in larger models that takes seconds. */
  get rulesFollow(): boolean {
    return this.store.nodes.size <= MOST_CHECKED;
  }

  /** Has ONNX's rules checked: what they find comes as an event. A page without a kernel has it recorded. */
  checkRules(): void {
    if (this.client.can.edit === false) return;
    // A kernel that is gone has a banner of its own.
    this.client.request("check", {}).catch(() => undefined);
  }

  #afterCommit(change: CommitChange): void {
    this.finder.invalidate();
    this.picked.dropMissing();
    this.impact.follow(change);
    this.cutting.giveUp();
    this.rewriting.follow();
    this.numbers.forget();
    this.travel.follow();
    this.blocks.refresh();
    if (change.structural || change.nodes.length) {
      this.finder.searchAgain();
      this.picture?.mark({ statistics: null });
    }
  }
}
