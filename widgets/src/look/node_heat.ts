/** Numbers of nodes to color by, as the panels and the picture use them. */

import { fromWire, type OverlayNumbers } from "../kernel/protocol.ts";

export interface Heat {
  title: string;
  unit: string;
  numbers: Map<number, number>;
  /** Texts that the numbers are places of, in this list; [] where the numbers are sizes. */
  kinds: string[];
  /** Numbers that differ by powers of ten, such as errors: a group has the largest of its nodes, not the sum. */
  scale?: "log";
}

/** The numbers of a measure by node; null where there are none. */
export function heatOf(overlay: OverlayNumbers | null): Heat | null {
  if (!overlay || overlay.nodes.length === 0) return null;
  const { title, unit, nodes, numbers, kinds = [] } = overlay;
  return { title, unit, kinds, numbers: new Map(nodes.map((node, i) => [node, fromWire(numbers[i]!)])) };
}

const PREFIXES: [factor: number, prefix: string][] = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""],
  [1e-3, "m"],
  [1e-6, "µ"],
  [1e-9, "n"],
];

/** Three digits with a prefix where there is a unit or the number is large: "1.25 ms", "3.2 M". */
export function quantity(number: number, unit: string): string {
  if (number === 0 || !Number.isFinite(number)) return `${number} ${unit}`.trim();
  const size = Math.abs(number);
  const [factor, prefix] =
    unit || size >= 1e4 ? (PREFIXES.find(([least]) => size >= least) ?? PREFIXES.at(-1)!) : [1, ""];
  const digits = Number((number / factor).toPrecision(3));
  return [String(digits), prefix + unit].filter(Boolean).join(" ");
}
