/**
 * Every message between the kernel and the page. What the messages hold is declared in Python
 * (onnxlab/notebook/protocol/) and written into the folder `protocol` by `python -m tests.support.twin`.
 *
 * Requests go from the page to the kernel and each gets exactly one reply with the same id; events come from the
 * kernel, numbered, so that a page that missed one notices and asks for a snapshot. Nothing here touches the DOM.
 */

import type { Method, Params } from "./protocol/methods.ts";
import type { Sections } from "./protocol/records.ts";
import type { WireNumber } from "./protocol/words.ts";

export * from "./protocol/commands.ts";
export * from "./protocol/events.ts";
export * from "./protocol/methods.ts";
export * from "./protocol/pairs.ts";
export * from "./protocol/questions.ts";
export * from "./protocol/records.ts";
export * from "./protocol/rewriting.ts";
export * from "./protocol/runs.ts";
export * from "./protocol/watching.ts";
export * from "./protocol/words.ts";

/** Names of the Int32 sections of a snapshot's buffer. */
export type Section = keyof Sections;

export interface Request<M extends Method = Method> {
  id: number;
  method: M;
  params: Params<M>;
}

export interface WireError {
  code: string;
  message: string;
  hint?: string;
  node?: number | string;
}

/** `b64` carries the buffers as base64 where the front end's channel loses binary frames. */
export type Reply = { id: number; b64?: string[] } & ({ result: unknown } | { error: WireError });

/** A wire number as a JavaScript number, NaN and infinities included. */
export function fromWire(number: WireNumber): number {
  if (typeof number === "number") return number;
  return number === "nan" ? Number.NaN : number === "inf" ? Infinity : -Infinity;
}
