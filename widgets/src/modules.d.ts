/** The bundled worker as a function of its global scope. The bundler resolves it (bundle.mjs). */
declare module "*?worker" {
  const program: (self: object) => void;
  export default program;
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
