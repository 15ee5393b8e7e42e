/** Values by how well their names match what is typed. Pure. */

import type { ValueRecord } from "../kernel/protocol.ts";
import { scoreWord } from "./search.ts";

/** The best `most` values of some scopes in whose names every word occurs; the first ones for no words. */
export function rankValues(
  values: Iterable<ValueRecord>,
  scopes: ReadonlySet<number>,
  query: string,
  most: number,
): ValueRecord[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const scored: { value: ValueRecord; score: number }[] = [];
  for (const value of values) {
    if (!value.name || !scopes.has(value.scope)) continue;
    const name = value.name.toLowerCase();
    let score = 1;
    for (const word of words) {
      const wordScore = scoreWord(name, word);
      score = wordScore && score ? score + wordScore : 0;
    }
    if (score) scored.push({ value, score });
    if (!words.length && scored.length >= most) break;
  }
  scored.sort((a, b) => b.score - a.score || (a.value.name < b.value.name ? -1 : 1));
  return scored.slice(0, most).map(({ value }) => value);
}
