/** Runs of equal groups as one box. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { frameOf, hiddenIn, shownOf, withAll, withAround, withFolded, withOpen } from "../../src/graph/groups/fold.ts";
import { GROUP, idOf, keyOf, kindOf, NODE, REPEAT } from "../../src/graph/groups/group_keys.ts";
import { Hierarchy } from "../../src/graph/groups/hierarchy.ts";
import { type Repeat, times, turns } from "../../src/graph/groups/repeat_words.ts";
import { boxOfNode } from "../../src/graph/input/walk.ts";
import { heatOfBoxes } from "../../src/graph/marks/marks.ts";
import type { Box } from "../../src/graph/scene/boxes.ts";
import { ModelBuilder } from "../fixtures/model.ts";
import { swin, transformer } from "../fixtures/networks.ts";
import { looseEnds, overlaps, sceneOf } from "../fixtures/scenes.ts";

function runsOf(hierarchy: Hierarchy): number[] {
  return [...hierarchy.containers.keys()].filter((key) => kindOf(key) === REPEAT);
}

test("twelve layers are one box, that opens to one of them or to all", () => {
  const store = transformer(12).store(),
    hierarchy = new Hierarchy(store, 1);
  const [repeat = 0, ...others] = runsOf(hierarchy);
  assert.deepEqual(others, []);
  const { name, groups, size } = hierarchy.containers.get(repeat)!;
  assert.match(name, /layer\.0…11$/);
  assert.equal(groups.length, 12);
  assert.equal(size, 12 * hierarchy.containers.get(groups[0]!)!.size);
  const around = hierarchy.around(repeat).slice(1);
  const folded = sceneOf(store, hierarchy, new Set(around));
  const opened = sceneOf(store, hierarchy, new Set([...around, repeat]));
  const all = sceneOf(store, hierarchy, withAll(hierarchy, new Set(around), repeat, true));
  const boxes = (scene: typeof opened): number => scene.boxes.filter((_, i) => !scene.frame[i]).length;
  const inside = hierarchy.containers.get(groups[0]!)!;
  assert.equal(boxes(opened), boxes(folded) - 1 + inside.groups.length + inside.nodes.length);
  // all twelve side by side; the one that showed is still open
  assert.equal(boxes(all), boxes(folded) - 1 + 11 + inside.groups.length + inside.nodes.length);
  const everything = sceneOf(store, hierarchy, withOpen(hierarchy, new Set(), 0, true));
  assert.equal(everything.boxes.filter(({ kind }) => kind === NODE).length, hierarchy.nodes.length);
  for (const scene of [folded, opened, all, everything]) {
    assert.deepEqual(overlaps(scene), []);
    assert.deepEqual(looseEnds(scene, store), []);
  }
});

test("the one that shows is the one that is asked for; nodes of the others are found at the repeat's frame", () => {
  const store = transformer(5).store(),
    hierarchy = new Hierarchy(store, 1);
  const repeat = runsOf(hierarchy)[0]!,
    { groups } = hierarchy.containers.get(repeat)!;
  const member = (k: number): number => hierarchy.membersOf(groups[k]!)[0]!;
  let open = withOpen(hierarchy, new Set(), hierarchy.containerOf(member(3))!);
  assert.equal(shownOf(hierarchy, open, repeat)[0], groups[3]);
  const scene = sceneOf(store, hierarchy, open),
    ground = { hierarchy, open, scene };
  assert.equal(scene.boxes[boxOfNode(ground, member(3))]!.key, keyOf(NODE, member(3)));
  assert.equal(scene.boxes[boxOfNode(ground, member(1))]!.key, repeat);
  assert.equal(frameOf(hierarchy, open, groups[3]!), repeat);
  const boxes = scene.boxes.length;
  assert.equal(
    sceneOf(store, hierarchy, withAround(hierarchy, open, groups[4]!)).boxes.length,
    boxes,
    "the next one is as far open",
  );
  open = withOpen(hierarchy, open, hierarchy.containerOf(member(1))!);
  assert.equal(shownOf(hierarchy, open, repeat)[0], groups[1]);
  assert.equal(hiddenIn(hierarchy, open, member(3)), repeat);
  open = withAll(hierarchy, open, repeat, true);
  assert.equal(shownOf(hierarchy, open, repeat).length, 0);
  assert.equal(hiddenIn(hierarchy, open, member(3)), 0, "what was opened stays so");
  assert.equal(hiddenIn(hierarchy, open, member(2)), groups[2]);
  assert.ok(
    !withFolded(hierarchy, withAll(hierarchy, open, repeat, false), groups[1]!).has(repeat),
    "folding the one folds the repeat",
  );
});

test("a repeat says how many it has: equal ones once the kernel has compared them", () => {
  const key = (id: number): number => keyOf(GROUP, id),
    box = { kind: REPEAT, id: 1 } as Box;
  const repeat: Repeat = { key: keyOf(REPEAT, 1), groups: [1, 2, 3, 4, 5, 6].map(key), period: 2, all: false };
  const equal = new Map([1, 2, 3, 4, 5, 6].map((id) => [id, id % 2 ? [1, 3, 5] : [2, 4, 6]] as const));
  assert.deepEqual([times(box, repeat, new Map()), times(box, repeat, equal)], [" · 3 alike", " ×3"]);
  assert.equal(times(box, repeat, new Map([...equal, [2, [2, 4]]])), " · 3 alike");
  assert.deepEqual([turns(repeat), turns({ ...repeat, all: true }), turns(null)], ["show all 3", "show one", ""]);
});

test("numbers of what a repeat hides do not make what shows pale", () => {
  const store = transformer(5).store(),
    hierarchy = new Hierarchy(store, 1),
    [repeat = 0] = runsOf(hierarchy);
  const open = withOpen(
    hierarchy,
    new Set(),
    hierarchy.containerOf(hierarchy.membersOf(hierarchy.containers.get(repeat)!.groups[0]!)[0]!)!,
  );
  const ground = { store, hierarchy, open, scene: sceneOf(store, hierarchy, open) };
  const marks = heatOfBoxes(ground, {
    title: "",
    unit: "",
    kinds: [],
    numbers: new Map([...store.nodes.keys()].map((node) => [node, 1])),
  });
  assert.ok(!marks.has(ground.scene.indexOf.get(repeat)!));
  assert.equal(Math.max(...[...marks.values()].map(({ share }) => share)), 1);
});

/** Groups of a Relu and an operator each, one after the other; `skip` leads out of the k-th and into a later one. */
function chain(ops: readonly string[], skip = -1): ModelBuilder {
  const model = new ModelBuilder();
  let x = model.input("x", "8"),
    aside = 0;
  ops.forEach((op, k) => {
    x = model.within(`block.${k}`, () =>
      model.node(op, [model.node("Relu", [aside && k === skip + 2 ? aside : x], "8")], "8"),
    );
    aside = k === skip ? model.node("Neg", [x], "8") : aside;
  });
  model.output(x);
  return model;
}

