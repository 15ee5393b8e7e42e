/** Operators by how well they match what is typed: in their name first, in what they do last. Pure. */

import { scoreWord } from "../find/search.ts";
import type { OperatorInfo } from "../kernel/protocol.ts";

/** What a word found only in the summary is worth, beside scores of names between 30 and 100. */
const MEANING = 10;

/** Those in which every word occurs, best first; all of them, by name, for no words. */
export function rankOperators(operators: readonly OperatorInfo[], query: string): OperatorInfo[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const scored = operators
    .map((operator) => ({ operator, score: score(operator, words) }))
    .filter(({ score }) => score > 0);
  scored.sort((a, b) => b.score - a.score || (a.operator.op < b.operator.op ? -1 : 1));
  return scored.map(({ operator }) => operator);
}

function score({ op, summary }: OperatorInfo, words: string[]): number {
  let sum = 1;
  for (const word of words) {
    const found = scoreWord(op.toLowerCase(), word) || (summary.toLowerCase().includes(word) ? MEANING : 0);
    if (!found) return 0;
    sum += found;
  }
  return sum;
}
