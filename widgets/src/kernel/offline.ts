/**
 * The widget without a kernel, in a page that holds everything that one would answer: see
 * onnxlab/notebook/widgets/html_page.py.
 *
 * What is only visual works as ever; edits and runs are not offered, since `can` refuses them.
 */

import { METHODS, type Method } from "./protocol.ts";
import type { Message, Transport } from "./transport.ts";

/** A model as the page carries it. */
export interface Recorded {
  /** Answers by method, then by the value of the parameter that `METHODS` names; "" where there is one answer. */
  answers: Record<string, Record<string, unknown>>;
  /** The snapshot's buffer, base64. */
  buffer: string;
}

type Answer = { result: unknown; b64?: string[] } | { error: { code: string; message: string; hint?: string } };

/** Answers each request from what was recorded. */
export function recordedTransport(model: Recorded): Transport {
  const listeners = new Set<(message: Message) => void>();
  return {
    send(content) {
      const id = content.id as number;
      const answer = answerTo(model, String(content.method), content.params as Record<string, number>);
      queueMicrotask(() => listeners.forEach((listener) => listener({ content: { id, ...answer }, buffers: [] })));
    },
    onMessage(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onState: () => () => undefined,
  };
}

function answerTo(model: Recorded, method: string, params: Record<string, number>): Answer {
  const by = METHODS[method as Method]?.recorded;
  if (method === "probe") return { result: {} };
  if (by === undefined) {
    return {
      error: {
        code: "offline",
        message: "This page has no kernel.",
        hint: "Open the model in a notebook to edit or run it.",
      },
    };
  }
  const answers = model.answers[method] ?? {};
  const result = answers[by && String(params[by])];
  if (typeof result === "string") return { result: answers[result] }; // the same text as another answer's
  if (result && method === "snapshot") return { result, b64: [model.buffer] };
  if (result) return { result };
  return { error: { code: "offline", message: "The model is too large for its details to be in this page." } };
}
