/** Names of parameters and variables say what they hold: none is in the list of names that fit any value. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { type Node, type SourceFile, SyntaxKind } from "typescript/unstable/ast";
import { isIdentifier } from "typescript/unstable/ast/is";
import { createVirtualFileSystem, type FileSystem } from "typescript/unstable/fs";
import { API } from "typescript/unstable/sync";

const BINDINGS = new Set([
  SyntaxKind.BindingElement,
  SyntaxKind.FunctionDeclaration,
  SyntaxKind.FunctionExpression,
  SyntaxKind.ImportClause,
  SyntaxKind.ImportSpecifier,
  SyntaxKind.NamespaceImport,
  SyntaxKind.Parameter,
  SyntaxKind.VariableDeclaration,
]);

const VAGUE = new Set(
  readFileSync(path.join(WIDGETS_FOLDER, "../tests/support/vague.txt"), "utf8")
    .split("\n")
    .filter((line) => line && !line.startsWith("#")),
);

/** The sources of a TypeScript project, those of libraries left out. */
function sourcesOf(folder: string, fs?: FileSystem): SourceFile[] {
  const api = new API({ cwd: folder, fs });
  try {
    const snapshot = api.updateSnapshot({ openProjects: [path.join(folder, "tsconfig.json")] });
    return snapshot.getProjects().flatMap(({ program }) =>
      program
        .getSourceFileNames()
        .filter((name) => name.startsWith(folder) && !name.includes("node_modules"))
        .map((name) => program.getSourceFile(name)!),
    );
  } finally {
    api.close();
  }
}

/** The vague names that a source binds, each with its file and line. */
function vagueNames(source: SourceFile, folder: string): string[] {
  const names: string[] = [];
  const visit = (node: Node): void => {
    const { name } = node as { name?: Node };
    if (BINDINGS.has(node.kind) && name && isIdentifier(name) && VAGUE.has(name.text)) {
      const line = source.text.slice(0, name.end).split("\n").length;
      names.push(`${path.relative(folder, source.fileName)}:${line}: ${name.text}`);
    }
    node.forEachChild(visit);
  };
  visit(source);
  return names;
}

test("no parameter or variable of the front end has a vague name", () => {
  const sources = sourcesOf(WIDGETS_FOLDER);
  assert.ok(sources.length > 250, `${sources.length} sources`);
  assert.deepEqual(
    sources.flatMap((source) => vagueNames(source, WIDGETS_FOLDER)),
    [],
  );
});

test("names are seen wherever they are bound, and properties are none", () => {
  const text = `import { one } from "./other.ts";
const read = (each: number) => each + one;
const { found, inner: [made], ...kept } = { found: 1, inner: [read(2)], given: 3 };
for (const own of [made]) console.log({ told: own, found, kept });
try { read(1); } catch (said) { throw said; }
function asked(this: { what: number }, wanted = 1): number { return this.what + wanted; }
export class Box { here = asked; set thing(taken: number) { read(taken); } }
`;
  const fs = createVirtualFileSystem({
    "/sample/tsconfig.json": '{ "files": ["box.ts"] }',
    "/sample/box.ts": text,
    "/sample/other.ts": "export const one = 1;",
  });
  const names = sourcesOf("/sample", fs).flatMap((source) => vagueNames(source, "/sample"));
  assert.deepEqual(names.map((name) => name.replace(/^(\w+)\.ts:(\d+): /, "$1 $2 ")).sort(), [
    "box 1 one",
    "box 2 each",
    "box 3 found",
    "box 3 kept",
    "box 3 made",
    "box 4 own",
    "box 5 said",
    "box 6 asked",
    "box 6 wanted",
    "box 7 taken",
    "other 1 one",
  ]);
});
