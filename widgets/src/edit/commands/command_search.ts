/** Finds commands by a few words: those of their titles, and those that other tools call the same by. Pure. */

import { scoreWord } from "../../find/search.ts";
import type { Command } from "./command.ts";

const CUT = "cut truncate input output extract",
  SIZES = "batch dynamic axis size shape";

/** Further words by command. */
const SYNONYMS: Readonly<Record<string, string>> = {
  look_rewrites: "simplify optimize smaller faster fuse fold constants clean",
  look_quantize: "half bfloat16 fp16 bf16 precision shrink smaller compress bits",
  look_dims: SIZES,
  look_compare: "diff difference",
  look_profile_now: "time slow benchmark",
  look_color_flops: "flops macs cost",
  look_problems: "errors warnings check validate",
  look_history: "undo redo changes",
  look_inputs: "feed image file",
  look_save: "export write",
  download: "export save",
  extract: "extract cut out subgraph part submodel",
  cut_end: CUT,
  cut_start: CUT,
  cut_before: CUT,
  cut_behind: CUT,
  cut_from: CUT,
  remove_behind: "cut truncate",
  remove_bypass: "remove bypass skip",
  remove: "remove",
  connect: "wire edge reconnect",
  redirect: "rewire reconnect",
  insert: "merge join append",
  convert_opset: "upgrade downgrade version",
  set_dim: SIZES,
  set_shape: SIZES,
  set_initializer: "weight constant values",
  set_elements: "weight constant values",
  load_array: "weight npy",
  add_output: "expose intermediate",
  set_metadata: "metadata_props",
  set_doc_string: "documentation doc_string comment",
};

/** The share of a title's score that a further word counts. */
const SYNONYM = 0.5;

/** Commands in whose words every word of a query occurs; the better match first, else in the table's order. */
export function commandsLike(commands: readonly Command[], query: string): Command[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [...commands];
  const score = ({ id, title }: Command, word: string) =>
    Math.max(scoreWord(title.toLowerCase(), word), SYNONYM * scoreWord(SYNONYMS[id] ?? "", word));
  const scored = commands.map((command) => ({ command, scores: words.map((word) => score(command, word)) }));
  const sum = (scores: readonly number[]) => scores.reduce((a, b) => a + b, 0);
  return scored
    .filter(({ scores }) => scores.every(Boolean))
    .sort((a, b) => sum(b.scores) - sum(a.scores))
    .map(({ command }) => command);
}
