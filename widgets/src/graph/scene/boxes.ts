/** The texts of each box, and its size from them. Sizes hang on names only, so that new shapes move nothing. */

import { plural } from "../../model/names.ts";
import { shortDims } from "../../model/short_dims.ts";
import type { Store } from "../../model/store.ts";
import { isWeight } from "../../model/weights.ts";
import type { Bundle } from "../groups/bundles.ts";
import { BODY, GROUP, INPUT, idOf, type Kind, kindOf, NODE, OUTPUT, REPEAT } from "../groups/group_keys.ts";
import type { Hierarchy } from "../groups/hierarchy.ts";
import { inShort, summaryOf } from "../groups/summary.ts";
import { nodeSubtitle, opTitle, parameterName } from "./short_names.ts";

export type Font = "title" | "text" | "small";

/** Width of a text in CSS pixels at zoom 1. */
export type Measure = (text: string, font: Font) => number;

export interface Box {
  key: number;
  kind: Kind;
  /** Node, group or value id. */
  id: number;
  title: string;
  subtitle: string;
  /** Whether a line of facts stands below; its text is facts() of the moment. */
  hasFacts: boolean;
  /** Values that are a node's parameters; in a box of several inputs or outputs, all of them. */
  parameters: readonly number[];
  /** Value that leaves a folded group last, elements of its parameters, and their share of all. */
  output: number;
  elements: number;
  share: number;
  /** Operator category of a node. */
  category: string;
  /** Whether the subtitle says what each group of a repeat is, as several kinds of groups alternate. */
  eachAlike: boolean;
  /** Whether it can be opened to a frame. */
  folds: boolean;
  /** Id of the function that a node calls and that can be entered, 0: none. */
  scope: number;
  width: number;
  height: number;
}

export const MIN_WIDTH = 88,
  MAX_WIDTH = 184,
  GROUP_MIN_WIDTH = 128,
  CARD_WIDTH = 168,
  WIDEST_CARD = 208;
const FACTS_WIDTH = 136,
  STEP = 8;
export const PADDING = 12;
/** Heights of lines of text, and above and below them. */
export const TITLE_LINE = 16,
  TEXT_LINE = 14,
  MARGIN = 8;
const TERMINAL_HEIGHT = 26;

/** Functions that can be entered from nodes, by name. */
export type Entrances = ReadonlyMap<string, { scope: number; calls: string }>;

/** Names told of the functions that a function calls, at most. */
const MOST_CALLS = 3;

export function entrances(store: Store): Entrances {
  const functions = new Map<string, { scope: number; calls: string }>(),
    calls = new Map<number, Set<string>>();
  for (const { id, kind } of store.scopes.values()) if (kind === "function") calls.set(id, new Set());
  if (calls.size)
    for (const { scope, category, op } of store.nodes.values())
      if (category === "function") calls.get(scope)?.add(opTitle(op));
  for (const [id, titles] of calls) {
    const callSites = [...titles].slice(0, MOST_CALLS).join(" · ") + (titles.size > MOST_CALLS ? " …" : "");
    functions.set(store.scopes.get(id)!.name, { scope: id, calls: callSites });
  }
  return functions;
}

/** The box of an item; what is open is a frame and gets its size from its content. */
export function boxOf(store: Store, hierarchy: Hierarchy, doors: Entrances, key: number, measure: Measure): Box {
  const kind = kindOf(key),
    id = idOf(key);
  if (kind === NODE) return nodeBox(store, hierarchy, doors, key, measure);
  if (kind === GROUP || kind === BODY || kind === REPEAT) return groupBox(store, hierarchy, key, measure);
  const bundles = kind === INPUT ? hierarchy.inputBundles : kind === OUTPUT ? hierarchy.outputBundles : null;
  return terminalBox(store, key, measure, bundles?.get(id));
}

const NONE: readonly number[] = [];
const NO_CARD = { output: 0, elements: 0, share: 0, eachAlike: false };

function nodeBox(store: Store, hierarchy: Hierarchy, doors: Entrances, key: number, measure: Measure): Box {
  const id = idOf(key),
    node = store.nodes.get(id)!,
    folds = hierarchy.nested && hierarchy.containers.has(key);
  const stored = node.inputs.filter((value) => isParameter(store, hierarchy, value)),
    parameters = stored.length ? stored : NONE;
  const title = opTitle(node.op),
    around = store.groups.get(node.group)?.name ?? "",
    door = node.category === "function" ? doors.get(title) : undefined,
    subtitle = nodeSubtitle(node.name, node.op, around, door?.calls);
  const hasFacts = parameterFacts(store, parameters).length > 0;
  const scope = door?.scope ?? 0;
  const words = measure(title, "title") + (scope || folds ? 20 : 0),
    text = Math.max(words, measure(subtitle, "text"));
  // the operator is never cut short
  const width = Math.max(
    hasFacts ? FACTS_WIDTH : MIN_WIDTH,
    clampWidth(text + 2 * PADDING),
    clampWidth(words + 2 * PADDING, WIDEST_CARD),
  );
  const height = 2 * MARGIN + TITLE_LINE + (subtitle ? TEXT_LINE : 0) + (hasFacts ? TEXT_LINE : 0);
  return {
    key,
    kind: NODE,
    id,
    title,
    subtitle,
    hasFacts,
    parameters,
    ...NO_CARD,
    category: node.category,
    folds,
    scope,
    width,
    height,
  };
}

