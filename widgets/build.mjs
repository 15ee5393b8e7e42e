// Builds the widget: widgets/src -> onnxlab/notebook/static/widget.js, loader.js, widget.css and LICENSES.txt.
// widgets/lab -> onnxlab/labextension/, the extension of JupyterLab and Notebook, ready to be copied.
// `--watch` rebuilds on change, `--sourcemap` keeps the sources readable in the browser's debugger.

import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { build, context } from "esbuild";
import { minify } from "terser";
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

/**
 * The widget's script with names chosen scope by scope, of which gzip makes 3 % less than of names for the whole file;
 * terser's shorter expressions take another 1 %.
 */
async function shortenNames() {
  const file = path.join(target, "widget.js");
  const { code } = await minify(await readFile(file, "utf8"), { module: true });
  await writeFile(file, code);
}

/** A federated extension: a script whose name tells its content, for browsers keep it, and what it is. */
async function buildExtension() {
  const folder = path.resolve(here, "../onnxlab/labextension"),
    lab = { ...options, entryPoints: { lab: "lab/index.ts" }, format: "iife", write: false };
  const { outputFiles } = await build({ ...lab, loader: { ".css": "text", ".svg": "text" } });
  const [{ contents }] = outputFiles,
    name = `static/remoteEntry.${createHash("sha256").update(contents).digest("hex").slice(0, 16)}.js`;
  const { version, license } = JSON.parse(await readFile(path.join(here, "package.json"), "utf8"));
  const about = {
    name: "onnxlab",
    version,
    license,
    description: "Opens ONNX models in a tab of their own",
    jupyterlab: { extension: true, _build: { load: name, extension: "./extension" } },
  };
  const install = { packageManager: "python", packageName: "onnxlab", uninstallInstructions: "pip uninstall onnxlab" };
  await rm(folder, { recursive: true, force: true });
  await mkdir(path.join(folder, "static"), { recursive: true });
  await writeFile(path.join(folder, name), contents);
  await writeFile(path.join(folder, "package.json"), `${JSON.stringify(about, null, 2)}\n`);
  await writeFile(path.join(folder, "install.json"), `${JSON.stringify(install, null, 2)}\n`);
  console.log(`${name}: ${(contents.length / 1000).toFixed(1)} kB`);
}

/** The licenses of what others wrote and the bundle carries: they ask to go along. */
async function writeLicenses({ inputs }) {
  const packages = new Set(
    Object.keys(inputs).flatMap((file) => file.match(/^node_modules\/(@[^/]+\/[^/]+|[^/]+)\//)?.[1] ?? []),
  );
  const texts = [...packages].sort().map(async (name) => {
    const folder = path.join(here, "node_modules", name),
      { version, license } = JSON.parse(await readFile(path.join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} ${version} has no license file; the bundle cannot be given away with it`);
    return `${name} ${version} (${license})\n\n${await readFile(path.join(folder, file), "utf8")}`;
  });
  await writeFile(path.join(target, "LICENSES.txt"), (await Promise.all(texts)).join(`\n${"-".repeat(80)}\n\n`));
}

await mkdir(target, { recursive: true });
if (watch) {
  for (const each of [options, styles]) await (await context({ ...each, logLevel: "info" })).watch();
} else {
  const [{ metafile }] = await Promise.all([build({ ...options, metafile: true }), build(styles), buildExtension()]);
  await writeLicenses(metafile);
  if (!sourcemap) await shortenNames();
  for (const name of ["widget.js", "loader.js", "widget.css"]) {
    const bytes = await readFile(path.join(target, name));
    const sizes = `${(bytes.length / 1000).toFixed(1)} kB, ${(gzipSync(bytes).length / 1000).toFixed(1)} kB gzipped`;
    console.log(`${name}: ${sizes}`);
  }
}
