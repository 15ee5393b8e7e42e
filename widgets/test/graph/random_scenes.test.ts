/** Pictures of random models with groups, runs and subgraphs, opened at random: whole lines, no box on another. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { hiddenIn, withAll } from "../../src/graph/groups/fold.ts";
import { keyOf, kindOf, NODE, REPEAT } from "../../src/graph/groups/group_keys.ts";
import { Hierarchy } from "../../src/graph/groups/hierarchy.ts";
import { boxOfNode } from "../../src/graph/input/walk.ts";
import { ModelBuilder } from "../fixtures/model.ts";
import { looseEnds, overlaps, sceneOf } from "../fixtures/scenes.ts";

type Random = (below: number) => number;

/** A small generator of numbers that are the same in every run (xorshift). */
function seeded(seed: number): Random {
  let state = seed * 2654435761 + 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

class Maker {
  readonly model = new ModelBuilder();
  readonly #random: Random;
  #scopes = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  build(): ModelBuilder {
    const { model } = this;
    const values = [model.input("x"), model.input("y")];
    this.#fill(values, 4 + this.#random(8), 0);
    for (let i = 0; i < 2; i++) model.output(values[values.length - 1 - i]!);
    return model;
  }

  #pick(values: readonly number[]): number {
    // inputs are mostly the last values, now and then values far back
    const back = this.#random(4) ? this.#random(Math.min(4, values.length)) : this.#random(values.length);
    return values[values.length - 1 - back]!;
  }

  #fill(values: number[], steps: number, depth: number): void {
    const { model } = this;
    for (let i = 0; i < steps; i++) {
      const choice = depth < 3 ? this.#random(8) : 9;
      if (choice === 0) model.within(`g${this.#scopes++}`, () => this.#fill(values, 1 + this.#random(4), depth + 1));
      else if (choice === 1) this.#run(values);
      else if (choice === 2) this.#if(values, depth);
      else if (choice === 3) this.#loop(values, depth);
      else values.push(model.node("Add", [this.#pick(values), this.#pick(values)]));
    }
  }

  #run(values: number[]): void {
    const { model } = this,
      beside = this.#pick(values),
      name = `run${this.#scopes++}`;
    let value = this.#pick(values);
    for (let i = 0; i < 3 + this.#random(2); i++) {
      value = model.within(`${name}.${i}`, () => model.node("Mul", [model.node("Relu", [value]), beside]));
    }
    values.push(value);
  }

  #if(values: number[], depth: number): void {
    const { model } = this,
      result = model.node("If", [this.#pick(values)], "", "", 2);
    for (const branch of ["then_branch", "else_branch"]) {
      model.body(branch, () => {
        const inner = [...values];
        this.#fill(inner, this.#random(3), depth + 1);
        model.output(inner.at(-1)!);
        model.output(this.#pick(inner));
      });
    }
    values.push(result, result + 1);
  }

  #loop(values: number[], depth: number): void {
    const { model } = this,
      result = model.node("Loop", [0, this.#pick(values), this.#pick(values)], "", "", 2);
    model.body("body", () => {
      const formals = ["i", "going", "carried"].map((name) => model.input(name));
      const inner = [...values, ...formals];
      this.#fill(inner, 1 + this.#random(3), depth + 1);
      model.output(formals[1]!);
      model.output(inner.at(-1)!);
      model.output(this.#pick(inner));
    });
    values.push(result, result + 1);
  }
}

const SEEDS = Number(process.env.SEEDS ?? 40);

test("random models, opened at random", () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const random = seeded(seed),
      store = new Maker(random).build().store(),
      hierarchy = new Hierarchy(store, 1);
    let open: ReadonlySet<number> = new Set([...hierarchy.containers.keys()].filter(() => random(4) > 0));
    for (const key of hierarchy.containers.keys())
      if (kindOf(key) === REPEAT && random(3) === 0) open = withAll(hierarchy, open, key, true);
    const scene = sceneOf(store, hierarchy, open),
      ground = { hierarchy, open, scene };
    assert.deepEqual(overlaps(scene), [], `seed ${seed}`);
    assert.deepEqual(looseEnds(scene, store), [], `seed ${seed}`);
    for (const node of hierarchy.nodes) {
      const box = boxOfNode(ground, node),
        hidden = hiddenIn(hierarchy, open, node);
      assert.ok(box >= 0, `seed ${seed}: node ${node} is nowhere`);
      assert.equal(scene.boxes[box]!.key, hidden || keyOf(NODE, node), `seed ${seed}`);
    }
    assert.equal(scene.boxes.length, scene.indexOf.size, `seed ${seed}: two boxes of one key`);
  }
});
