// The bundler's settings, shared by the build, the tests and the development page.

import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

export const here = path.dirname(fileURLToPath(import.meta.url));

/**
 * `import program from "./layout.worker.ts?worker"` gives the bundled worker as a function of its global scope: its text
 * makes a Blob URL, since a widget is one file that cannot point a Worker at a second one, and it can be called here.
 */
export function workerAsFunction({ minify }) {
  return {
    name: "worker-as-function",
    setup(setup) {
      setup.onResolve({ filter: /\?worker$/ }, (args) => ({
        path: path.resolve(args.resolveDir, args.path.replace(/\?worker$/, "")),
        namespace: "worker-as-function",
      }));
      setup.onLoad({ filter: /.*/, namespace: "worker-as-function" }, async (args) => {
        const result = await build({
          entryPoints: [args.path],
          bundle: true,
          write: false,
          metafile: true,
          minify,
          format: "iife",
          target: "es2022",
        });
        const inputs = Object.keys(result.metafile.inputs).map((file) => path.resolve(file));
        const contents = `export default function (self) {\n${result.outputFiles[0].text}}`;
        return { contents, loader: "js", watchFiles: inputs };
      });
    },
  };
}

/** Settings common to every bundle of this folder. */
export function settings({ minify = false } = {}) {
  return {
    absWorkingDir: here,
    bundle: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    minify,
    plugins: [workerAsFunction({ minify })],
  };
}
