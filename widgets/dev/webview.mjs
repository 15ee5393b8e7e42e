// Bundles the page that hosts widgets as VS Code does: `node dev/webview.mjs FOLDER` (dev/webview.ts says what it is).

import { copyFile, mkdir } from "node:fs/promises";
import path from "node:path";
import { build } from "esbuild";
import { here, settings } from "../bundle.mjs";

const outdir = path.resolve(process.argv[2]);
const modules = path.join(here, "node_modules");
await mkdir(outdir, { recursive: true });
await build({
  ...settings({ minify: true }),
  entryPoints: { page: "dev/webview.ts" },
  outdir,
  external: ["/webview/ipywidgets.js"],
  define: { "process.env": "{}", "process.argv": "[]" },
});
await copyFile(path.join(here, "dev/webview.html"), path.join(outdir, "index.html"));
await copyFile(
  path.join(modules, "@vscode/jupyter-ipywidgets8/dist/ipywidgets.js"),
  path.join(outdir, "ipywidgets.js"),
);
await copyFile(path.join(modules, "requirejs/require.js"), path.join(outdir, "require.js"));
