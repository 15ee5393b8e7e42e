/** Everything that a page may ask, by the name of the method. */

import { COMMANDS, type Commands, type EditCommands } from "./commands.ts";
import { PAIRS, type Pairs } from "./pairs.ts";
import { QUESTIONS, type Questions } from "./questions.ts";
import { type EditRewriting, REWRITING, type Rewriting } from "./rewriting.ts";
import { RUNS, type Runs } from "./runs.ts";
import { WATCHING, type Watching } from "./watching.ts";
import type { MethodTraits } from "./words.ts";

export interface Methods extends Questions, Commands, Rewriting, Runs, Pairs, Watching {}

export type Method = keyof Methods;
/** Methods that change the model, and say which version of it they are made on. */
export type EditMethod = EditCommands | EditRewriting;
export type Params<M extends Method> = Methods[M][0];
export type Result<M extends Method> = Methods[M][1];

/** The traits of each method. */
export const METHODS: Record<Method, MethodTraits> = {
  ...QUESTIONS,
  ...COMMANDS,
  ...REWRITING,
  ...RUNS,
  ...PAIRS,
  ...WATCHING,
};
