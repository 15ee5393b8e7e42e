/** Operators by their initials and in spite of typing errors: "nms", "hs", "Covn". Pure. */

/** Scores beside those of names, which are 30 and more where a word occurs. */
const INITIALS = 45,
  SLIP = 20;
/** Lengths of a word from which one typing error is forgiven, and from which two are. */
const ONE_SLIP = 4,
  TWO_SLIPS = 8;

/** The likeness of a word and an operator that does not hold it, 0: none. `op` as it is written, `word` lower-case. */
export function fuzzyScore(op: string, word: string): number {
  if (word.length >= 2 && initials(op) === word) return INITIALS;
  if (word.length < ONE_SLIP) return 0;
  const most = word.length < TWO_SLIPS ? 1 : 2;
  return Math.abs(op.length - word.length) <= most && distance(op.toLowerCase(), word, most) <= most ? SLIP : 0;
}

/** "nms" of NonMaxSuppression, "lstm" of LSTM. */
export function initials(op: string): string {
  return op.replace(/[^A-Z0-9]/g, "").toLowerCase();
}

/**
 * Insertions, removals, changes and swaps of neighbors that turn one word into the other; beyond `most`: more than it.
 */
export function distance(a: string, b: string, most: number): number {
  let before: number[] = [],
    last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      row[j] = Math.min(changed, last[j]! + 1, row[j - 1]! + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        row[j] = Math.min(row[j]!, before[j - 2]! + 1);
    }
    if (Math.min(...row) > most) return most + 1;
    before = last;
    last = row;
  }
  return last[b.length]!;
}
