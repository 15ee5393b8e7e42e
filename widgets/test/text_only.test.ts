/**
 * Text of a model is never HTML: nothing in the sources writes markup, and in the bundle only preact's own lines
 * could.
 */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

const MARKUP =
  /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc|\beval\(|new Function\(/g;
const FETCHES = /\bfetch\(|XMLHttpRequest|\bimport\(|WebSocket|EventSource|https?:\/\/(?!www\.w3\.org\/)/g;

function files(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const name = path.join(folder, entry.name);
    return entry.isDirectory() ? files(name) : /\.(ts|tsx)$/.test(name) ? [name] : [];
  });
}

const sources = files(path.join(WIDGETS_FOLDER, "src"));

/** The loader imports the bundle, whose text came from the kernel; nothing comes from anywhere else. */
const LOADER = ["src/loader.ts: import("];

for (const [offense, pattern, allowed] of [
  ["writes markup or evaluates text", MARKUP, []],
  ["fetches at run time", FETCHES, LOADER],
] as const) {
  test(`no source ${offense}`, () => {
    const offenders = sources.flatMap((file) => {
      const matches = readFileSync(file, "utf8").match(pattern);
      return matches ? [`${path.relative(WIDGETS_FOLDER, file)}: ${matches.join(" ")}`] : [];
    });
    assert.deepEqual(offenders, allowed);
    assert.ok(sources.length > 20);
  });
}

test("the bundle writes no more markup than preact does", async () => {
  const { build } = await import("esbuild");
  const count = async (entry: { contents: string } | string) => {
    const result = await build({
      ...(typeof entry === "string" ? { entryPoints: [entry] } : { stdin: { ...entry, resolveDir: WIDGETS_FOLDER } }),
      absWorkingDir: WIDGETS_FOLDER,
      bundle: true,
      write: false,
      format: "esm",
      jsx: "automatic",
      jsxImportSource: "preact",
      plugins: [
        {
          name: "no-worker",
          setup: (setup) => setup.onResolve({ filter: /\?worker$/ }, (args) => ({ path: args.path, external: true })),
        },
      ],
    });
    return result.outputFiles[0]!.text.match(MARKUP)?.length ?? 0;
  };
  const preact = await count({
    contents: 'export * from "preact"; export * from "preact/hooks"; export * from "preact/jsx-runtime";',
  });
  assert.ok(preact > 0, "the pattern does not find what preact writes");
  assert.equal(await count("src/index.ts"), preact);
});
