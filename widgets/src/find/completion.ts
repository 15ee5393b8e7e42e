/** Completions of the last word of a query: fields, attributes, operators, values of a field. Pure. */

import type { Store } from "../model/store.ts";
import type { AttributeSource } from "./attribute_search.ts";
import { fuzzyScore } from "./fuzzy.ts";
import { FIELDS } from "./query.ts";
import { scoreWord } from "./search.ts";

export interface Completion {
  /** The whole query with the word completed. */
  query: string;
  /** The completed word. */
  word: string;
  /** The number of nodes that have it; 0: unknown. */
  count: number;
}

const MOST = 6;
const WORDS: Record<string, string[]> = {
  is: ["node", "value", "input", "output", "initializer", "wrong", "nameless"],
};

/** Completions of the last word, best first; none where it is complete or nothing fits. */
export function completions(query: string, store: Store, attributes: AttributeSource): Completion[] {
  const [, before = "", not = "", word = ""] = /^(.*?)(-?)(\S*)$/.exec(query) ?? [];
  if (!word) return [];
  const [, field, typed = ""] = /^([A-Za-z]\w*):(.*)$/.exec(word) ?? [];
  const fitting = field === undefined ? ofWord(word, store, attributes) : ofField(field, typed, store, attributes);
  return fitting
    .filter((completion) => completion.word !== word)
    .slice(0, MOST)
    .map((completion) => ({ ...completion, query: `${before}${not}${completion.word}` }));
}

type Found = Omit<Completion, "query">;

function ofWord(word: string, store: Store, attributes: AttributeSource): Found[] {
  const lower = word.toLowerCase();
  const operators = ranked(countOf(store, "op"), lower, true).map(({ word: op, count }) => ({
    word: `op:${op}`,
    count,
  }));
  const fields =
    word.length < 2
      ? []
      : ranked(new Map([...FIELDS.map((name) => [name, 0] as const), ...(attributes.names ?? [])]), lower);
  return [...fields.map((completion) => ({ ...completion, word: `${completion.word}:` })), ...operators];
}

function ofField(field: string, typed: string, store: Store, attributes: AttributeSource): Found[] {
  const lower = typed.toLowerCase();
  const values = WORDS[field]
    ? new Map(WORDS[field].map((word) => [word, 0]))
    : field === "op" || field === "dtype"
      ? countOf(store, field)
      : attributes.names?.has(field)
        ? tally(attributes.column(field)?.values() ?? [])
        : new Map<string, number>();
  return ranked(values, lower, field === "op")
    .filter(({ word }) => !/\s/.test(word))
    .map(({ word, count }) => ({ word: `${field}:${word}`, count }));
}

function countOf(store: Store, field: "op" | "dtype"): Map<string, number> {
  return field === "op"
    ? tally([...store.nodes.values()].map(({ op }) => op))
    : tally([...store.values.values()].map(({ dtype }) => dtype ?? ""));
}

function tally(texts: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) if (text) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}

/** Words by how well they match what is typed, and how often they occur. */
function ranked(words: ReadonlyMap<string, number>, typed: string, fuzzy = false): Found[] {
  const scored = [...words].map(([word, count]) => ({
    word,
    count,
    score: typed === "" ? 1 : scoreWord(word.toLowerCase(), typed) || (fuzzy ? fuzzyScore(word, typed) : 0),
  }));
  return scored
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || b.count - a.count || (a.word < b.word ? -1 : 1));
}
