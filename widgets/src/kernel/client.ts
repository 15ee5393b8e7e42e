/**
 * Talks to the kernel for one view: requests over a channel; numbered events, in their order, into the store.
 *
 * A gap in the numbers, or a reply from a version that the store has not seen, asks for a snapshot.
 */

import { Emitter } from "../emitter.ts";
import type { Store } from "../model/store.ts";
import { type Answer, Channel, type ChannelTimes, type Connection } from "./channel.ts";
import { EventSequence } from "./event_sequence.ts";
import {
  type CommitEvent,
  type EditMethod,
  type Hello,
  type KernelEvent,
  type Method,
  type OverlayNumbers,
  type Params,
  PROTOCOL,
  type ProgressEvent,
  type Result,
  type Snapshot,
} from "./protocol.ts";
import { asRequestError, RequestError } from "./request_error.ts";
import type { Transport } from "./transport.ts";

export interface ClientEvents {
  connection: Connection;
  progress: ProgressEvent;
  /** An edit of this view in Python. */
  line: string;
  overlay: OverlayNumbers | null;
  /** The view shows another model: all that is known of the one before is void. */
  opened: { former: string };
  /** An error that no request can carry, such as a snapshot that cannot be read. */
  trouble: RequestError;
}

const AGAIN = "Run the cell again, which shows the model anew.";

/** Patience of a client, in milliseconds. */
export interface Patience extends ChannelTimes {
  /** Milliseconds to wait for an event that others overtook, before a snapshot is asked for. */
  gap: number;
}

const PATIENCE: Patience = { slow: 1200, ping: 4000, silent: 20_000, doubt: 4000, gap: 60 };

export class Client {
  session = "";
  /** Gone because Python closed this view, not because the kernel ended. */
  closedByKernel = false;
  /** The abilities of this kernel (Hello.can); empty before it answered. */
  can: Record<string, boolean> = {};

  /** The name of the model that the view showed before, "" where there is none. */
  former = "";
  /** The number of models that the view has shown; null before the first snapshot. */
  #shown: number | null = null;

  readonly store: Store;
  readonly #channel: Channel;
  readonly #events: EventSequence;
  #syncing: Promise<void> | null = null;
  #disposed = false;
  readonly #emitter = new Emitter<ClientEvents>();

