/** Operators by how well they match what is typed: in their name first, in what they do last. Pure. */

import { fuzzyScore } from "../find/fuzzy.ts";
import { scoreWord } from "../find/search.ts";
import type { OperatorInfo } from "../kernel/protocol.ts";
import { shortOp } from "./names.ts";

/** The score of a word that is only in the summary, beside scores of names between 30 and 100. */
const MEANING = 10;

/**
 * Operators in which every word occurs, best first; all for no words: those like another operator first, then by
 * name.
 */
export function rankOperators(operators: readonly OperatorInfo[], query: string, like = ""): OperatorInfo[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const model = operators.find(({ op }) => op === like);
  const scored = operators
    .filter(({ op }) => op !== like || words.length > 0)
    .map((operator) => ({ operator, score: score(operator, words) }))
    .filter(({ score }) => score > 0)
    .map(({ operator, score }) => ({ operator, score: score + (model ? likeness(operator, model) : 0) }));
  scored.sort((a, b) => b.score - a.score || (a.operator.op < b.operator.op ? -1 : 1));
  return scored.map(({ operator }) => operator);
}

/** The likeness of an operator to another one in whose place it may stand: the same kind, the same wires. */
function likeness({ category, inputs }: OperatorInfo, model: OperatorInfo): number {
  const takes = inputs[0] <= model.inputs[1] && inputs[1] >= model.inputs[0];
  return (takes ? 1 : 0) + (takes && category === model.category ? 2 : 0);
}

function score({ op, summary }: OperatorInfo, words: string[]): number {
  let sum = 1;
  for (const word of words) {
    const wordScore =
      scoreWord(op.toLowerCase(), word) ||
      fuzzyScore(shortOp(op), word) ||
      (summary.toLowerCase().includes(word) ? MEANING : 0);
    if (!wordScore) return 0;
    sum += wordScore;
  }
  return sum;
}
