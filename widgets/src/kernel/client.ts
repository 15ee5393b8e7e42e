/**
 * Talks to the kernel for one view: requests with ids, each with exactly one reply; numbered events into the store.
 *
 * The channel may lose, repeat or reorder messages and the kernel may be busy for minutes. So: a gap in the numbers, or
 * a reply from a version that the store has not seen, asks for a snapshot; a request without a reply while later ones
 * are answered was lost, and is asked again if that is harmless; silence is shown as waiting, never as an error.
 */

import { Emitter } from "../emitter.ts";
import {
  type CommitEvent, type EditMethod, type Hello, type KernelEvent, type Method, type OverlayNumbers, type Params, type ProgressEvent,
  type Result, type Snapshot, type WireError, METHODS, PROTOCOL,
} from "./protocol.ts";
import type { Store } from "../model/store.ts";
import type { Message, Transport } from "./transport.ts";

/**
 * connecting: no snapshot yet · ready · waiting: something is unanswered for a while · silent: for long ·
 * gone: the kernel or its side of the view is away for good.
 */
export type Connection = "connecting" | "ready" | "waiting" | "silent" | "gone";

export interface ClientEvents {
  connection: Connection;
  progress: ProgressEvent;
  /** An edit of this view in Python. */
  line: string;
  overlay: OverlayNumbers | null;
  /** An error that no request can carry, such as a snapshot that cannot be read. */
  trouble: RequestError;
}

/** Milliseconds. */
export interface Patience {
  /** Until a banner says that the kernel is busy. */
  slow: number;
  /** Between questions whether the kernel is still there, while something is unanswered. */
  ping: number;
  /** Until the banner says that the kernel may be gone. */
  silent: number;
  /** For an answer, when the channel itself gave reason to doubt. */
  doubt: number;
  /** For an event that others overtook, before a snapshot is asked for. */
  gap: number;
}

const PATIENCE: Patience = { slow: 1200, ping: 4000, silent: 20_000, doubt: 4000, gap: 60 };

/** What a request was refused with; `message` is one sentence, `hint` what to do. */
export class RequestError extends Error {
  readonly code: string;
  readonly hint: string;
  readonly node: number | string | undefined;

  constructor(error: WireError) {
    super(error.message);
    this.name = "RequestError";
    this.code = error.code;
    this.hint = error.hint ?? "";
    this.node = error.node;
  }

  /** The message and what to do, as running text. */
  get sentence(): string {
    if (!this.hint) return this.message;
    return /[.!?:;]$/.test(this.message) ? `${this.message} ${this.hint}` : `${this.message}. ${this.hint}`;
  }
}

interface Answer {
  result: unknown;
  buffers: DataView[];
}

interface Pending {
  id: number;
  method: Method;
  params: unknown;
  sent: number;
  /** When the kernel answered a ping sent after this request; 0: it did not yet. */
  overtaken: number;
  resolve: (answer: Answer) => void;
  reject: (error: RequestError) => void;
}

export class Client {
  connection: Connection = "connecting";
  session = "";
  /** Gone because Python closed this view, not because the kernel ended. */
  closedByKernel = false;
  /** What this kernel offers (Hello.can); empty before it answered. */
  can: Record<string, boolean> = {};

  readonly store: Store;
  #transport: Transport;
  #patience: Patience;
  #pending = new Map<number, Pending>();
  /** Views of one model share the channel: each counts from its own random place, so replies find their view. */
  #nextId = Math.floor(Math.random() * 2 ** 31) * 2 ** 20 + 1;
  /** Number of the last event that the store holds; null while a snapshot is on its way. */
  #seq: number | null = null;
  #early = new Map<number, KernelEvent>();
  #syncing: Promise<void> | null = null;
  #recovering = false;
  #timer: ReturnType<typeof setInterval> | null = null;
  #lastHeard = Date.now();
  #lastPing = 0;
  /** Id of the ping under way, 0: none. */
  #pingId = 0;
  #doubtUntil = 0;
  #disposed = false;
  #offs: (() => void)[] = [];
  readonly #emitter = new Emitter<ClientEvents>();