test("other operators, other wires, fewer than three, or a way around: no repeat", () => {
  const namesOfRuns = (model: ModelBuilder): string[] => {
    const hierarchy = new Hierarchy(model.store(), 1);
    return runsOf(hierarchy).map((repeat) => hierarchy.containers.get(repeat)!.name);
  };
  assert.deepEqual(namesOfRuns(chain(["Exp", "Exp", "Exp", "Exp"])), ["block.0…3"]);
  assert.deepEqual(namesOfRuns(chain(["Exp", "Exp", "Sin", "Exp", "Exp"])), []);
  assert.deepEqual(namesOfRuns(chain(["Sin", "Exp", "Exp", "Exp", "Sin"])), ["block.1…3"]);
  assert.deepEqual(namesOfRuns(chain(["Exp", "Exp"])), []);
  const crossed = transformer(3);
  crossed.nodes.find(({ name }) => name.includes("layer.1") && name.endsWith(`Erf_${name.split("_").at(-1)}`))!.op =
    "Tanh";
  assert.deepEqual(namesOfRuns(crossed), []);
});

test("kinds of groups that take turns are a repeat too, that shows one of each", () => {
  const store = chain(["Sin", "Exp", "Cos", "Exp", "Cos", "Exp", "Cos", "Exp", "Cos", "Sin"]).store(),
    hierarchy = new Hierarchy(store, 1);
  const [repeat = 0] = runsOf(hierarchy),
    { groups, period, name } = hierarchy.containers.get(repeat)!;
  assert.deepEqual([groups.length, period, name], [8, 2, "block.1…8"]);
  const open = withOpen(hierarchy, new Set(), hierarchy.containerOf(hierarchy.membersOf(groups[3]!)[0]!)!);
  assert.deepEqual(shownOf(hierarchy, open, repeat), groups.slice(2, 4));
  for (const all of [false, true]) {
    const scene = sceneOf(store, hierarchy, withAll(hierarchy, open, repeat, all));
    assert.equal(scene.boxes.filter(({ key }) => groups.includes(key)).length, all ? 8 : 2);
    assert.deepEqual([...overlaps(scene), ...looseEnds(scene, store)], []);
  }
  const exported = swin().store(),
    stages = new Hierarchy(exported, 1);
  assert.deepEqual(
    runsOf(stages)
      .map((key) => stages.containers.get(key)!)
      .filter(({ groups: members }) => members.length > 9)
      .map(({ groups, period }) => [groups.length, period]),
    [[18, 2]],
  );
});

test("a way out of a repeat and back into it splits the repeat there", () => {
  const hierarchy = new Hierarchy(chain(Array(8).fill("Exp"), 2).store(), 1);
  const groups = runsOf(hierarchy).map((repeat) => hierarchy.containers.get(repeat)!.groups.map((key) => idOf(key)));
  for (const repeat of groups) assert.ok(!(repeat.includes(3) && repeat.includes(5)), `${repeat}`);
});
