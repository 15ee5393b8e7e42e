/** What the picture says of equal groups and of runs. Pure. */

import type { Box } from "../scene/boxes.ts";
import { GROUP, idOf } from "./group_keys.ts";

/** A run that is shown: keys of its groups, how many kinds alternate, whether all of them show. */
export interface Run {
  key: number;
  groups: readonly number[];
  period: number;
  all: boolean;
}

/**
 * " ×12" of a group that is equal to others, and of a run whose groups are; " · 12 alike" of one whose groups the
 * kernel has not found to be equal; "" of anything else. `equal`: the groups that each group is equal to, by id.
 */
export function times(box: Box, run: Run | null, equal: ReadonlyMap<number, readonly number[]>): string {
  const same = equal.get(box.id)?.length ?? 1;
  if (box.kind === GROUP) return same > 1 ? ` ×${same}` : "";
  if (!run) return "";
  const { groups, period } = run,
    count = groups.length / period;
  const verified = groups.every((group, i) => equal.get(idOf(groups[i % period]!))?.includes(idOf(group)));
  return verified ? ` ×${count}` : ` · ${count} alike`;
}

/** What a click on a run's title bar makes of it. */
export function turns(run: Run | null): string {
  if (!run) return "";
  return run.all ? "show one" : `show all ${run.groups.length / run.period}`;
}
