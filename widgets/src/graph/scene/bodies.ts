/**
 * Pairs of the formals of a subgraph with the inputs and outputs of the node that runs it.
 *
 * onnx.proto and the operators' documentation fix it by place: the branches of an If take nothing and give what the If
 * gives; a Loop hands its condition and carried values on (its body's first input is the iteration, its first output
 * the condition); Scan and SequenceMap pair them one by one, but for the sequence lengths in front of Scan 8.
 */

import type { NodeRecord, ScopeRecord } from "../../kernel/protocol.ts";

/** A value outside of the body and the one inside that it is. */
export interface Binding {
  outer: number;
  inner: number;
}

/** Place among the node's inputs (null: none) and outputs for a place among the body's. */
interface Places {
  input(place: number, node: NodeRecord, body: ScopeRecord): number | null;
  output(place: number): number;
}

const PLACES: Record<string, Places> = {
  If: { input: () => null, output: (place) => place },
  Loop: { input: (place) => (place > 0 ? place : null), output: (place) => place - 1 },
  Scan: { input: (place, node, body) => place + node.inputs.length - body.inputs.length, output: (place) => place },
  SequenceMap: { input: (place) => place, output: (place) => place },
};

/** The values that a body is given; nothing for operators whose pairing is not known. */
export function boundInputs(node: NodeRecord, body: ScopeRecord): Binding[] {
  const places = PLACES[node.op];
  return pairs(body.inputs, node.inputs, (place) => places?.input(place, node, body) ?? null);
}

/** The values that a body gives. */
export function boundOutputs(node: NodeRecord, body: ScopeRecord): Binding[] {
  const places = PLACES[node.op];
  return pairs(body.outputs, node.outputs, (place) => places?.output(place) ?? null);
}

function pairs(
  inner: readonly number[],
  outer: readonly number[],
  placeOf: (place: number) => number | null,
): Binding[] {
  return inner.flatMap((value, place) => {
    const at = placeOf(place),
      other = at === null ? 0 : outer[at];
    return other ? [{ outer: other, inner: value }] : [];
  });
}
