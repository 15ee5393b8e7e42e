/**
 * The language of the search box: words as ever, and conditions `field:pattern` or `field>number`, all of which must
 * hold.
 *
 *     op:Conv shape:*,64,*,* dtype:float16 group:layer.3 nan>0 is:input rank:4 inputs>2 -op:Relu
 *
 * Patterns know * for any text, and in shapes for any dim. A condition about values holds for a node by what it makes.
 * Pure.
 */

import {
  fromWire,
  GRAPH_INPUT,
  GRAPH_OUTPUT,
  INITIALIZER,
  type Statistics,
  type WireNumber,
} from "../kernel/protocol.ts";
import { groupWords, shortOp } from "../model/names.ts";
import type { NodeRecord, Store, ValueRecord } from "../model/store.ts";
import { elements } from "../model/tables.ts";

import { type AttributeSource, attributePattern } from "./attribute_search.ts";

/** The subject of a condition. */
export interface Asked {
  store: Store;
  /** Statistics of the last run by value. */
  ran: ReadonlyMap<number, Statistics>;
  /** Nodes that a problem is pinned to. */
  wrong: ReadonlySet<number>;
  attributes: AttributeSource;
}

type OfNode = (context: Asked, node: NodeRecord) => boolean;
type OfValue = (context: Asked, value: ValueRecord) => boolean;

/** A condition: what has no part of its own for nodes holds for a node if it holds for a value that it makes. */
export interface Test {
  node: OfNode | null;
  value: OfValue | null;
  not: boolean;
}

export interface Query {
  /** Lower-case words that names must hold. */
  words: string[];
  tests: Test[];
  /** Whether only nodes can fulfil the condition. */
  nodesOnly: boolean;
  /** Names in conditions that are no field of the search: attributes, if nodes have them. */
  attributes: string[];
  /** The part that could not be understood, as a sentence; "" when all is well. */
  problem: string;
}

/** Whether something fulfils a condition. */
export interface Judge {
  node: (record: NodeRecord) => boolean;
  value: (record: ValueRecord) => boolean;
}

/**
 * A condition as a judge; where nearly all is to be judged, values are, once each and in order, before nodes ask about
 * them.
 */
export function judge({ node, value, not }: Test, context: Asked, before: readonly ValueRecord[] | null): Judge {
  const holds = value && before && !node ? marked(before, (record) => value(context, record)) : null;
  const ofValue =
    holds ??
    ((id: number) => {
      const record = context.store.values.get(id);
      return record !== undefined && value!(context, record);
    });
  return {
    node: (record) => (node ? node(context, record) : record.outputs.some((id) => id > 0 && ofValue(id))) !== not,
    value: (record) => (value !== null && (holds ? holds(record.id) : value(context, record))) !== not,
  };
}

/** The ids of values for which something holds. */
function marked(values: readonly ValueRecord[], fits: (value: ValueRecord) => boolean): (id: number) => boolean {
  const marks = new Uint8Array(values.reduce((most, { id }) => Math.max(most, id), 0) + 1);
  for (const value of values) if (fits(value)) marks[value.id] = 1;
  return (id) => marks[id] === 1;
}

interface TextField {
  ofNode?: (context: Asked, node: NodeRecord) => string | string[];
  ofValue?: (context: Asked, value: ValueRecord) => string | string[];
  /** A pattern without * may stand anywhere in the text. */
  inside?: boolean;
}

const TEXT_FIELDS: Record<string, TextField> = {
  op: { ofNode: (_, { op }) => (op.includes("::") ? [shortOp(op), op] : op) },
  name: { ofNode: (_, { name }) => name, ofValue: (_, { name }) => name, inside: true },
  group: { ofNode: ({ store }, { group }) => groupWords(store, group), inside: true },
  dtype: { ofValue: (_, { dtype }) => dtype ?? "" },
  dim: { ofValue: (_, { label }) => label.split(/[^\w.]+/) },
  is: {
    ofNode: ({ wrong }, { id, name }) => ["node", wrong.has(id) ? "wrong" : "", name ? "" : "nameless"],
    ofValue: (_, { flags }) => [
      "value",
      flags & GRAPH_INPUT ? "input" : "",
      flags & GRAPH_OUTPUT ? "output" : "",
      flags & INITIALIZER ? "initializer" : "",
    ],
  },
};

interface NumberField {
  ofNode?: (context: Asked, node: NodeRecord) => number;
  ofValue?: (context: Asked, value: ValueRecord) => number | null;
  /** A function of the label alone, of which there are few. */
  ofLabel?: (label: string) => number | null;
}

const ofRun = (of: (statistics: Statistics) => WireNumber | null): NumberField => ({
  ofValue: ({ ran }, { id }) => {
    const statistics = ran.get(id),
      number = statistics && of(statistics);
    return number === null || number === undefined ? null : fromWire(number);
  },
});

const NUMBER_FIELDS: Record<string, NumberField> = {
  rank: { ofLabel: (label) => (label ? dimsOf(label).length : null) },
  elements: { ofLabel: (label) => elements(label) || null },
  inputs: { ofNode: (_, { inputs }) => inputs.filter(Boolean).length },
  outputs: { ofNode: (_, node) => node.outputs.filter(Boolean).length },
  uses: { ofValue: ({ store }, { id }) => store.uses(id).length },
  nan: ofRun(({ nan }) => nan),
  inf: ofRun(({ inf }) => inf),
  zeros: ofRun(({ zeros }) => zeros),
  min: ofRun(({ min }) => min),
  max: ofRun(({ max }) => max),
  mean: ofRun(({ mean }) => mean),
  std: ofRun(({ std }) => std),
};