  constructor(transport: Transport, store: Store, patience: Partial<Patience> = {}) {
    this.#transport = transport;
    this.store = store;
    this.#patience = { ...PATIENCE, ...patience };
    this.#offs.push(
      transport.onMessage((message) => this.#receive(message)),
      transport.onState((state) => (state === "closed" ? this.#gone() : this.#doubt())),
    );
  }

  /** Whether edits can be made now: there is a model, and a kernel that is not known to be away. */
  get editable(): boolean {
    return this.can.edit !== false && this.store.version > 0 && this.connection !== "gone" && this.connection !== "connecting";
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
    const first = this.#ask("snapshot", {});
    first.catch(() => undefined); // the greeting says what is wrong
    const binary = await greeting;
    await this.resync(binary ? first : undefined);
  }

  /** Returns whether binary buffers arrive. */
  async #greet(): Promise<boolean> {
    const { result, buffers } = await this.#ask("hello", {});
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
  resync(asked?: Promise<Answer>): Promise<void> {
    this.#syncing ??= this.#fetchSnapshot(asked).finally(() => {
      this.#syncing = null;
    });
    return this.#syncing;
  }

  async #fetchSnapshot(asked?: Promise<Answer>): Promise<void> {
    this.#seq = null;
    let { result, buffers } = await (asked ?? this.#ask("snapshot", {}));
    if (!buffers[0]) {
      // The probe was answered and binary frames vanish all the same: take the long way round.
      await this.request("probe", { ok: false });
      ({ result, buffers } = await this.#ask("snapshot", {}));
    }
    const snapshot = result as Snapshot;
    const buffer = buffers[0];
    if (!buffer) throw new RequestError({ code: "no_buffer", message: "The kernel sent a model without its graph." });
    this.store.reset(snapshot, buffer);
    this.#seq = snapshot.seq;
    this.#emitter.emit("overlay", snapshot.overlay ?? null);
    this.#drain();
    this.#settle();
  }

  /** Sends a request and waits for its reply, however long that takes; rejects with RequestError. */
  async request<M extends Method>(method: M, params: Params<M>): Promise<Result<M>> {
    return (await this.#ask(method, params)).result as Result<M>;
  }

  /** A request whose answer comes with bytes. */
  async requestBytes<M extends Method>(method: M, params: Params<M>): Promise<{ result: Result<M>; buffer: DataView }> {
    const { result, buffers } = await this.#ask(method, params);
    if (!buffers[0]) throw new RequestError({ code: "no_buffer", message: "The kernel's answer came without its bytes." });
    return { result: result as Result<M>, buffer: buffers[0] };
  }

  /** Starts a request whose id the caller needs at once: a run, to be stopped by it. */
  begin<M extends Method>(method: M, params: Params<M>): { id: number; reply: Promise<Result<M>> } {
    const id = this.#nextId;
    return { id, reply: this.request(method, params) };
  }

  /** An edit: says which version it was made on, and makes sure that its effect is on screen when it returns. */
  async edit<M extends EditMethod>(method: M, params: Params<M>): Promise<void> {
    const reply = await this.request(method, { ...params, version: this.store.version });
    if (reply.version > this.store.version) await this.resync();
  }

  #ask(method: Method, params: unknown): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#disposed || this.connection === "gone") {
        reject(goneError());
        return;
      }
      const id = this.#nextId++;
      const pending = { id, method, params, sent: Date.now(), overtaken: 0, resolve, reject };
      this.#pending.set(id, pending);
      this.#watch();
      this.#send(pending);
    });
  }

  #send(pending: Pending): void {
    try {
      this.#transport.send({ id: pending.id, method: pending.method, params: pending.params });
    } catch {
      this.#gone();
    }
  }

  // ------------------------------------------------------------------------------------------------ what arrives

  #receive({ content, buffers }: Message): void {
    if (this.#disposed) return;
    if (typeof content.event === "string" && typeof content.seq === "number") {
      this.#heard();
      this.#event(content as unknown as KernelEvent);
    } else if (typeof content.id === "number" && this.#pending.has(content.id)) {
      this.#heard();
      this.#reply(content, buffers);
    }
  }

  #reply(content: Record<string, unknown>, buffers: DataView[]): void {
    const pending = this.#pending.get(content.id as number)!;
    this.#pending.delete(pending.id);
    for (const other of this.#pending.values()) {
      if (pending.id > other.id && !METHODS[pending.method].long) other.overtaken ||= Date.now();
    }
    if (content.error) pending.reject(new RequestError(content.error as WireError));
    else pending.resolve({ result: content.result, buffers: buffers.length ? buffers : fromBase64(content.b64) });
    this.#settle();
  }

  #event(event: KernelEvent): void {
    if (event.event === "closed") {
      this.closedByKernel = true;
      this.#gone();
      return;
    }
    if (event.event === "progress") this.#emitter.emit("progress", event);
    if (this.#seq !== null && event.seq <= this.#seq) return;
    this.#early.set(event.seq, event);
    this.#drain();
  }

  /** Applies what follows on without a gap; with a gap, asks for the whole. */
  #drain(): void {
    if (this.#seq === null) return;
    for (const seq of this.#early.keys()) if (seq <= this.#seq) this.#early.delete(seq);
    for (let next = this.#early.get(this.#seq + 1); next; next = this.#early.get(this.#seq + 1)) {
      this.#early.delete(next.seq);
      this.#seq = next.seq;
      this.#applyEvent(next);
    }
    if (this.#early.size) void this.#mendGap();
  }

  #applyEvent(event: KernelEvent): void {
    if (event.event === "commit") this.#applyCommit(event);
    else if (event.event === "diagnostics") this.store.setDiagnostics(event.diagnostics);
    else if (event.event === "overlay") this.#emitter.emit("overlay", event);
    else if (event.event === "history") this.store.setHistory(event.history, event.dirty, event.path);
  }

  #applyCommit(event: CommitEvent): void {
    if (event.version > this.store.version) this.store.apply(event);
    if (event.origin === this.session) this.#emitter.emit("line", event.python ?? "");
  }

  /** Waits a moment for the missing event, then asks for snapshots; a number that none of them reaches was never sent. */
  async #mendGap(): Promise<void> {
    if (this.#recovering) return;
    this.#recovering = true;
    try {
      await new Promise((resolve) => setTimeout(resolve, this.#patience.gap));
      await this.#syncing;
      for (let tries = 0; tries < 3 && this.#early.size && !this.#disposed; tries++) await this.resync();
      this.#early.clear();
    } catch (error) {
      this.#report(error);
    } finally {
      this.#recovering = false;
    }
  }

  #report(error: unknown): void {
    if (!this.#disposed && this.connection !== "gone") this.#emitter.emit("trouble", asRequestError(error));
  }

  // -------------------------------------------------------------------------------------------- silence and loss

  #heard(): void {
    this.#lastHeard = Date.now();
    this.#doubtUntil = 0;
  }

  #doubt(): void {
    if (this.#disposed || this.connection === "gone") return;
    this.#doubtUntil = Date.now() + this.#patience.doubt;
    this.#ping();
  }

  /** Asks whether anybody is there; the answer shows which of the earlier requests were lost. */
  #ping(): void {
    this.#lastPing = Date.now();
    this.#pending.delete(this.#pingId);
    this.#pingId = this.#nextId;
    this.#ask("hello", {}).then(
      ({ result }) => this.#pong(result as Hello),
      () => undefined, // rejected only when everything is: `connection` tells
    );
  }

  #pong(hello: Hello): void {
    const restarted = this.session !== "" && hello.session !== this.session;
    const behind = hello.version !== undefined && hello.version > this.store.version;
    if (restarted) this.session = hello.session;
    if ((restarted || behind) && this.#seq !== null) this.resync().catch((error) => this.#report(error));
  }

  #watch(): void {
    this.#timer ??= setInterval(() => this.#tick(), Math.min(250, this.#patience.slow / 2));
  }

  /** Looks after what is unanswered: shows waiting, asks whether somebody is there, and gives up what was lost. */
  #tick(): void {
    const now = Date.now();
    const { slow, ping, silent } = this.#patience;
    const waiting = [...this.#pending.values()].filter((pending) => !METHODS[pending.method].long);
    for (const pending of waiting) {
      if (pending.id !== this.#pingId && pending.overtaken && now - pending.overtaken > ping / 4) this.#lost(pending);
    }
    if (this.#doubtUntil && now > this.#doubtUntil) {
      this.#gone();
      return;
    }
    const oldest = Math.min(...waiting.map((pending) => pending.sent));
    const quiet = now - Math.max(this.#lastHeard, Math.min(oldest, now));
    if (now - oldest > slow && quiet > slow) this.#connect(quiet > silent ? "silent" : "waiting");
    if (now - oldest > ping && now - this.#lastPing > ping && waiting.length < 20) this.#ping();
    this.#settle();
  }

  /** A reply that will not come: ask again, or say so and look at what the model is now. */
  #lost(pending: Pending): void {
    this.#pending.delete(pending.id);
    if (METHODS[pending.method].repeatable) {
      const again = { ...pending, id: this.#nextId++, sent: Date.now(), overtaken: 0 };
      this.#pending.set(again.id, again);
      this.#send(again);
      return;
    }
    pending.reject(new RequestError({
      code: "lost",
      message: "The kernel's answer was lost.",
      hint: "The picture shows the model as it is now; repeat the step if it had no effect.",
    }));
    if (this.#seq !== null) this.resync().catch((error) => this.#report(error));
  }

  /** Nothing is overdue any more: back to ready, and no timer while nothing is asked. */
  #settle(): void {
    const overdue = [...this.#pending.values()].some(
      (pending) => !METHODS[pending.method].long && Date.now() - Math.max(pending.sent, this.#lastHeard) > this.#patience.slow,
    );
    if (!overdue && this.connection !== "gone" && this.#seq !== null) this.#connect("ready");
    if (this.#pending.size === 0 && !this.#doubtUntil && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
  }

  #connect(connection: Connection): void {
    if (this.connection === connection) return;
    this.connection = connection;
    this.#emitter.emit("connection", connection);
  }

  #gone(): void {
    if (this.#disposed || this.connection === "gone") return;
    this.#connect("gone");
    this.#stop();
  }

  #stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    const left = [...this.#pending.values()];
    this.#pending.clear();
    for (const pending of left) pending.reject(goneError());
  }

  /** Lets go of everything; pending requests are rejected with code "disconnected". */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#offs.forEach((off) => off());
    this.#stop();
    this.#emitter.clear();
  }
}

function goneError(): RequestError {
  return new RequestError({
    code: "disconnected",
    message: "The kernel is not there any more.",
    hint: "Run the cell again to edit.",
  });
}

export function asRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  return new RequestError({ code: "page", message: error instanceof Error ? error.message : String(error) });
}

/** Whether the eight bytes of the hello reply came through; `expected` is their value where the kernel wrote it. */
function probeArrived(expected: unknown, buffer: DataView | undefined): boolean {
  if (buffer?.byteLength !== 8) return false;
  const bytes = Array.from({ length: 8 }, (_, i) => buffer.getUint8(i));
  if (Array.isArray(expected)) return expected.length === 8 && expected.every((byte, i) => byte === bytes[i]);
  const hex = bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return typeof expected !== "string" || expected.length !== 16 || expected.toLowerCase() === hex;
}

function fromBase64(texts: unknown): DataView[] {
  if (!Array.isArray(texts)) return [];
  return texts.map((text: unknown) => {
    const binary = atob(String(text));
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    return new DataView(bytes.buffer);
  });
}
