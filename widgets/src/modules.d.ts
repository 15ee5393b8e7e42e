/** The bundled source text of a worker, for `new Blob([source])`. The bundler resolves it (bundle.mjs). */
declare module "*?worker" {
  const source: string;
  export default source;
}

/** Absolute path of widgets/, set by test.mjs for tests that read the sources. */
declare const WIDGETS_FOLDER: string;

/** The text of a file. */
declare module "*.svg" {
  const source: string;
  export default source;
}
declare module "*.css" {
  const source: string;
  export default source;
}
