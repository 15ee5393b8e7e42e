// Bundles the development page into build/widget-dev/: the widget over a fake kernel, no Jupyter needed.
// Open build/widget-dev/index.html?theme=dark&model=small|deep|hostile|empty&views=2 in a browser.

import { copyFile, mkdir } from "node:fs/promises";
import path from "node:path";
import { build } from "esbuild";
import { here, settings } from "../bundle.mjs";

const outdir = path.resolve(here, "../build/widget-dev");
await mkdir(outdir, { recursive: true });
await build({ ...settings(), entryPoints: { page: "dev/page.ts" }, outdir, sourcemap: "inline" });
await build({ ...settings(), entryPoints: { widget: "src/styles.css" }, outdir });
await copyFile(path.join(here, "dev/index.html"), path.join(outdir, "index.html"));
console.log(`open ${path.join(outdir, "index.html")}`);
