/**
 * Search as you type over node names, operator types and value names: what matches, best first.
 *
 * Every word of the query must occur; an exact name beats a beginning, a beginning beats a word inside, that beats any
 * other occurrence, and shorter names come first. The lower-cased names are kept between keystrokes.
 */

import type { Statistics } from "../kernel/protocol.ts";
import { nodeName, shortOp } from "../model/names.ts";
import type { NodeRecord, Store, ValueRecord } from "../model/store.ts";
import { type AttributeSource, NO_ATTRIBUTES } from "./attribute_search.ts";
import { fuzzyScore } from "./fuzzy.ts";
import { FIELDS, judge, parseQuery, type Query } from "./query.ts";

export interface Hit {
  kind: "node" | "value";
  id: number;
  text: string;
  /** Operator type of a node; shape label of a value. */
  detail: string;
  score: number;
}

export interface Hits {
  hits: Hit[];
  /** All matches, those beyond the limit included. */
  total: number;
  /** The reason why the query cannot be understood, "" when it can. */
  problem?: string;
  /** Whether attributes that the query asks about are still on their way. */
  pending?: boolean;
}

const EXACT = 100,
  BEGINNING = 70,
  WORD = 50,
  INSIDE = 30;
const OP_BONUS = 5;
/** The score where nothing but conditions is asked. */
const ANY = 50;
const VALUE_PENALTY = 20;

type Scored = Pick<Hit, "kind" | "id" | "score">;

export class SearchIndex {
  #store: Store;
  #nodes: Names<NodeRecord> = new Names([]);
  #values: Names<ValueRecord> = new Names([]);
  /** The operators there are, lower-case, and which one each node has by its place. */
  #ops: string[] = [];
  #spelledOps: string[] = [];
  #opOf = new Uint32Array(0);
  #stale = true;
  /** Statistics of the last run by value: what nan>0 asks about. */
  ran: ReadonlyMap<number, Statistics> = new Map();
  readonly #attributes: AttributeSource;

  constructor(store: Store, attributes: AttributeSource = NO_ATTRIBUTES) {
    this.#store = store;
    this.#attributes = attributes;
  }

  /** Drops the index; to be called when nodes or names changed. */
  invalidate(): void {
    this.#stale = true;
  }

  /** Builds the index of the store as it is; best called before the first letter is typed. */
  prepare(): void {
    if (!this.#stale) return;
    this.#stale = false;
    const nodes = [...this.#store.nodes.values()],
      ops = new Map<string, number>();
    this.#nodes = new Names(nodes);
    this.#values = new Names([...this.#store.values.values()]);
    this.#opOf = Uint32Array.from(nodes, ({ op }) => {
      let number = ops.get(op);
      if (number === undefined) ops.set(op, (number = ops.size));
      return number;
    });
    this.#spelledOps = [...ops.keys()];
    this.#ops = this.#spelledOps.map((op) => op.toLowerCase());
  }

