/** Requests of the tab to its kernel: see onnxlab/notebook/widgets/documents.py. */

import type { Kernel, Reply } from "./shared.ts";

/** The reason why a file is not shown, in words for its tab. */
export interface Problem {
  title: string;
  message: string;
  /** True where another kernel may do better. */
  kernel?: boolean;
}

export interface Opened {
  /** Names the widget's model. */
  view?: string;
  problem?: Problem;
}

export interface Saved {
  problem?: Problem;
  /** The parts of the model that the file does not hold as they were. */
  notes?: string[];
}

const MODULE = "onnxlab.notebook.widgets.documents";

/** Asks a function of the kernel's module; texts are literals of Python and of JSON alike. */
export async function ask<Answer extends Opened | Saved>(
  kernel: Kernel,
  method: "open_document" | "save_document",
  ...texts: string[]
): Promise<Answer> {
  const { content } = await kernel.requestExecute({
    code: `import ${MODULE}`,
    silent: true,
    store_history: false,
    user_expressions: { answer: `${MODULE}.${method}(${texts.map((text) => JSON.stringify(text)).join(", ")})` },
  }).done;
  return answerOf(content) as Answer;
}

function answerOf(reply: Reply): Opened | Saved {
  if (reply.status !== "ok") return { problem: refused(reply.ename, reply.evalue) };
  const { answer } = reply.user_expressions ?? {};
  const json = answer?.data?.["application/json"];
  if (typeof json === "object" && json !== null) return json;
  return { problem: refused(answer?.ename, answer?.evalue) };
}

function refused(name = "", value = ""): Problem {
  if (name === "ModuleNotFoundError" || name === "SyntaxError") {
    const message = `This kernel has no onnxlab (${value}). Install it there with: pip install onnxlab`;
    return { title: "onnxlab is not there", message, kernel: true };
  }
  return { title: "The kernel refused", message: `${name}: ${value}`, kernel: true };
}
