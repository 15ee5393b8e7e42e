/** Inputs and outputs whose names differ in numbers and in one word, as one: "past.{0…47}.{key,value} ×96". */

import type { Store } from "../../model/store.ts";

export interface Bundle {
  /** First value of the bundle, which stands for all. */
  first: number;
  name: string;
  values: number[];
}

/** Least number of values in a bundle: fewer are drawn one by one. */
const LEAST = 5;
const NUMBER = /\d+/g;

/** Words of a name, and what is between them. */
const PARTS = /[^./_:\s-]+|[./_:\s-]+/g;
/** Words that may stand in one place of a name. */
const MOST_WORDS = 4;

/** Values whose names differ only in numbers. */
interface Alike {
  pattern: string[];
  values: number[];
}

/** The bundle of each value that is in one. */
export function bundlesOf(store: Store, values: readonly number[]): Map<number, Bundle> {
  const nameOf = (value: number): string => store.values.get(value)?.name ?? "";
  const byPattern = new Map<string, number[]>();
  for (const value of new Set(values)) {
    const name = nameOf(value),
      pattern = name.replace(NUMBER, "#");
    if (pattern === name) continue;
    const same = byPattern.get(pattern);
    if (same) same.push(value);
    else byPattern.set(pattern, [value]);
  }
  const alike = [...byPattern]
    .filter(([, same]) => same.length >= LEAST)
    .map(([pattern, same]): Alike => ({ pattern: pattern.match(PARTS) ?? [], values: same }));
  const place = new Map(values.map((value, i) => [value, i]));
  const bundleOf = new Map<number, Bundle>();
  for (const some of joined(alike)) {
    const members = some.flatMap((member) => member.values).sort((a, b) => place.get(a)! - place.get(b)!);
    const bundle = { first: members[0]!, name: bundleName(some, nameOf), values: members };
    for (const value of members) bundleOf.set(value, bundle);
  }
  return bundleOf;
}

/** Puts together as many values of each name as differ in one word: keys and values of a cache. */
function joined(alike: readonly Alike[]): Alike[][] {
  const all: Alike[][] = [];
  for (const group of alike) {
    const others = all.find((some) => {
      if (some.length >= MOST_WORDS || some[0]!.values.length !== group.values.length) return false;
      const differing = differences(some[0]!.pattern, group.pattern);
      return (
        differing.length === 1 && some.every((member) => differences(member.pattern, group.pattern)[0] === differing[0])
      );
    });
    if (others) others.push(group);
    else all.push([group]);
  }
  return all;
}

/** Places at which two names differ; several where they have not as many parts or other numbers. */
function differences(left: readonly string[], right: readonly string[]): number[] {
  if (left.length !== right.length) return [0, 1];
  const places = left.flatMap((part, i) => (part === right[i] ? [] : [i]));
  const inWords = places.every((i) => !left[i]!.includes("#") && !right[i]!.includes("#"));
  return inWords ? places : [0, 1];
}

/** Each number that differs as the least and the largest, each word as all of them: "past.{0…11}.{key,value}". */
function bundleName(some: readonly Alike[], nameOf: (value: number) => string): string {
  const numbers = some.flatMap(({ values }) => values.map((value) => nameOf(value).match(NUMBER) ?? []));
  const ranges = (numbers[0] ?? []).map((number, place) => {
    const indices = numbers.map((list) => Number(list[place]));
    const low = indices.reduce((a, b) => Math.min(a, b)),
      high = indices.reduce((a, b) => Math.max(a, b));
    return low === high ? number : `{${low}…${high}}`;
  });
  const [{ pattern }] = some as [Alike];
  const words = pattern.map((part, i) => {
    const all = [...new Set(some.map((member) => member.pattern[i]!))];
    return all.length > 1 ? `{${all.join(",")}}` : part;
  });
  let place = 0;
  return words.join("").replace(/#/g, () => ranges[place++] ?? "");
}
