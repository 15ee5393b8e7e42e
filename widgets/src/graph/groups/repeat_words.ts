/** Texts of equal groups and of repeats in the picture. Pure. */

import type { Box } from "../scene/boxes.ts";
import { GROUP, idOf } from "./group_keys.ts";

/** A repeat that is shown: keys of its groups, how many kinds alternate, whether all of them show. */
export interface Repeat {
  key: number;
  groups: readonly number[];
  period: number;
  all: boolean;
}

/**
 * " ×3" of a stage of three units, " ×12" of a repeat of equal groups; " · 12 alike" of one whose groups the
 * kernel has not found to be equal; "" of anything else. `equal`: the groups that each group is equal to, by id.
 */
export function times(
  box: Box,
  repeat: Repeat | null,
  equal: ReadonlyMap<number, readonly number[]>,
  units = 0,
): string {
  if (box.kind === GROUP) return units ? ` ×${units}` : "";
  if (!repeat) return "";
  const { groups, period } = repeat,
    count = box.eachAlike ? groups.length : groups.length / period;
  const verified = groups.every((group, i) => equal.get(idOf(groups[i % period]!))?.includes(idOf(group)));
  return verified ? ` ×${count}` : ` · ${count} alike`;
}

/** The effect of a click on a repeat's title bar. */
export function turns(repeat: Repeat | null): string {
  if (!repeat) return "";
  return repeat.all ? "show one" : `show all ${repeat.groups.length / repeat.period}`;
}
