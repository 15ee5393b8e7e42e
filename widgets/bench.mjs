// `node bench.mjs layout < graphs.json`: bundles bench/NAME.ts and runs it.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import path from "node:path";
import { build } from "esbuild";
import { here, settings } from "./bundle.mjs";

const [name = "layout", ...words] = process.argv.slice(2);
const outdir = mkdtempSync(path.join(here, "node_modules", ".bench-"));
try {
  const outfile = path.join(outdir, `${name}.mjs`);
  const entryPoints = [path.join("bench", `${name}.ts`)];
  await build({ ...settings(), entryPoints, outfile, platform: "node", target: "node20", packages: "external" });
  process.exitCode = spawnSync(process.execPath, [outfile, ...words], { stdio: "inherit" }).status ?? 1;
} finally {
  rmSync(outdir, { recursive: true, force: true });
}
