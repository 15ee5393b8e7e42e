/**
 * The widget without a kernel, in a page that holds everything that one would answer: see
 * onnxlab/notebook/widgets/html_page.py.
 *
 * What is only visual works as ever; edits and runs are not offered, since `can` refuses them.
 */

import type { About, Costs, Documentation, Hello, NodeInfo, Snapshot, ValueInfo } from "./protocol.ts";
import type { Message, Transport } from "./transport.ts";

/** A model as the page carries it. */
export interface Recorded {
  hello: Hello;
  snapshot: Snapshot;
  /** The snapshot's buffer, base64. */
  buffer: string;
  nodes: Record<string, NodeInfo>;
  /** By operator, "domain::Op". */
  docs: Record<string, Documentation>;
  values: Record<string, ValueInfo>;
  /** Of the model as a whole. */
  about: About;
  costs: Costs;
  blocks: { blocks: number[][] };
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
  switch (method) {
    case "hello":
      return { result: model.hello };
    case "probe":
      return { result: {} };
    case "snapshot":
      return { result: model.snapshot, b64: [model.buffer] };
    case "inspect":
      return found(model.nodes[params.node!]);
    case "doc":
      return found(model.docs[operatorOf(model, params.node!)]);
    case "value":
      return found(model.values[params.value!]);
    case "about":
      return found(model.about);
    case "costs":
      return found(model.costs);
    case "blocks":
      return found(model.blocks);
    default:
      return {
        error: {
          code: "offline",
          message: "This page has no kernel.",
          hint: "Open the model in a notebook to edit or run it.",
        },
      };
  }
}

function operatorOf(model: Recorded, node: number): string {
  const info = model.nodes[node];
  return info?.domain ? `${info.domain}::${info.op_type}` : (info?.op_type ?? "");
}

function found(result: unknown): Answer {
  if (result) return { result };
  return { error: { code: "offline", message: "The model is too large for its details to be in this page." } };
}
