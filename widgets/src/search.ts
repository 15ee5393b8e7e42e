/**
 * Search as you type over node names, operator types and value names: what matches, best first.
 *
 * Every word of the query must occur; an exact name beats a beginning, a beginning beats a word inside, that beats any
 * other occurrence, and shorter names come first. The lower-cased names are kept between keystrokes.
 */

import type { Store } from "./store.ts";
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
}

const EXACT = 100, BEGINNING = 70, WORD = 50, INSIDE = 30;
const OP_BONUS = 5;
const VALUE_PENALTY = 20;

export class SearchIndex {
  #store: Store;
  #nodeIds: number[] = [];
  #nodeNames: string[] = [];
  #nodeOps: string[] = [];
  #valueIds: number[] = [];
  #valueNames: string[] = [];
  #stale = true;

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
    const nodes = [...this.#store.nodes.values()];
    const values = [...this.#store.values.values()];
    const ops = new Map<string, string>();
    this.#nodeIds = nodes.map((node) => node.id);
    this.#nodeNames = nodes.map((node) => node.name.toLowerCase());
    this.#nodeOps = nodes.map((node) => {
      const known = ops.get(node.op);
      if (known !== undefined) return known;
      const lower = node.op.toLowerCase();
      ops.set(node.op, lower);
      return lower;
    });
    this.#valueIds = values.map((value) => value.id);
    this.#valueNames = values.map((value) => value.name.toLowerCase());
  }

  /** At most `limit` hits, best first; none for an empty query. */
  search(query: string, limit = 200): Hits {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return { hits: [], total: 0 };
    this.#refresh();
    const scored: { kind: "node" | "value"; id: number; score: number }[] = [];
    const opScores = words.map(() => new Map<string, number>());
    for (let i = 0; i < this.#nodeIds.length; i++) {
      const score = this.#scoreNode(i, words, opScores);
      if (score > 0) scored.push({ kind: "node", id: this.#nodeIds[i]!, score });
    }
    for (let i = 0; i < this.#valueIds.length; i++) {
      const score = scoreWords(this.#valueNames[i]!, words);
      if (score > 0) scored.push({ kind: "value", id: this.#valueIds[i]!, score: score - VALUE_PENALTY });
    }
    scored.sort((a, b) => b.score - a.score);
    return { hits: scored.slice(0, limit).map((hit) => this.#describe(hit)), total: scored.length };
  }

  #scoreNode(i: number, words: string[], opScores: Map<string, number>[]): number {
    const name = this.#nodeNames[i]!, op = this.#nodeOps[i]!;
    let total = 0;
    for (let w = 0; w < words.length; w++) {
      let byOp = opScores[w]!.get(op);
      if (byOp === undefined) {
        // with its domain only where the word names one, so that "onnx" does not find every operator of ai.onnx.ml
        byOp = scoreWord(words[w]!.includes("::") ? op : shortOp(op), words[w]!);
        if (byOp > 0) byOp += OP_BONUS;
        opScores[w]!.set(op, byOp);
      }
      const score = Math.max(byOp, scoreWord(name, words[w]!));
      if (score === 0) return 0;
      total += score;
    }
    return total / words.length;
  }

  #describe({ kind, id, score }: { kind: "node" | "value"; id: number; score: number }): Hit {
    if (kind === "node") {
      const node = this.#store.nodes.get(id);
      return { kind, id, score, text: nodeName(this.#store, id), detail: node ? shortOp(node.op) : "" };
    }
    const value = this.#store.values.get(id);
    return { kind, id, score, text: value?.name ?? "", detail: value?.label ?? "" };
  }
}

function scoreWords(text: string, words: string[]): number {
  let total = 0;
  for (const word of words) {
    const score = scoreWord(text, word);
    if (score === 0) return 0;
    total += score;
  }
  return total / words.length;
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
