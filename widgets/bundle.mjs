// The bundler's settings, shared by the build, the tests and the development page.

import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

export const here = path.dirname(fileURLToPath(import.meta.url));

/**
 * `import source from "./layout.worker.ts?worker"` gives the bundled worker as a string, for a Blob URL:
 * a widget is one file, so it cannot point a Worker at a second one.
 */
export function workerAsText({ minify }) {
  return {
    name: "worker-as-text",
    setup(setup) {
      setup.onResolve({ filter: /\?worker$/ }, (args) => ({
        path: path.resolve(args.resolveDir, args.path.replace(/\?worker$/, "")),
        namespace: "worker-as-text",
      }));
      setup.onLoad({ filter: /.*/, namespace: "worker-as-text" }, async (args) => {
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
        return { contents: result.outputFiles[0].text, loader: "text", watchFiles: inputs };
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
    plugins: [workerAsText({ minify })],
  };
}
