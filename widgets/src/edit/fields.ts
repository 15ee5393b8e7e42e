/** The questions of a dialog before an edit: fields of a few kinds, and their texts as the kernel takes them. Pure. */

export interface Choice {
  value: string;
  label: string;
}

interface Named {
  name: string;
  label: string;
  /** A sentence under the field. */
  hint?: string;
}

export type Field = Named &
  (
    | {
        kind: "text" | "long" | "int" | "dims" | "dims?" | "dim" | "numbers" | "texts";
        initial?: string;
        required?: boolean;
      }
    | { kind: "choice"; choices: Choice[]; initial?: string }
    | { kind: "bool"; initial?: boolean }
    /** A value of the model by its id; `node` and `slot`: where it is to be read, for the reason why not. */
    | { kind: "value"; initial?: number; scope: number; node?: number; slot?: string }
    | { kind: "file"; accept: string; initial?: File | null }
    /** The elements of a tensor, to be changed one by one. */
    | { kind: "grid"; shape: number[]; numbers: (number | string | boolean)[] }
  );

/** The content of a field: text, a mark, a value's id, a file. */
export type Entry = string | boolean | number | File | ReadonlyMap<number, string> | null;

export type Read = { ok: true; given: unknown } | { ok: false; error: string };

/** The content of a field before anything is typed. */
export function initialEntry(field: Field): Entry {
  if (field.kind === "file") return field.initial ?? null;
  if (field.kind === "grid") return new Map();
  if (field.kind === "bool") return field.initial ?? false;
  if (field.kind === "value") return field.initial ?? 0;
  if (field.kind === "choice") return field.initial ?? field.choices[0]?.value ?? "";
  return field.initial ?? "";
}

/** An entry as the kernel takes it, or what is wrong with it. */
export function readEntry(field: Field, entry: Entry): Read {
  if (field.kind === "file")
    return entry instanceof File ? { ok: true, given: entry } : { ok: false, error: "Choose a file." };
  if (field.kind === "grid") return readGrid(entry instanceof Map ? entry : new Map());
  if (field.kind === "value")
    return entry ? { ok: true, given: entry } : { ok: false, error: "Choose a value of the model." };
  if (field.kind === "bool") return { ok: true, given: entry === true };
  const text = String(entry ?? "").trim();
  switch (field.kind) {
    case "int":
      return readInt(text);
    case "dim":
      return text === ""
        ? { ok: false, error: "A number, a name, or ? is needed here." }
        : { ok: true, given: readDim(text) };
    case "dims":
      return { ok: true, given: listOf(text).map(readDim) };
    case "dims?":
      return { ok: true, given: text === "" ? null : listOf(text).map(readDim) };
    case "numbers":
      return readNumbers(text);
    case "texts":
      return { ok: true, given: text === "" ? [] : text.split(",").map((part) => part.trim()) };
    case "long":
      return { ok: true, given: String(entry ?? "") };
    case "text":
      return field.required && !text
        ? { ok: false, error: `${field.label}: something is needed here.` }
        : { ok: true, given: text };
    default:
      return { ok: true, given: text };
  }
}

/** Reads the changed elements of a grid, as pairs [place, number]. */
function readGrid(changed: ReadonlyMap<number, string>): Read {
  if (!changed.size) return { ok: false, error: "No element was changed." };
  return { ok: true, given: [...changed].sort(([a], [b]) => a - b).map(([place, text]) => [place, text.trim()]) };
}

function readInt(text: string): Read {
  if (!/^\d+$/.test(text)) return { ok: false, error: "A whole number from 0 is needed here." };
  return { ok: true, given: Number(text) };
}

/** `[1, 3, n]`, `1, 3, n` and `1 3 n` are the same. */
function listOf(text: string): string[] {
  const inner = text
    .replace(/^[[(]/, "")
    .replace(/[\])]$/, "")
    .trim();
  return inner === ""
    ? []
    : inner
        .split(inner.includes(",") ? "," : /\s+/)
        .map((part) => part.trim())
        .filter(Boolean);
}

function readDim(text: string): number | string {
  return /^\d+$/.test(text) ? Number(text) : text;
}

/** Reads numbers: one fills the tensor; several, with commas or spaces between, are the elements in order. */
function readNumbers(text: string): Read {
  if (text === "") return { ok: false, error: "A number is needed here; one number fills the tensor." };
  const items = listOf(text).map(readNumber);
  return { ok: true, given: items.length === 1 && !/[[(,]/.test(text) ? items[0] : items };
}

/**
 * A number where the text says just that; all else (1.0, nan, 2^60) stays text, which the kernel reads by the tensor's
 * type.
 */
export function readNumber(text: string): number | string {
  const number = Number(text);
  return String(number) === text && Number.isFinite(number) ? number : text;
}
