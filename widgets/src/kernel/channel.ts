/**
 * Requests over a transport: ids, each with exactly one reply, and the state of the connection.
 *
 * The transport may lose, repeat or reorder messages and the kernel may be busy for minutes. A request without a reply
 * while later ones are answered was lost, and is sent again if that is harmless; silence is shown as waiting, never as
 * an error.
 */

import { type Hello, type KernelEvent, METHODS, type Method, type WireError } from "./protocol.ts";
import { goneError, RequestError } from "./request_error.ts";
import type { Message, Transport } from "./transport.ts";

/**
 * connecting: no snapshot yet · ready · waiting: something is unanswered for a while · silent: for long ·
 * gone: the kernel or its side of the view is away for good.
 */
export type Connection = "connecting" | "ready" | "waiting" | "silent" | "gone";

/** Patience of a channel, in milliseconds. */
export interface ChannelTimes {
  /** Milliseconds until a banner says that the kernel is busy. */
  slow: number;
  /** Milliseconds between pings of the kernel while a request is unanswered. */
  ping: number;
  /** Milliseconds until the banner says that the kernel may be gone. */
  silent: number;
  /** Milliseconds to wait for an answer when the transport itself gave reason to doubt. */
  doubt: number;
}

export interface Answer {
  result: unknown;
  buffers: DataView[];
}

/** The events of a channel for its client, and its questions. */
export interface ChannelOwner {
  /** Whether the client holds a snapshot, without which the connection is not "ready". */
  synchronized(): boolean;
  connection(connection: Connection): void;
  event(event: KernelEvent): void;
  /** Called when the kernel answered a ping. */
  pong(hello: Hello): void;
  /** Called when an edit's reply was lost, so that its effect is unknown. */
  lost(): void;
}

interface Pending {
  id: number;
  method: Method;
  params: unknown;
  sent: number;
  /** The time at which the kernel answered a ping sent after this request; 0: it did not yet. */
  overtaken: number;
  resolve: (answer: Answer) => void;
  reject: (error: RequestError) => void;
}

export class Channel {
  connection: Connection = "connecting";
  readonly #transport: Transport;
  readonly #times: ChannelTimes;
  readonly #owner: ChannelOwner;
  readonly #pending = new Map<number, Pending>();
  /** Views of one model share the transport: each counts from its own random place, so replies find their view. */
  #nextId = Math.floor(Math.random() * 2 ** 31) * 2 ** 20 + 1;
  #timer: ReturnType<typeof setInterval> | null = null;
  #lastHeard = Date.now();
  #lastPing = 0;
  /** Id of the ping under way, 0: none. */
  #pingId = 0;
  #doubtUntil = 0;
  #disposed = false;
  readonly #offs: (() => void)[];

  constructor(transport: Transport, times: ChannelTimes, owner: ChannelOwner) {
    this.#transport = transport;
    this.#times = times;
    this.#owner = owner;
    this.#offs = [
      transport.onMessage((message) => this.#receive(message)),
      transport.onState((state) => (state === "closed" ? this.close() : this.#doubt())),
    ];
  }

  /** Whether requests are refused for good. */
  get closed(): boolean {
    return this.#disposed || this.connection === "gone";
  }

  /** The id that the next request gets. */
  get nextId(): number {
    return this.#nextId;
  }

  /** Sends a request and waits for its reply, however long that takes; rejects with RequestError. */
  ask(method: Method, params: unknown): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.closed) {
        reject(goneError());
        return;
      }
      const id = this.#nextId++;
      const pending = { id, method, params, sent: Date.now(), overtaken: 0, resolve, reject };
      this.#pending.set(id, pending);
      this.#timer ??= setInterval(() => this.#tick(), Math.min(250, this.#times.slow / 2));
      this.#send(pending);
    });
  }

  #send(pending: Pending): void {
    try {
      this.#transport.send({ id: pending.id, method: pending.method, params: pending.params });
    } catch {
      this.close();
    }
  }

  #receive({ content, buffers }: Message): void {
    if (this.#disposed) return;
    if (typeof content.event === "string" && typeof content.seq === "number") {
      this.#heard();
      this.#owner.event(content as unknown as KernelEvent);
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
    this.settle();
  }

  #heard(): void {
    this.#lastHeard = Date.now();
    this.#doubtUntil = 0;
  }

  #doubt(): void {
    if (this.closed) return;
    this.#doubtUntil = Date.now() + this.#times.doubt;
    this.#ping();
  }

  /** Asks whether the kernel is there; the answer shows which of the earlier requests were lost. */
  #ping(): void {
    this.#lastPing = Date.now();
    this.#pending.delete(this.#pingId);
    this.#pingId = this.#nextId;
    this.ask("hello", {}).then(
      ({ result }) => this.#owner.pong(result as Hello),
      () => undefined, // rejected only when everything is: `connection` tells
    );
  }

  /** Looks after what is unanswered: shows waiting, pings the kernel, and gives up what was lost. */
  #tick(): void {
    const now = Date.now();
    const { slow, ping, silent } = this.#times;
    const waiting = [...this.#pending.values()].filter((pending) => !METHODS[pending.method].long);
    for (const pending of waiting) {
      if (pending.id !== this.#pingId && pending.overtaken && now - pending.overtaken > ping / 4) this.#lost(pending);
    }
    if (this.#doubtUntil && now > this.#doubtUntil) {
      this.close();
      return;
    }
    const oldest = Math.min(...waiting.map((pending) => pending.sent));
    const quiet = now - Math.max(this.#lastHeard, Math.min(oldest, now));
    if (now - oldest > slow && quiet > slow) this.#connect(quiet > silent ? "silent" : "waiting");
    if (now - oldest > ping && now - this.#lastPing > ping && waiting.length < 20) this.#ping();
    this.settle();
  }

  /** A reply that will not come: asks again where that is harmless, or refuses and tells the owner. */
  #lost(pending: Pending): void {
    this.#pending.delete(pending.id);
    if (METHODS[pending.method].repeatable) {
      const again = { ...pending, id: this.#nextId++, sent: Date.now(), overtaken: 0 };
      this.#pending.set(again.id, again);
      this.#send(again);
      return;
    }
    const error = {
      code: "lost",
      message: "The kernel's answer was lost.",
      hint: "The picture shows the model as it is now; repeat the step if it had no effect.",
    };
    pending.reject(new RequestError(error));
    this.#owner.lost();
  }

  /** Return to ready where nothing is overdue any more, and stop the timer while nothing is asked. */
  settle(): void {
    const heard = this.#lastHeard;
    const overdue = [...this.#pending.values()].some(
      ({ method, sent }) => !METHODS[method].long && Date.now() - Math.max(sent, heard) > this.#times.slow,
    );
    if (!overdue && this.connection !== "gone" && this.#owner.synchronized()) this.#connect("ready");
    if (this.#pending.size === 0 && !this.#doubtUntil && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
  }

  #connect(connection: Connection): void {
    if (this.connection === connection) return;
    this.connection = connection;
    this.#owner.connection(connection);
  }

  /** Gives the kernel up: all requests are rejected with code "disconnected". */
  close(): void {
    if (this.closed) return;
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

  /** Lets go of the transport, and rejects what is pending. */
  dispose(): void {
    this.#disposed = true;
    for (const off of this.#offs) off();
    this.#stop();
  }
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
