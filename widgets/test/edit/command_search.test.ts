import assert from "node:assert/strict";
import { test } from "node:test";
import { COMMANDS } from "../../src/edit/commands/command_registry.ts";
import { commandsLike } from "../../src/edit/commands/command_search.ts";
import { LOOKS } from "../../src/edit/commands/look_commands.ts";

const all = [...COMMANDS, ...LOOKS];
const first = (query: string) => commandsLike(all, query)[0]?.id;

test("commands are found by what other tools call the same", () => {
  const expected: Record<string, string> = {
    simplify: "look_rewrites",
    optimize: "look_rewrites",
    "fold constants": "look_rewrites",
    subgraph: "extract",
    extract: "extract",
    batch: "look_dims",
    compare: "look_compare",
    diff: "look_compare",
    upgrade: "convert_opset",
    validate: "look_problems",
    merge: "insert",
  };
  for (const [query, id] of Object.entries(expected))
    assert.ok(
      commandsLike(all, query)
        .slice(0, 3)
        .some((command) => command.id === id),
      `${query}: ${first(query)}`,
    );
});

test("words of a title come before further words, and nothing fits what is not there", () => {
  assert.equal(first("delete"), "remove");
  assert.equal(first("convert"), "convert_opset");
  assert.deepEqual(commandsLike(all, "xyzzy"), []);
  assert.equal(commandsLike(all, " ").length, all.length);
});
