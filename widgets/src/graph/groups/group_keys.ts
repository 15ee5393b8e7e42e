/**
 * Keys of what is drawn: a number that holds a kind and the model's id of that kind, so that maps need no strings.
 */

/** A node of the model. */
export const NODE = 0;
/** A group, folded to a box or open as a frame. */
export const GROUP = 1;
/** An input of the scope shown; the id is the value's. */
export const INPUT = 2;
/** An output of the scope shown; the id is the value's. */
export const OUTPUT = 3;
/** A value that comes from an outer scope, or that nothing makes; the id is the value's. */
export const OUTSIDE = 4;
/** A subgraph inside its node; the id is the scope's. */
export const BODY = 5;
/** Equal groups one after the other as one; the id is that of the first group. */
export const REPEAT = 6;
/** A mark in sets of open keys, not drawn: the repeat shows all its groups instead of one. */
export const ALL = 7;

/**
 * A mark in sets of open keys, not drawn: the group that a repeat shows for all, or the first of several that alternate.
 */
export const SHOWN = 8;

export type Kind =
  | typeof NODE
  | typeof GROUP
  | typeof INPUT
  | typeof OUTPUT
  | typeof OUTSIDE
  | typeof BODY
  | typeof REPEAT
  | typeof ALL
  | typeof SHOWN;

/** Inputs and outputs of a scope, and what it takes from elsewhere: round boxes. */
export function isTerminal(kind: Kind): boolean {
  return kind === INPUT || kind === OUTPUT || kind === OUTSIDE;
}

const KINDS = 16;
/** Bound of ids, which are below it. */
const IDS = 2 ** 31;

export function keyOf(kind: Kind, id: number): number {
  return id * KINDS + kind;
}

export function kindOf(key: number): Kind {
  return (key % KINDS) as Kind;
}

export function idOf(key: number): number {
  return Math.floor(key / KINDS) % IDS;
}

/** The key of what a subgraph gives out without having made it: several may give the same value. */
export function keyOfPassed(value: number, scope: number): number {
  return keyOf(OUTPUT, value + scope * IDS);
}
