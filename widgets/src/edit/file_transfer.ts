/** Files between the page and the kernel: uploads, downloads, and files that are dropped on the picture. */

import type { App } from "../app.ts";
import { GRAPH_INPUT, INITIALIZER } from "../kernel/protocol.ts";
import { valueLabel } from "../model/names.ts";

/** Bytes of a piece of a file: base64 of it stays well below what one message may have. */
const PIECE = 384 * 1024;

export class FileTransfer {
  readonly #app: App;

  constructor(app: App) {
    this.#app = app;
  }

  /**
   * Lets go of a file on the picture: a model is inserted, on a line where that is; an array becomes what the input
   * under it is fed in a run, or the data of an initializer that the node under it reads.
   */
  async drop(file: File, { value, node }: { value: number; node: number }): Promise<void> {
    const { store } = this.#app,
      found = store.values.get(value);
    if (!/\.(npy|npz|pb)$/i.test(file.name)) {
      const wire = value && store.uses(value).length ? [value] : [];
      await this.#app.dialogs.insertModel({ connect: wire, feed: wire, file });
    } else if (found && found.flags & GRAPH_INPUT) await this.#feed(found.name, file);
    else {
      const stored = [value, ...(store.nodes.get(node)?.inputs ?? [])].filter(
        (id) => (store.values.get(id)?.flags ?? 0) & INITIALIZER,
      );
      await this.#replaceData(stored, file);
    }
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

  /** Hands nodes out as a file of their own. */
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

  /** Sends a file to the kernel, piece by piece; returns the id by which an edit names it. */
  async upload(file: File): Promise<string> {
    const id = `${file.name}/${file.size}/${Date.now()}`;
    let offset = 0;
    do {
      const piece = new Uint8Array(await file.slice(offset, offset + PIECE).arrayBuffer());
      await this.#app.client.request("upload", { file: id, name: file.name, offset, data: toBase64(piece) });
      offset += piece.length;
    } while (offset < file.size);
    return id;
  }
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
