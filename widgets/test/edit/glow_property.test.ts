/** Properties in the doc strings of Glow's dialect. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { withProperty } from "../../src/edit/commands/value_commands.ts";

const DOC = "$offline:0$layout:*$elemKind:i8$qScale:1.20000004768372";

test("one property is set, added or taken away, and the others stay to the letter", () => {
  assert.equal(withProperty(DOC, "layout", "NHWC"), DOC.replace("*", "NHWC"));
  assert.equal(withProperty(DOC, "strides", "31,1"), `${DOC}$strides:31,1`);
  assert.equal(withProperty(DOC, "layout", ""), DOC.replace("$layout:*", ""));
  assert.equal(withProperty("", "layout", "NHWC"), "$layout:NHWC");
  assert.equal(withProperty(DOC, "none", ""), DOC);
});

test("what is not of the form is refused", () => {
  assert.throws(() => withProperty("ui8fused", "layout", "NHWC"), /not of the form/);
  assert.throws(() => withProperty(DOC, "a$b", "x"), /hold/);
  assert.throws(() => withProperty(DOC, "a", "x$y:z"), /hold/);
});