/** Share of all parameters that a card tells of at least: constants of arithmetic are no parameters worth a line. */
const LEAST_SHARE = 0.0005;
/** Room behind the size of a repeat for how many there are. */
const TIMES_WIDTH = 48;

function groupBox(store: Store, hierarchy: Hierarchy, key: number, measure: Measure): Box {
  const group = hierarchy.containers.get(key)!,
    kind = kindOf(key);
  const repeated = kind === REPEAT ? group.groups.slice(0, group.period) : [key];
  const nodes = repeated.reduce((sum, part) => sum + hierarchy.containers.get(part)!.size, 0);
  const words = kind === BODY ? [""] : repeated.map((part) => store.groups.get(idOf(part))?.about ?? ""),
    about = words.every((word) => word === words[0]) ? words[0]! : "";
  const subtitle = about || plural(nodes, "node");
  const { output, elements } = summaryOf(store, hierarchy, key);
  const all = elements ? summaryOf(store, hierarchy, 0).elements : 0,
    share = all ? elements / all : 0,
    weighs = share >= LEAST_SHARE,
    hasFacts = weighs || (elements === 0 && about !== "");
  const text = Math.max(
    measure(group.name, "title") + 18,
    measure(subtitle, "text") + (kind === REPEAT ? TIMES_WIDTH : 0),
  );
  const width = Math.max(CARD_WIDTH, clampWidth(text + 2 * PADDING, WIDEST_CARD));
  const height = 2 * MARGIN + TITLE_LINE + TEXT_LINE + (hasFacts ? TEXT_LINE + 6 : 0);
  return {
    key,
    kind,
    id: idOf(key),
    title: group.name,
    subtitle,
    hasFacts,
    parameters: NONE,
    output,
    elements: weighs ? elements : 0,
    share: weighs ? share : 0,
    eachAlike: about !== "",
    category: "",
    folds: true,
    scope: 0,
    width,
    height,
  };
}

function terminalBox(store: Store, key: number, measure: Measure, bundle?: Bundle): Box {
  const kind = kindOf(key),
    id = idOf(key);
  const title = bundle ? `${bundle.name} ×${bundle.values.length}` : (store.values.get(id)?.name ?? "?");
  const hasFacts = kind === INPUT || kind === OUTPUT;
  const width = clampWidth(
    Math.max(measure(title, "text"), hasFacts ? FACTS_WIDTH - 2 * PADDING - 8 : 40) + 2 * PADDING + 4,
  );
  const height = TERMINAL_HEIGHT + (hasFacts ? TEXT_LINE - 2 : 0);
  return {
    key,
    kind,
    id,
    title,
    subtitle: "",
    hasFacts,
    parameters: bundle?.values ?? NONE,
    ...NO_CARD,
    category: "",
    folds: false,
    scope: 0,
    width,
    height,
  };
}

/** Widths in steps, so that columns of boxes line up and equal blocks get equal layouts. */
function clampWidth(width: number, most = MAX_WIDTH): number {
  return Math.min(most, Math.max(MIN_WIDTH, Math.ceil(width / STEP) * STEP));
}

/** Whether a value is a weight, or made of weights by nodes that have no box. */
function isParameter(store: Store, { inlined }: Hierarchy, value: number): boolean {
  return value > 0 && (isWeight(store, value) || inlined.has(store.maker(value)));
}

/** The facts of a box as they are now: a terminal's shape, a node's parameters ("weight 64×3×7×7", "bias 64"). */
export function facts(store: Store, box: Box): string[] {
  if (!box.hasFacts) return [];
  if (box.kind === GROUP || box.kind === REPEAT || box.kind === BODY) return cardFacts(store, box);
  return box.kind === NODE ? parameterFacts(store, box.parameters) : terminalFacts(store, box);
}

/** The shape of an input or output; of several in one box the one that all have. */
function terminalFacts(store: Store, { id, parameters }: Box): string[] {
  const labels = new Set((parameters.length ? parameters : [id]).map((value) => store.values.get(value)?.label ?? ""));
  if (labels.size > 1) return [plural(labels.size, "shape")];
  return [...labels].filter(Boolean).map((label) => shortDims(store).shortened(label));
}

/** The number of parameters of a group; of one without any its output, "→ 56×56×64". */
function cardFacts(store: Store, box: Box): string[] {
  if (box.elements) return [`${inShort(box.elements)} parameters`];
  const label = store.values.get(box.output)?.label ?? "";
  return label ? [`→ ${shortDims(store).shortened(label)}`] : [];
}

/** Names and shapes of parameters; those that have no name worth showing only where they have two axes. */
function parameterFacts(store: Store, parameters: readonly number[]): string[] {
  const parts: string[] = [];
  for (const id of parameters) {
    const { name, label } = store.values.get(id) ?? { name: "", label: "" };
    const short = isWeight(store, id) ? parameterName(name) : "";
    if (label && (short || label.includes("×"))) parts.push(short ? `${short} ${label}` : label);
  }
  return parts;
}
