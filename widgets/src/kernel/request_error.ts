/** Refused requests: RequestError, with its code, its message and what to do. */

import type { WireError } from "./protocol.ts";

/** The refusal of a request; `message` is one sentence, `hint` what to do. */
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

/** The refusal of all requests once the kernel has gone. */
export function goneError(): RequestError {
  return new RequestError({
    code: "disconnected",
    message: "The kernel is not there any more.",
    hint: "Run the cell again to edit.",
  });
}

/** Any thrown value as a RequestError; code "page" where no request was refused. */
export function asRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  return new RequestError({ code: "page", message: error instanceof Error ? error.message : String(error) });
}
