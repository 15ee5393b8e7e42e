/** Files between the page and the kernel: uploads, downloads, and files that are dropped on the picture. */

import type { App } from "../app.ts";
import { type FileOffer, GRAPH_INPUT, INITIALIZER } from "../kernel/protocol.ts";
import { plural, valueLabel } from "../model/names.ts";
import { Cell } from "../state.ts";

/** Bytes of a piece of a file: base64 of it stays well below what one message may have. */
const PIECE = 384 * 1024;

/** A file that was dropped or is to be chosen: on its way to the kernel, then with what may be done with it. */
export interface FileInHand {
  /** The file; null until it is chosen. */
  file: File | null;
  /** The id by which the kernel knows it. */
  id: string;
  /** The share of the file that has arrived, 0 to 1. */
  sent: number;
  offer: FileOffer | null;
  /** Values that its first input reads, and instead of which its first output is read, where it is inserted; 0: none. */
  wires: Wires;
  /** Whether it was asked for to be inserted. */
  insert: boolean;
}

export interface Wires {
  connect: number;
  feed: number;
}

const NOWHERE: Wires = { connect: 0, feed: 0 };

export class FileTransfer {
  readonly inHand = new Cell<FileInHand | null>(null);
  readonly #app: App;
  readonly #sent = new WeakMap<File, Promise<string>>();

  constructor(app: App) {
    this.#app = app;
  }

  /** Opens the panel that asks for a file; with `wires` to insert it there. */
  choose(wires: Wires | null = null): void {
    if (!this.#app.client.editable) return;
    this.inHand.value = { file: null, id: "", sent: 0, offer: null, wires: wires ?? NOWHERE, insert: wires !== null };
  }

  /**
   * Lets go of a file on the picture: an array becomes what the input under it is fed in a run, or the data of an
   * initializer that the node under it reads; for all else a panel asks.
   */
  async drop(file: File, { value, node }: { value: number; node: number }): Promise<void> {
    const { store } = this.#app,
      record = store.values.get(value),
      onto = value && store.uses(value).length ? value : 0,
      offer = await this.take(file, { connect: onto, feed: onto }, onto > 0);
    if (!offer?.arrays) return;
    const stored = [value, ...(store.nodes.get(node)?.inputs ?? [])].filter(
      (id) => (store.values.get(id)?.flags ?? 0) & INITIALIZER,
    );
    const feeds = record && record.flags & GRAPH_INPUT;
    if (!feeds && !(offer.arrays === 1 && (stored.length || offer.refused))) return;
    this.inHand.value = null;
    if (feeds) await this.#feed(record.name, file);
    else await this.#replaceData(stored, file);
  }

  /** Sends a file and asks the kernel what it is; null where it cannot be sent, or was put away meanwhile. */
  async take(file: File, wires = NOWHERE, insert = false): Promise<FileOffer | null> {
    const show = (change: Partial<FileInHand>) => {
      const { value } = this.inHand;
      if (value?.file !== file) return false;
      this.inHand.value = { ...value, ...change };
      return true;
    };
    this.inHand.value = { file, id: "", sent: 0, offer: null, wires, insert };
    try {
      const id = await this.upload(file, (sent) => show({ sent }));
      const offer = await this.#app.client.request("file", { file: id });
      return show({ id, sent: 1, offer }) ? offer : null;
    } catch (error) {
      if (this.inHand.value?.file === file) this.inHand.value = null;
      this.#app.notices.fail(error);
      return null;
    }
  }

  /** Shows a file in the place of the model. */
  async open(file: string): Promise<void> {
    await this.#app.client.request("open", { file });
  }

  /** Shows nodes as a model of their own in the place of the model. */
  async openPart(nodes: number[]): Promise<void> {
    await this.#app.client.request("open", { nodes }).catch((error) => this.#app.notices.fail(error));
  }

  /** Shows the model again that was shown before. */
  async back(): Promise<void> {
    await this.#app.client.request("open", { file: null }).catch((error) => this.#app.notices.fail(error));
  }

  /** Tells that this model is shown in the place of another, with the way back. */
  tellOpened(former: string): void {
    const back = { label: `Back to ${former}`, act: () => void this.back() };
    this.#app.notices.toast(
      "success",
      `Opened ${this.#app.title.value || this.#app.store.title}`,
      "In Python it is view.model.",
      0,
      [back],
    );
    this.#app.edits.line.value = "model = view.model";
  }

  /** Replaces initializers by the tensors of a file that have their names. */
  async applyWeights(file: string, count: number): Promise<void> {
    await this.#app.client.edit("apply_weights", { file });
    this.#app.notices.done(this.#app, `Replaced ${plural(count, "initializer")}`);
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
    await this.#app.dialogs.open(
      `Replace data with ${file.name}`,
      [
        { kind: "choice", name: "value", label: "Initializer", choices },
        { kind: "file", name: "file", label: "File", accept: ".npy,.npz,.pb", initial: file },
      ],
      ({ value, file: sent }) =>
        this.#app.edits.make("set_initializer", "value", [Number(value)], { array: { file: String(sent) } }),
    );
  }

  /** Hands nodes out as a file of their own, or for none the whole model. */
  async download(nodes: number[]): Promise<void> {
    try {
      const { result, buffer } = await this.#app.client.requestBytes("extract", { nodes });
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([buffer as BlobPart], { type: "application/octet-stream" }));
      link.download = result.name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      this.#app.edits.line.value = result.python;
      this.#app.notices.toast("success", `Downloaded ${result.name}`, result.python);
    } catch (error) {
      this.#app.notices.fail(error);
    }
  }

  /** Sends a file to the kernel, piece by piece and once; returns the id by which requests name it. */
  upload(file: File, progress: (sent: number) => void = () => undefined): Promise<string> {
    const before = this.#sent.get(file);
    if (before) return before;
    const sending = this.#send(file, progress);
    this.#sent.set(file, sending);
    sending.catch(() => this.#sent.delete(file));
    return sending;
  }

  async #send(file: File, progress: (sent: number) => void): Promise<string> {
    const id = `${file.name}/${file.size}/${Date.now()}`;
    let offset = 0;
    do {
      const piece = new Uint8Array(await file.slice(offset, offset + PIECE).arrayBuffer());
      await this.#app.client.request("upload", { file: id, name: file.name, offset, data: toBase64(piece) });
      offset += piece.length;
      progress(file.size ? offset / file.size : 1);
    } while (offset < file.size);
    return id;
  }
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
