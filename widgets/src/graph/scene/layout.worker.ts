/** Batches of layouts, answered in order: a Worker's program, which the page itself calls where layouts are small. */

import { layout } from "../layout/layout.ts";
import type { LayoutInput, LayoutResult } from "../layout/problem.ts";

export interface LayoutScope {
  /** Set by the program, for its callers. */
  layout?: (input: LayoutInput) => LayoutResult;
  onmessage?: ((event: MessageEvent<{ id: number; inputs: LayoutInput[] }>) => void) | null;
  postMessage?(message: unknown): void;
}

const scope = self as unknown as LayoutScope;

scope.layout = layout;
scope.onmessage = ({ data }) => {
  scope.postMessage?.({ id: data.id, results: data.inputs.map(layout) });
};
