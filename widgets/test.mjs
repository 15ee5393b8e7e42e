// Runs test/**/*.test.ts: each file is bundled for Node and handed to Node's own test runner.
// `npm test -- store` runs the files whose path contains "store".

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { build } from "esbuild";
import { here, settings } from "./bundle.mjs";

function testFiles(folder) {
  return readdirSync(path.join(here, folder), { withFileTypes: true }).flatMap((entry) => {
    const name = path.join(folder, entry.name);
    return entry.isDirectory()
      ? testFiles(name)
      : name.endsWith(".test.ts") || name.endsWith(".test.tsx")
        ? [name]
        : [];
  });
}

const words = process.argv.slice(2);
const files = testFiles("test").filter((file) => words.every((word) => file.includes(word)));
if (files.length === 0) {
  console.error(`no test file matches ${words.join(" ")}`);
  process.exit(1);
}
// Inside node_modules, so that a bundle finds the bundler and the compiler, which tests ask for.
const outdir = mkdtempSync(path.join(here, "node_modules", ".tests-"));
await build({
  ...settings(),
  entryPoints: files,
  outdir,
  outbase: here,
  platform: "node",
  target: "node20",
  external: ["esbuild", "happy-dom", "typescript"],
  sourcemap: "inline",
  outExtension: { ".js": ".mjs" },
  define: { WIDGETS_FOLDER: JSON.stringify(here) },
});
const bundles = files.map((file) => path.join(outdir, file.replace(/\.tsx?$/, ".mjs")));
const result = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...bundles], { stdio: "inherit" });
rmSync(outdir, { recursive: true, force: true });
process.exit(result.status ?? 1);
