// Builds the widget: widgets/src -> onnxlab/notebook/static/widget.js, loader.js and widget.css.
// `--watch` rebuilds on change, `--sourcemap` keeps the sources readable in the browser's debugger.

import { mkdir, readFile } from "node:fs/promises";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { build, context } from "esbuild";
import { here, settings } from "./bundle.mjs";

const watch = process.argv.includes("--watch");
const sourcemap = process.argv.includes("--sourcemap") ? "inline" : false;
const target = path.resolve(here, "../onnxlab/notebook/static");

const options = {
  ...settings({ minify: !watch }),
  entryPoints: { widget: "src/index.ts", loader: "src/loader.ts" },
  outdir: target,
  sourcemap,
  define: { "process.env.NODE_ENV": '"production"' },
};
// The style sheet is a file of its own: the loader gets it with the bundle, once for a page.
const styles = { ...options, entryPoints: { widget: "src/styles.css" } };

await mkdir(target, { recursive: true });
if (watch) {
  for (const each of [options, styles]) await (await context({ ...each, logLevel: "info" })).watch();
} else {
  await Promise.all([build(options), build(styles)]);
  for (const name of ["widget.js", "loader.js", "widget.css"]) {
    const bytes = await readFile(path.join(target, name));
    const sizes = `${(bytes.length / 1000).toFixed(1)} kB, ${(gzipSync(bytes).length / 1000).toFixed(1)} kB gzipped`;
    console.log(`${name}: ${sizes}`);
  }
}
