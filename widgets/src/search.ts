/**
 * Search as you type over node names, operator types and value names: what matches, best first.
 *
 * Every word of the query must occur; an exact name beats a beginning, a beginning beats a word inside, that beats any
 * other occurrence, and shorter names come first. The lower-cased names are kept between keystrokes.
 */

import type { Statistics } from "./protocol.ts";
import { holdsForNode, holdsForValue, parseQuery } from "./query.ts";
import type { NodeRecord, Store, ValueRecord } from "./store.ts";
import { nodeName, shortOp } from "./names.ts";

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
  /** Why the query cannot be understood, "" when it can. */
  problem?: string;
}

const EXACT = 100, BEGINNING = 70, WORD = 50, INSIDE = 30;
const OP_BONUS = 5;
/** Where nothing but conditions is asked. */
const ANY = 50;
const VALUE_PENALTY = 20;

type Scored = Pick<Hit, "kind" | "id" | "score">;

export class SearchIndex {
  #store: Store;
  #nodes: Names<NodeRecord> = new Names([]);
  #values: Names<ValueRecord> = new Names([]);
  /** Lower-case operator by place of the node. */
  #ops: string[] = [];
  #stale = true;
  /** Statistics of the last run by value: what nan>0 asks about. */
  ran: ReadonlyMap<number, Statistics> = new Map();

  constructor(store: Store) {
    this.#store = store;
  }

  /** To be called when nodes or names changed. */
  invalidate(): void {
    this.#stale = true;
  }

  #refresh(): void {
    if (!this.#stale) return;
    this.#stale = false;
    const nodes = [...this.#store.nodes.values()], values = [...this.#store.values.values()];
    const ops = new Map<string, string>();
    this.#nodes = new Names(nodes);
    this.#values = new Names(values);
    this.#ops = nodes.map(({ op }) => {
      let lower = ops.get(op);
      if (lower === undefined) ops.set(op, (lower = op.toLowerCase()));
      return lower;
    });
  }

  /** At most `limit` hits, best first; none for an empty query or one that cannot be understood. */
  search(text: string, limit = 200): Hits {
    const { words, tests, nodesOnly, problem } = parseQuery(text);
    if (problem || words.length + tests.length === 0) return { hits: [], total: 0, problem };
    this.#refresh();
    const wrong = new Set(this.#store.diagnostics.map(({ node }) => node));
    const asked = { store: this.#store, ran: this.ran, wrong };
    const best = new Best(limit);
    const opScores = words.map((word) => this.#scoreOps(word));
    for (const i of this.#places(this.#nodes, words, opScores)) {
      const score = this.#scoreNode(i, words, opScores), node = this.#nodes.records[i]!;
      if (score > 0 && tests.every((test) => holdsForNode(test, asked, node))) best.add("node", node.id, score);
    }
    for (const i of nodesOnly ? [] : this.#places(this.#values, words, [])) {
      const score = scoreWords(this.#values.names[i]!, words) - VALUE_PENALTY, value = this.#values.records[i]!;
      if (score > 0 && tests.every((test) => holdsForValue(test, asked, value))) best.add("value", value.id, score);
    }
    return { hits: best.sorted().map((hit) => this.#describe(hit)), total: best.total, problem: "" };
  }

  /** Where a hit may be: the names that hold the longest word, and all nodes whose operator holds a word. */
  #places(names: Names<unknown>, words: string[], opScores: Map<string, number>[]): Iterable<number> {
    if (words.length === 0) return names.names.keys();
    let longest = 0;
    words.forEach((word, i) => {
      if (word.length > words[longest]!.length) longest = i;
    });
    const found = names.holding(words[longest]!);
    const matching = opScores[longest];
    if (!matching?.size) return found;
    const all = new Set(found);
    this.#ops.forEach((op, i) => matching.has(op) && all.add(i));
    return all;
  }

  /** Scores of the operators that hold a word: with their domain only where the word names one. */
  #scoreOps(word: string): Map<string, number> {
    const scores = new Map<string, number>();
    for (const op of new Set(this.#ops)) {
      const score = scoreWord(word.includes("::") ? op : shortOp(op), word);
      if (score > 0) scores.set(op, score + OP_BONUS);
    }
    return scores;
  }

  #scoreNode(i: number, words: string[], opScores: Map<string, number>[]): number {
    const name = this.#nodes.names[i]!, op = this.#ops[i]!;
    let total = 0;
    for (let w = 0; w < words.length; w++) {
      const score = Math.max(opScores[w]!.get(op) ?? 0, scoreWord(name, words[w]!));
      if (score === 0) return 0;
      total += score;
    }
    return words.length ? total / words.length : ANY;
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

/** Names in one text, which is searched many times faster than each by itself. */
class Names<T> {
  readonly records: T[];
  /** Lower-case. */
  readonly names: string[];
  readonly #text: string;
  /** Where each name begins in the text. */
  readonly #starts: Int32Array;

  constructor(records: (T & { name: string })[]) {
    this.records = records;
    this.names = records.map(({ name }) => name.toLowerCase());
    this.#text = this.names.join("\n");
    this.#starts = new Int32Array(this.names.length + 1);
    this.names.forEach((name, i) => (this.#starts[i + 1] = this.#starts[i]! + name.length + 1));
  }

  /** Places of the names that hold a word, in order. */
  holding(word: string): number[] {
    const found: number[] = [];
    for (let at = this.#text.indexOf(word), i = 0; at >= 0; at = this.#text.indexOf(word, this.#starts[i + 1]!)) {
      i = this.#placeOf(at, i);
      found.push(i);
      if (i + 1 >= this.names.length) break;
    }
    return found;
  }

  #placeOf(at: number, from: number): number {
    let low = from, high = this.names.length - 1;
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

function scoreWords(text: string, words: string[]): number {
  let total = 0;
  for (const word of words) {
    const score = scoreWord(text, word);
    if (score === 0) return 0;
    total += score;
  }
  return words.length ? total / words.length : ANY;
}

/** 0 when `word` does not occur in `text`; both lower-case. */
export function scoreWord(text: string, word: string): number {
  const at = text.indexOf(word);
  if (at < 0) return 0;
  const shortness = 10 / (10 + text.length - word.length);
  if (text.length === word.length) return EXACT;
  if (at === 0) return BEGINNING + shortness * 10;
  const beginsWord = !isWordCharacter(text.charCodeAt(at - 1));
  return (beginsWord ? WORD : INSIDE) + shortness * 10;
}

/** Letters and digits; the separators in model names are / . _ : and -. */
function isWordCharacter(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 48 && code <= 57);
}
