/** The numbers behind the picture: what a run is fed, which tensor is looked into, thumbnails, pinned values. */

import type { App } from "../app.ts";
import type { GivenInput, TensorPart, TensorPicture, ValueRecord } from "../kernel/protocol.ts";
import { GRAPH_INPUT, INITIALIZER } from "../kernel/protocol.ts";
import { Cell } from "../state.ts";
import { pixels } from "./color_map.ts";

/** The way to make an input, with what the page remembers of it. */
export interface Choice extends GivenInput {
  /** Name of the chosen file. */
  fileName?: string;
}

export interface Inputs {
  /** Choices by input; inputs that are left out are as in the last run, or random. */
  choices: Record<string, Choice>;
  sizes: Record<string, number>;
  seed: number;
  /** Seconds that a run may take, 0: no end, null: as many as the view gives it. */
  deadline: number | null;
}

/** A picture with its bytes. */
export interface Drawn {
  part: TensorPart;
  picture: TensorPicture;
  bytes: Uint8Array;
}

const NO_CHOICE: Inputs = { choices: {}, sizes: {}, seed: 0, deadline: null };
const THUMBNAIL = 48,
  REMEMBERED = 60,
  /** Thumbnails of the graph that are kept, and that are asked for at once. */
  MOST_SMALL = 400,
  AT_ONCE = 6;

export class Numbers {
  readonly inputs = new Cell<Inputs>(NO_CHOICE);
  /** Whether the panel that asks for inputs is open. */
  readonly asking = new Cell(false);
  /** The value that the drawer looks into, 0: none. */
  readonly looking = new Cell(0);
  /** The value that is shown at large, 0: none. */
  readonly large = new Cell(0);
  readonly pinned = new Cell<ReadonlySet<number>>(new Set());
  readonly #app: App;
  readonly #thumbnails = new Map<number, Promise<Drawn | null>>();
  /** Thumbnails by value; null: asked for, or there is none. */
  #small = new Map<number, CanvasImageSource | null>();
  #asked = 0;

  constructor(app: App) {
    this.#app = app;
  }

  /** The request of a run besides its nodes; nothing where nothing was chosen. */
  get asked(): {
    seed?: number;
    inputs?: Record<string, GivenInput>;
    sizes?: Record<string, number>;
    deadline?: number;
  } {
    const { choices, sizes, seed, deadline } = this.inputs.value;
    const inputs = Object.fromEntries(
      Object.entries(choices).map(([name, { how, text, file }]) => [name, { how, text, file }]),
    );
    return {
      ...(seed ? { seed } : {}),
      ...(Object.keys(inputs).length ? { inputs } : {}),
      ...(Object.keys(sizes).length ? { sizes } : {}),
      ...(deadline === null ? {} : { deadline }),
    };
  }

  /** The request of a run, in words: "random, seed 3, batch = 2". */
  get inWords(): string {
    const { choices, sizes, seed } = this.inputs.value;
    const words = Object.entries(choices).map(([name, { how, fileName, text }]) =>
      how === "file"
        ? `${name}: ${fileName ?? "a file"}`
        : how === "text"
          ? `${name} = ${text ?? ""}`
          : `${name}: ${how}`,
    );
    if (!words.length) words.push("random", `seed ${seed}`);
    else if (seed) words.push(`seed ${seed}`);
    words.push(...Object.entries(sizes).map(([name, size]) => `${name} = ${size}`));
    return words.join(", ");
  }

  choose(name: string, choice: Choice | null): void {
    const { [name]: _, ...others } = this.inputs.value.choices;
    this.inputs.value = { ...this.inputs.value, choices: choice ? { ...others, [name]: choice } : others };
  }

  size(name: string, size: number | null): void {
    const { [name]: _, ...others } = this.inputs.value.sizes;
    this.inputs.value = { ...this.inputs.value, sizes: size === null ? others : { ...others, [name]: size } };
  }

  /** Model or run changed: thumbnails are of old numbers. */
  forget(): void {
    this.#thumbnails.clear();
    this.#small = new Map();
  }

  /** The thumbnail of a value for the graph; null until it is there, which draws the graph again. */
  readonly small = (value: number): CanvasImageSource | null => {
    const small = this.#small,
      known = small.get(value);
    if (known !== undefined || this.#asked >= AT_ONCE) return known ?? null;
    if (small.size >= MOST_SMALL) small.clear();
    small.set(value, null);
    this.#asked++;
    void this.draw({ value, picture: "heat", pixels: THUMBNAIL })
      .catch(() => null) // a sequence has no picture
      .then((drawn) => {
        this.#asked--;
        if (small === this.#small && drawn) small.set(value, bitmap(drawn));
        this.#app.picture?.mark({});
      });
    return null;
  };

  /** Whether the kernel has numbers of a value, as far as the page knows. */
  known(value: number): boolean {
    const {
      store,
      runs: { results },
    } = this.#app;
    if (!this.#app.client.can.run) return false;
    if ((store.values.get(value)?.flags ?? 0) & INITIALIZER || this.pinned.value.has(value)) return true;
    if (!results.value) return false; // numbers of before an edit are shown too, and marked
    return results.value.byValue.has(value) || ((store.values.get(value)?.flags ?? 0) & GRAPH_INPUT) !== 0;
  }

  /** A small heat map of a value; null where there is none. Asked for once. */
  thumbnail(value: number): Promise<Drawn | null> {
    let thumbnail = this.#thumbnails.get(value);
    if (!thumbnail) {
      if (this.#thumbnails.size >= REMEMBERED) this.#thumbnails.clear();
      thumbnail = this.draw({ value, picture: "heat", pixels: THUMBNAIL }).catch(() => null); // a sequence has no picture
      this.#thumbnails.set(value, thumbnail);
    }
    return thumbnail;
  }

  /** A picture with its bytes. Rejects with RequestError. */
  async draw(request: {
    value: number;
    picture: string;
    pixels?: number;
    rows?: number;
    columns?: number;
    at?: number[];
  }): Promise<Drawn | null> {
    const { result, buffer } = await this.#app.client.requestBytes("tensor", request);
    if (!result.picture) return null;
    return {
      part: result,
      picture: result.picture,
      bytes: new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength),
    };
  }

  look(value: number): void {
    this.looking.value = value;
    this.#app.drawer.value = "tensor";
  }

  /** Shows a value at large; where its numbers are not known yet, the model is run first. */
  async lookAtLarge(value: number): Promise<void> {
    if (!this.known(value)) await this.#app.runs.run(null, { quiet: true });
    if (this.known(value)) this.large.value = value;
  }

  async pin(value: number, on: boolean): Promise<void> {
    try {
      const { pinned } = await this.#app.client.request("pin", { value, on });
      this.setPinned(pinned);
    } catch (error) {
      this.#app.notices.fail(error);
    }
  }

  setPinned(values: readonly number[]): void {
    this.pinned.value = new Set(values);
    this.#app.picture?.mark({ pinned: this.pinned.value });
  }
}

function bitmap({ picture, bytes }: Drawn): CanvasImageSource | null {
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  const context = canvas.getContext("2d");
  context?.putImageData(new ImageData(pixels(picture, bytes), picture.width, picture.height), 0, 0);
  return context && canvas;
}

/** Names that stand alone for a dim. */
export function dimNames(inputs: readonly ValueRecord[]): string[] {
  const names = inputs
    .flatMap(({ label }) => label.split("×"))
    .filter((dim) => /^[A-Za-z_][\w.-]*$/.test(dim) && dim !== "scalar");
  return [...new Set(names)];
}
