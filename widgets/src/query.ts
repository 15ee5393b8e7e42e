/**
 * The language of the search box: words as ever, and conditions `field:pattern` or `field>number`, all of which must hold.
 *
 *     op:Conv shape:*,64,*,* dtype:float16 group:layer.3 nan>0 is:input rank:4 inputs>2 -op:Relu
 *
 * Patterns know * for any text, and in shapes for any dim. A condition about values holds for a node by what it makes. Pure.
 */

import { groupWords, shortOp } from "./names.ts";
import { GRAPH_INPUT, GRAPH_OUTPUT, INITIALIZER, type Statistics, fromWire } from "./protocol.ts";
import type { Store } from "./store.ts";
import { elements } from "./tables.ts";

/** What a condition is asked about. */
export interface Asked {
  store: Store;
  /** Statistics of the last run by value. */
  ran: ReadonlyMap<number, Statistics>;
  /** Nodes that a problem is pinned to. */
  wrong: ReadonlySet<number>;
}

type Test = (asked: Asked, kind: "node" | "value", id: number) => boolean;

export interface Query {
  /** Lower-case words that names must hold. */
  words: string[];
  tests: Test[];
  /** Only nodes can fulfil it. */
  nodesOnly: boolean;
  /** What could not be understood, as a sentence; "" when all is well. */
  problem: string;
}

const TEXT_FIELDS: Record<string, (asked: Asked, kind: "node" | "value", id: number) => string[]> = {
  op: ({ store }, kind, id) => (kind === "node" ? [shortOp(store.nodes.get(id)!.op), store.nodes.get(id)!.op] : []),
  name: ({ store }, kind, id) => [(kind === "node" ? store.nodes : store.values).get(id)!.name],
  group: ({ store }, kind, id) => (kind === "node" ? groupWords(store, store.nodes.get(id)!.group) : []),
  dtype: ({ store }, kind, id) => valuesOf(store, kind, id).map((value) => store.values.get(value)?.dtype ?? ""),
  is: (asked, kind, id) => roles(asked, kind, id),
};

const NUMBER_FIELDS: Record<string, (asked: Asked, kind: "node" | "value", id: number) => (number | null)[]> = {
  rank: ({ store }, kind, id) => labels(store, kind, id).map((label) => (label ? dimsOf(label).length : null)),
  inputs: ({ store }, kind, id) => (kind === "node" ? [store.nodes.get(id)!.inputs.filter(Boolean).length] : []),
  outputs: ({ store }, kind, id) => (kind === "node" ? [store.nodes.get(id)!.outputs.filter(Boolean).length] : []),
  elements: ({ store }, kind, id) => labels(store, kind, id).map((label) => elements(label) || null),
  uses: ({ store }, kind, id) => valuesOf(store, kind, id).map((value) => store.uses(value).length),
  nan: (asked, kind, id) => statistics(asked, kind, id, ({ nan }) => nan),
  inf: (asked, kind, id) => statistics(asked, kind, id, ({ inf }) => inf),
  min: (asked, kind, id) => statistics(asked, kind, id, ({ min }) => (min === null ? null : fromWire(min))),
  max: (asked, kind, id) => statistics(asked, kind, id, ({ max }) => (max === null ? null : fromWire(max))),
  mean: (asked, kind, id) => statistics(asked, kind, id, ({ mean }) => (mean === null ? null : fromWire(mean))),
  std: (asked, kind, id) => statistics(asked, kind, id, ({ std }) => (std === null ? null : fromWire(std))),
  zeros: (asked, kind, id) => statistics(asked, kind, id, ({ zeros }) => zeros),
};

/** Names of all fields, for the hint under an unknown one. */
export const FIELDS = [...Object.keys(TEXT_FIELDS), "shape", ...Object.keys(NUMBER_FIELDS)];

const OF_NODES = new Set(["op", "group", "inputs", "outputs"]);

const CONDITION = /^(-?)([a-z]+)(:|<=|>=|<|>|=)(.+)$/;