  constructor(transport: Transport, store: Store, patience: Partial<Patience> = {}) {
    this.store = store;
    const times = { ...PATIENCE, ...patience };
    this.#events = new EventSequence({
      gap: times.gap,
      apply: (event) => this.#apply(event),
      resync: () => this.resync(),
      syncing: () => this.#syncing,
      disposed: () => this.#disposed,
      failed: (error) => this.#report(error),
    });
    this.#channel = new Channel(transport, times, {
      synchronized: () => this.#events.running,
      connection: (connection) => this.#emitter.emit("connection", connection),
      event: (event) => this.#receive(event),
      pong: (hello) => this.#pong(hello),
      lost: () => this.#refresh(),
    });
  }

  get connection(): Connection {
    return this.#channel.connection;
  }

  /** Whether edits can be made now: there is a model, and a kernel that is not known to be away. */
  get editable(): boolean {
    const connected = this.connection !== "gone" && this.connection !== "connecting";
    return this.can.edit !== false && this.store.version > 0 && connected;
  }

  on<E extends keyof ClientEvents>(event: E, listener: (payload: ClientEvents[E]) => void): () => void {
    return this.#emitter.on(event, listener);
  }

  /**
   * Greets the kernel, tells it whether binary buffers arrive, and fetches the model.
   *
   * The model is asked for with the greeting: on its own each small answer may wait 40 ms for the page to acknowledge the one
   * before it, and the model's, which is large, takes them along. Where buffers do not arrive it is asked for again.
   */
  async start(): Promise<void> {
    const greeting = this.#greet();
    const first = this.#channel.ask("snapshot", {});
    first.catch(() => undefined); // the greeting says what is wrong
    const binary = await greeting;
    await this.resync(binary ? first : undefined);
  }

  /** Returns whether binary buffers arrive. */
  async #greet(): Promise<boolean> {
    const { result, buffers } = await this.#channel.ask("hello", {});
    const hello = result as Hello;
    if (hello.protocol !== PROTOCOL) {
      throw new RequestError({
        code: "protocol",
        message: `The kernel speaks protocol ${hello.protocol}, this page ${PROTOCOL}.`,
        hint: "Install the same onnxlab in the kernel and in Jupyter, then reload the page.",
      });
    }
    this.session = hello.session;
    this.can = hello.can ?? {};
    const binary = probeArrived(hello.probe, buffers[0]);
    // Not waited for: requests are answered in order, so a snapshot that follows already comes in the right form.
    this.request("probe", { ok: binary }).catch((error) => this.#report(error));
    return binary;
  }

  /** Fetches the model anew, or takes the answer to what was asked; calls while one is on its way share it. */
  resync(answer?: Promise<Answer>): Promise<void> {
    this.#syncing ??= this.#fetchSnapshot(answer).finally(() => {
      this.#syncing = null;
    });
    return this.#syncing;
  }

  async #fetchSnapshot(answer?: Promise<Answer>): Promise<void> {
    this.#events.suspend();
    let { result, buffers } = await (answer ?? this.#channel.ask("snapshot", {}));
    if (!buffers[0]) {
      // The probe was answered and binary frames vanish all the same: take the long way round.
      await this.request("probe", { ok: false });
      ({ result, buffers } = await this.#channel.ask("snapshot", {}));
    }
    const snapshot = result as Snapshot;
    const buffer = buffers[0];
    if (!buffer)
      throw new RequestError({ code: "no_buffer", message: "The kernel sent a model without its graph.", hint: AGAIN });
    this.former = snapshot.former ?? "";
    const shown = snapshot.shown ?? 0;
    if (this.#shown !== null && shown !== this.#shown) {
      this.#emitter.emit("opened", { former: this.former });
      return;
    }
    this.#shown = shown;
    this.store.reset(snapshot, buffer);
    this.#emitter.emit("overlay", snapshot.overlay ?? null);
    this.#events.restart(snapshot.seq);
    this.#channel.settle();
  }

  /** Sends a request and waits for its reply, however long that takes; rejects with RequestError. */
  async request<M extends Method>(method: M, params: Params<M>): Promise<Result<M>> {
    return (await this.#channel.ask(method, params)).result as Result<M>;
  }

  /** A request whose answer comes with bytes. */
  async requestBytes<M extends Method>(method: M, params: Params<M>): Promise<{ result: Result<M>; buffer: DataView }> {
    const { result, buffers } = await this.#channel.ask(method, params);
    if (!buffers[0])
      throw new RequestError({
        code: "no_buffer",
        message: "The kernel's answer came without its bytes.",
        hint: AGAIN,
      });
    return { result: result as Result<M>, buffer: buffers[0] };
  }

  /** Starts a request whose id the caller needs at once: a run, to be stopped by it. */
  begin<M extends Method>(method: M, params: Params<M>): { id: number; reply: Promise<Result<M>> } {
    const id = this.#channel.nextId;
    return { id, reply: this.request(method, params) };
  }

  /** An edit: says which version it was made on, and makes sure that its effect is on screen when it returns. */
  async edit<M extends EditMethod>(method: M, params: Params<M>): Promise<void> {
    const reply = await this.request(method, { ...params, version: this.store.version });
    if (reply.version > this.store.version) await this.resync();
  }

  #receive(event: KernelEvent): void {
    if (event.event === "closed") {
      this.closedByKernel = true;
      this.#channel.close();
      return;
    }
    if (event.event === "progress") this.#emitter.emit("progress", event);
    this.#events.add(event);
  }

  #apply(event: KernelEvent): void {
    if (event.event === "commit") this.#applyCommit(event);
    else if (event.event === "diagnostics") this.store.setDiagnostics(event.diagnostics);
    else if (event.event === "overlay") this.#emitter.emit("overlay", event);
    else if (event.event === "opened") this.#emitter.emit("opened", { former: event.former });
    else if (event.event === "history") this.store.setHistory(event.history, event.dirty, event.path);
  }

  #applyCommit(event: CommitEvent): void {
    if (event.version > this.store.version) this.store.apply(event);
    if (event.origin === this.session) this.#emitter.emit("line", event.python ?? "");
  }

  /** Compares a kernel that answered with the store: another session or a newer model is fetched. */
  #pong(hello: Hello): void {
    const restarted = this.session !== "" && hello.session !== this.session;
    const behind = hello.version !== undefined && hello.version > this.store.version;
    if (restarted) this.session = hello.session;
    if (restarted || behind) this.#refresh();
  }

  /** Fetches the model anew, unless a first snapshot is on its way. */
  #refresh(): void {
    if (this.#events.running) this.resync().catch((error) => this.#report(error));
  }

  #report(error: unknown): void {
    if (!this.#channel.closed) this.#emitter.emit("trouble", asRequestError(error));
  }

  /** Lets go of everything; pending requests are rejected with code "disconnected". */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#channel.dispose();
    this.#emitter.clear();
  }
}

/** Whether the eight bytes of the hello reply came through; `expected` is their value where the kernel wrote it. */
function probeArrived(expected: unknown, buffer: DataView | undefined): boolean {
  if (buffer?.byteLength !== 8) return false;
  const bytes = Array.from({ length: 8 }, (_, i) => buffer.getUint8(i));
  if (Array.isArray(expected)) return expected.length === 8 && expected.every((byte, i) => byte === bytes[i]);
  const hex = bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return typeof expected !== "string" || expected.length !== 16 || expected.toLowerCase() === hex;
}
