import assert from "node:assert/strict";
import { test } from "node:test";
import type { AttributeType, AttributeValue } from "../../src/kernel/protocol.ts";
import { formatAttribute, formatFloat32, parseAttribute, sameValue } from "../../src/model/attributes.ts";

const read: [AttributeType, string, AttributeValue][] = [
  ["int", "3", 3],
  ["int", " -1 ", -1],
  ["int", "+7", 7],
  ["int", "true", 1],
  ["int", "False", 0],
  ["int", "9223372036854775807", "9223372036854775807"],
  ["int", "-9223372036854775808", "-9223372036854775808"],
  ["float", "1e-5", 1e-5],
  ["float", ".5", 0.5],
  ["float", "nan", "nan"],
  ["float", "-inf", "-inf"],
  ["float", "−2.5", -2.5],
  ["string", " kept as it is ", " kept as it is "],
  ["string", "", ""],
  ["ints", "1, 2", [1, 2]],
  ["ints", "[1,2]", [1, 2]],
  ["ints", "(1 2 3)", [1, 2, 3]],
  ["ints", "", []],
  ["ints", "[]", []],
  ["ints", "4,", [4]],
  ["floats", "0.5 1e3 inf", [0.5, 1000, "inf"]],
  ["strings", "a, b", ["a", "b"]],
  ["strings", '["a, b", "c"]', ["a, b", "c"]],
  ["strings", "", []],
];
for (const [type, text, value] of read) {
  test(`${type} ${JSON.stringify(text)} is read`, () =>
    assert.deepEqual(parseAttribute(type, text), { ok: true, value }));
}

const refused: [AttributeType, string, RegExp][] = [
  ["int", "", /integer is needed/],
  ["int", "1.5", /“1\.5” is not an integer/],
  ["int", "9223372036854775808", /64 bits/],
  ["float", "abc", /“abc” is not a number/],
  ["float", "1e39", /float32/],
  ["float", "", /number is needed/],
  ["ints", "1, x, 3", /^Item 2: “x” is not an integer/],
  ["ints", "1,,2", /^Item 2/],
  ["strings", "[1, 2]", /string in double quotes/],
  ["strings", '["a"', /Not a list/],
  ["tensor", "1", /cannot be typed/],
];
for (const [type, text, message] of refused) {
  test(`${type} ${JSON.stringify(text)} is refused`, () => {
    const parsed = parseAttribute(type, text);
    assert.ok(!parsed.ok);
    assert.match(parsed.error, message);
  });
}

test("what is written into a field is read back as the same value", () => {
  const values: [AttributeType, AttributeValue][] = [
    ["int", -3],
    ["int", "9223372036854775807"],
    ["float", Math.fround(0.1)],
    ["float", "nan"],
    ["ints", []],
    ["ints", [1, 2]],
    ["floats", [Math.fround(1e-5), 3]],
    ["strings", ["a", "b"]],
    ["strings", ["a, b", ""]],
    ["string", "x"],
  ];
  for (const [type, value] of values) {
    const parsed = parseAttribute(type, formatAttribute(type, value));
    assert.ok(parsed.ok, String(value));
    const back = type.startsWith("float") ? asFloat32(parsed.value) : parsed.value;
    assert.deepEqual(back, value);
  }
});

function asFloat32(value: AttributeValue): AttributeValue {
  if (Array.isArray(value)) return value.map((item) => (typeof item === "number" ? Math.fround(item) : item));
  return typeof value === "number" ? Math.fround(value) : value;
}

test("float32 values show their shortest decimal", () => {
  assert.equal(formatFloat32(Math.fround(0.1)), "0.1");
  assert.equal(formatFloat32(Math.fround(1e-5)), "0.00001");
  assert.equal(formatFloat32(1 / 3), String(1 / 3)); // 1/3 is no float32
});

test("a lossy 64-bit largest integer shows as what it was", () => {
  assert.equal(formatAttribute("int", 2 ** 63), "9223372036854775807");
});

test("the same value is not a change", () => {
  assert.ok(sameValue([1, 2], [1, 2]));
  assert.ok(sameValue(1, "1"));
  assert.ok(!sameValue([1], [1, 2]));
  assert.ok(!sameValue(null, ""));
});