/** Names of all fields, for the hint under an unknown one. */
export const FIELDS = [...Object.keys(TEXT_FIELDS), "shape", ...Object.keys(NUMBER_FIELDS)];

const CONDITION = /^(-?)([A-Za-z]\w*)(:|<=|>=|<|>|=)(.+)$/;

export function parseQuery(text: string): Query {
  const query: Query = { words: [], tests: [], nodesOnly: false, attributes: [], problem: "" };
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const [, not, field, sign, pattern] = CONDITION.exec(word) ?? [];
    // "onnx::Reshape_12" is a name, "op:com.microsoft::Gelu" a condition.
    if (field === undefined || (sign === ":" && pattern!.startsWith(":"))) {
      query.words.push(word.toLowerCase());
      continue;
    }
    const test = testFor(field, sign!, pattern!);
    if (typeof test === "string") {
      query.problem ||= test;
      continue;
    }
    query.nodesOnly ||= !not && !test.value;
    if (!FIELDS.includes(field)) query.attributes.push(field);
    query.tests.push({ ...test, not: not === "-" });
  }
  return query;
}

function testFor(field: string, sign: string, value: string): Omit<Test, "not"> | string {
  if (field === "shape") return ofLabels(shapeTest(value));
  const text = TEXT_FIELDS[field],
    number = NUMBER_FIELDS[field];
  if (text) return textTest(text, value);
  if (!number) return attributeTest(field, sign, value);
  const limit = Number(value);
  if (Number.isNaN(limit)) return `${field} is compared with a number, and ${value} is none.`;
  return numberTest(number, HOLDS[sign]!, limit);
}

const HOLDS: Record<string, (number: number, limit: number) => boolean> = {
  ":": (n, limit) => n === limit,
  "=": (n, limit) => n === limit,
  "<": (n, limit) => n < limit,
  ">": (n, limit) => n > limit,
  "<=": (n, limit) => n <= limit,
  ">=": (n, limit) => n >= limit,
};

function numberTest(
  { ofNode, ofValue, ofLabel }: NumberField,
  holds: (number: number, limit: number) => boolean,
  limit: number,
): Omit<Test, "not"> {
  const fits = (number: number | null): boolean => number !== null && holds(number, limit);
  if (ofLabel) return ofLabels((label) => fits(ofLabel(label)));
  return {
    node: ofNode ? (context, node) => fits(ofNode(context, node)) : null,
    value: ofValue ? (context, value) => fits(ofValue(context, value)) : null,
  };
}

/** A condition on an attribute: its text fits a pattern, or its number holds against another. */
function attributeTest(name: string, sign: string, value: string): Omit<Test, "not"> {
  const limit = Number(value),
    expression = glob(attributePattern(value), false);
  const holds =
    sign === ":" || sign === "="
      ? remembered((text) => expression.test(text))
      : remembered((text) => text !== "" && HOLDS[sign]!(Number(text), limit));
  return {
    node: ({ attributes }, { id }) => {
      const text = attributes.column(name)?.get(id);
      return text !== undefined && holds(text);
    },
    value: null,
  };
}

function textTest({ ofNode, ofValue, inside = false }: TextField, pattern: string): Omit<Test, "not"> {
  const expression = glob(pattern, inside);
  const matches = inside ? (text: string) => expression.test(text) : remembered((text) => expression.test(text));
  const some = (texts: string | string[]): boolean =>
    typeof texts === "string" ? matches(texts) : texts.some(matches);
  return {
    node: ofNode ? (context, node) => some(ofNode(context, node)) : null,
    value: ofValue ? (context, value) => some(ofValue(context, value)) : null,
  };
}

function ofLabels(matches: (label: string) => boolean): Omit<Test, "not"> {
  const known = remembered(matches);
  return { node: null, value: (_, { label }) => known(label) };
}

/** Remembers the answers of a predicate: it is asked about few texts many times. */
function remembered(matches: (text: string) => boolean): (text: string) => boolean {
  const known = new Map<string, boolean>();
  return (text) => {
    let matched = known.get(text);
    if (matched === undefined) known.set(text, (matched = matches(text)));
    return matched;
  };
}

/** A pattern as an expression: * is any text; `inside` lets it begin and end anywhere. */
function glob(pattern: string, inside: boolean): RegExp {
  const body = pattern
    .split("*")
    .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"))
    .join(".*");
  return new RegExp(inside && !pattern.includes("*") ? body : `^${body}$`, "i");
}

function shapeTest(pattern: string): (label: string) => boolean {
  const dimPatterns = pattern.split(/[,×x]/).map((dim) => dim.trim());
  return (label) => {
    const dims = dimsOf(label);
    return (
      label !== "" &&
      dims.length === dimPatterns.length &&
      dimPatterns.every((dim, i) => dim === "*" || dim === dims[i])
    );
  };
}

const dimsOf = (label: string): string[] => (label === "scalar" ? [] : label.split("×"));
