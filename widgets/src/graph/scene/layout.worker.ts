/** The Worker's side of layouter.ts: batches of layouts, answered in order. */

import { layout } from "../layout/layout.ts";
import type { LayoutInput } from "../layout/problem.ts";

interface WorkerScope {
  onmessage: ((event: MessageEvent<{ id: number; inputs: LayoutInput[] }>) => void) | null;
  postMessage(message: unknown): void;
}

const scope = self as unknown as WorkerScope;

scope.onmessage = ({ data }) => {
  scope.postMessage({ id: data.id, results: data.inputs.map(layout) });
};