  /** Finds at most `limit` hits, best first; none for an empty query or one that cannot be understood. */
  search(text: string, limit = 200): Hits {
    const query = parseQuery(text),
      { words, tests, nodesOnly } = query;
    const problem = query.problem || this.#unknown(query);
    if (problem || words.length + tests.length === 0) return { hits: [], total: 0, problem };
    if (query.attributes.some((name) => this.#attributes.column(name) === null))
      return { hits: [], total: 0, problem: "", pending: true };
    this.prepare();
    const wrong = new Set(this.#store.diagnostics.map(({ node }) => node));
    const context = { store: this.#store, ran: this.ran, wrong, attributes: this.#attributes };
    const judges = tests.map((test) => judge(test, context, words.length ? null : this.#values.records));
    const best = new Best(limit);
    scan(
      this.#nodes,
      words,
      (i, score) => {
        const node = this.#nodes.records[i]!;
        if (judges.every((condition) => condition.node(node))) best.add("node", node.id, score);
      },
      { of: this.#opOf, scores: words.map((word) => this.#scoreOps(word)) },
    );
    if (!nodesOnly) {
      scan(this.#values, words, (i, score) => {
        const value = this.#values.records[i]!;
        if (judges.every((condition) => condition.value(value))) best.add("value", value.id, score - VALUE_PENALTY);
      });
    }
    return { hits: best.sorted().map((hit) => this.#describe(hit)), total: best.total, problem: "" };
  }

  /** The names in a query that are neither a field nor an attribute of the model, as a sentence. */
  #unknown({ attributes }: Query): string {
    const known = this.#attributes.names,
      field = known && attributes.find((name) => !known.has(name));
    if (!known || field === undefined || field === null) return "";
    const some = [...known.keys()].slice(0, 12).join(", ");
    return `There is no ${field}: to search by; there are ${FIELDS.join(", ")}${some ? `, and attributes: ${some}` : ""}.`;
  }

  /**
   * Scores of all operators, 0 for those that do not hold the word: with their domain only where the word names one.
   */
  #scoreOps(word: string): Float64Array {
    return Float64Array.from(this.#ops, (op, i) => {
      const score = scoreWord(word.includes("::") ? op : shortOp(op), word);
      return score > 0 ? score + OP_BONUS : fuzzyScore(shortOp(this.#spelledOps[i]!), word);
    });
  }

  #describe({ kind, id, score }: Scored): Hit {
    if (kind === "node") {
      const node = this.#store.nodes.get(id);
      return { kind, id, score, text: nodeName(this.#store, id), detail: node ? shortOp(node.op) : "" };
    }
    const value = this.#store.values.get(id);
    return { kind, id, score, text: value?.name ?? "", detail: value?.label ?? "" };
  }
}

/** The words that each name counts for besides itself: scores by word, of its subject. */
interface Also {
  of: Uint32Array;
  scores: Float64Array[];
}

/** Visits every name that holds all words, or counts for them, with its score. */
function scan(
  names: Names<unknown>,
  words: string[],
  visit: (place: number, score: number) => void,
  also?: Also,
): void {
  const count = names.names.length;
  if (words.length === 0) {
    for (let i = 0; i < count; i++) visit(i, ANY);
    return;
  }
  let longest = 0;
  words.forEach((word, w) => {
    if (word.length > words[longest]!.length) longest = w;
  });
  const { places, offsets } = names.holding(words[longest]!);
  const scoreOf = (i: number, offset: number): number => {
    let total = 0;
    for (let w = 0; w < words.length; w++) {
      const name = names.names[i]!,
        word = words[w]!;
      const plainScore = w === longest ? scoreAt(name, word, offset) : scoreWord(name, word);
      const score = also ? Math.max(plainScore, also.scores[w]![also.of[i]!]!) : plainScore;
      if (score === 0) return 0;
      total += score;
    }
    return total / words.length;
  };
  const tell = (i: number, offset: number): void => {
    const score = scoreOf(i, offset);
    if (score > 0) visit(i, score);
  };
  const others = also?.scores[longest] ?? [];
  if (!others.some((score) => score > 0)) places.forEach((i, k) => tell(i, offsets[k]!));
  else for (let i = 0, k = 0; i < count; i++) tell(i, places[k] === i ? offsets[k++]! : -1);
}

/** Names in one text, which is searched many times faster than each by itself. */
class Names<T> {
  readonly records: T[];
  /** The names, lower-case. */
  readonly names: string[];
  readonly #text: string;
  /** The beginning of each name in the text. */
  readonly #starts: Int32Array;

  constructor(records: (T & { name: string })[]) {
    this.records = records;
    this.names = records.map(({ name }) => name.toLowerCase());
    this.#text = this.names.join("\n");
    this.#starts = new Int32Array(this.names.length + 1);
    this.names.forEach((name, i) => (this.#starts[i + 1] = this.#starts[i]! + name.length + 1));
  }

  /** Places of the names that hold a word, in order, and where in each it is. */
  holding(word: string): { places: number[]; offsets: number[] } {
    const places: number[] = [],
      offsets: number[] = [],
      starts = this.#starts,
      last = this.names.length - 1;
    let i = 0;
    for (let at = this.#text.indexOf(word); at >= 0 && last >= 0; at = this.#text.indexOf(word, starts[i + 1])) {
      i = this.#placeOf(at, i);
      places.push(i);
      offsets.push(at - starts[i]!);
      if (i === last) break;
    }
    return { places, offsets };
  }

  /** The name that a position is in; most often it is one of the next. */
  #placeOf(at: number, from: number): number {
    let low = from,
      step = 1;
    while (low + step < this.names.length && this.#starts[low + step]! <= at) {
      low += step;
      step *= 2;
    }
    let high = Math.min(low + step, this.names.length) - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#starts[middle]! <= at) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** The best few of many. */
class Best {
  total = 0;
  readonly #limit: number;
  #kept: Scored[] = [];
  #least = -Infinity;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(kind: Hit["kind"], id: number, score: number): void {
    this.total++;
    if (score <= this.#least) return;
    this.#kept.push({ kind, id, score });
    if (this.#kept.length < 8 * this.#limit) return;
    this.#kept = this.sorted();
    this.#least = this.#kept[this.#limit - 1]!.score;
  }

  sorted(): Scored[] {
    return this.#kept.sort((a, b) => b.score - a.score).slice(0, this.#limit);
  }
}

/** The score of a word in a text, 0 where it does not occur; both lower-case. */
export function scoreWord(text: string, word: string): number {
  return scoreAt(text, word, text.indexOf(word));
}

/** The score of a word that begins at a place of a text, 0 for a place below 0. */
function scoreAt(text: string, word: string, at: number): number {
  if (at < 0) return 0;
  if (text.length === word.length) return EXACT;
  const shortness = 10 / (10 + text.length - word.length);
  if (at === 0) return BEGINNING + shortness * 10;
  const beginsWord = !isWordCharacter(text.charCodeAt(at - 1));
  return (beginsWord ? WORD : INSIDE) + shortness * 10;
}

/** Letters and digits; the separators in model names are / . _ : and -. */
function isWordCharacter(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 48 && code <= 57);
}