export function parseQuery(text: string): Query {
  const query: Query = { words: [], tests: [], nodesOnly: false, problem: "" };
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const found = CONDITION.exec(word);
    if (!found || word.includes("::")) {
      const [, , field = "", , pattern = ""] = CONDITION.exec(word.replace("::", "\u0000")) ?? [];
      if (field === "op") query.tests.push(textTest("op", pattern.replace("\u0000", "::")));
      else query.words.push(word.toLowerCase());
      continue;
    }
    const [, not, field, sign, value] = found as unknown as [string, string, string, string, string];
    const test = testFor(field, sign, value);
    if (typeof test === "string") query.problem ||= test;
    else query.nodesOnly ||= !not && OF_NODES.has(field);
    if (typeof test !== "string") query.tests.push(not ? (...asked) => !test(...asked) : test);
  }
  return query;
}

function testFor(field: string, sign: string, value: string): Test | string {
  if (field === "shape") return shapeTest(value);
  if (TEXT_FIELDS[field]) return textTest(field, value);
  if (!NUMBER_FIELDS[field]) return `There is no ${field}: to search by; there are ${FIELDS.join(", ")}.`;
  const limit = Number(value);
  if (Number.isNaN(limit)) return `${field} is compared with a number, and ${value} is none.`;
  const holds: Record<string, (number: number) => boolean> = {
    ":": (n) => n === limit, "=": (n) => n === limit, "<": (n) => n < limit, ">": (n) => n > limit, "<=": (n) => n <= limit, ">=": (n) => n >= limit,
  };
  return (...asked) => NUMBER_FIELDS[field]!(...asked).some((number) => number !== null && holds[sign]!(number));
}

function textTest(field: string, pattern: string): Test {
  const expression = glob(pattern, field === "name" || field === "group");
  const matches = field === "name" ? (text: string) => expression.test(text) : remembered((text) => expression.test(text));
  return (...asked) => TEXT_FIELDS[field]!(...asked).some(matches);
}

/** Few texts are asked about many times. */
function remembered(matches: (text: string) => boolean): (text: string) => boolean {
  const known = new Map<string, boolean>();
  return (text) => {
    let found = known.get(text);
    if (found === undefined) known.set(text, (found = matches(text)));
    return found;
  };
}

/** A pattern as an expression: * is any text; `inside` lets it begin and end anywhere. */
function glob(pattern: string, inside: boolean): RegExp {
  const body = pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*");
  return new RegExp(inside && !pattern.includes("*") ? body : `^${body}$`, "i");
}

function shapeTest(pattern: string): Test {
  const wanted = pattern.split(/[,×x]/).map((dim) => dim.trim());
  const matches = remembered((label) => {
    const dims = dimsOf(label);
    return label !== "" && dims.length === wanted.length && wanted.every((dim, i) => dim === "*" || dim === dims[i]);
  });
  return ({ store }, kind, id) => labels(store, kind, id).some(matches);
}

const dimsOf = (label: string): string[] => (label === "scalar" ? [] : label.split("×"));

function valuesOf(store: Store, kind: "node" | "value", id: number): number[] {
  return kind === "value" ? [id] : store.nodes.get(id)!.outputs.filter(Boolean);
}

function labels(store: Store, kind: "node" | "value", id: number): string[] {
  return valuesOf(store, kind, id).map((value) => store.values.get(value)?.label ?? "");
}

function statistics({ store, ran }: Asked, kind: "node" | "value", id: number, of: (each: Statistics) => number | null): (number | null)[] {
  return valuesOf(store, kind, id).map((value) => {
    const found = ran.get(value);
    return found ? of(found) : null;
  });
}

function roles({ store, wrong }: Asked, kind: "node" | "value", id: number): string[] {
  if (kind === "node") return ["node", wrong.has(id) ? "wrong" : "", store.nodes.get(id)!.name ? "" : "nameless"];
  const { flags } = store.values.get(id)!;
  return ["value", flags & GRAPH_INPUT ? "input" : "", flags & GRAPH_OUTPUT ? "output" : "", flags & INITIALIZER ? "initializer" : ""];
}
