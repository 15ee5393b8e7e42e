/**
 * Attribute values as text in a field, and back: pure functions, tested without a browser.
 *
 * A field takes `1, 2`, `[1, 2]` and `(1 2)`; `true` for 1; `1e-5`, `nan`, `inf`. Text that cannot be read comes back
 * as a sentence to stand beside the field, and nothing is sent.
 */

import type { AttributeType, AttributeValue, TensorPreview, WireInt, WireNumber } from "../kernel/protocol.ts";

export type Parsed = { ok: true; value: AttributeValue } | { ok: false; error: string };

/** Names of the element types by their numbers in onnx.proto (TensorProto.DataType). */
export const ELEMENT_TYPE_NAMES = [
  "",
  "float32",
  "uint8",
  "int8",
  "uint16",
  "int16",
  "int32",
  "int64",
  "string",
  "bool",
  "float16",
  "float64",
  "uint32",
  "uint64",
  "complex64",
  "complex128",
  "bfloat16",
  "float8e4m3fn",
  "float8e4m3fnuz",
  "float8e5m2",
  "float8e5m2fnuz",
  "uint4",
  "int4",
  "float4e2m1",
  "float8e8m0",
  "uint2",
  "int2",
];

const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);

/** Types whose values a one-line field can hold. */
export function isTextual(type: AttributeType): boolean {
  return ["int", "float", "string", "ints", "floats", "strings"].includes(type);
}

/** Reads what stands in the field of an attribute of `type`. */
export function parseAttribute(type: AttributeType, text: string): Parsed {
  switch (type) {
    case "int":
      return parseInt64(text.trim());
    case "float":
      return parseFloat32(text.trim());
    case "string":
      return { ok: true, value: text };
    case "ints":
      return parseList(text, parseInt64);
    case "floats":
      return parseList(text, parseFloat32);
    case "strings":
      return parseStrings(text);
    default:
      return { ok: false, error: `A ${type} attribute cannot be typed in a field.` };
  }
}

function parseInt64(text: string): Parsed {
  if (text === "") return { ok: false, error: "An integer is needed here." };
  if (/^true$/i.test(text)) return { ok: true, value: 1 };
  if (/^false$/i.test(text)) return { ok: true, value: 0 };
  if (!/^[+\-−]?\d+$/.test(text)) return { ok: false, error: `${quote(text)} is not an integer.` };
  const value = BigInt(text.replace("−", "-").replace("+", ""));
  if (value > INT64_MAX || value < INT64_MIN) return { ok: false, error: `${quote(text)} does not fit into 64 bits.` };
  const number = Number(value);
  return { ok: true, value: Number.isSafeInteger(number) ? number : value.toString() };
}

function parseFloat32(text: string): Parsed {
  const word = text.toLowerCase().replace("−", "-").replace(/^\+/, "");
  if (word === "nan") return { ok: true, value: "nan" };
  if (/^(-?)(inf|infinity|∞)$/.test(word)) return { ok: true, value: word.startsWith("-") ? "-inf" : "inf" };
  if (word === "") return { ok: false, error: "A number is needed here." };
  if (!/^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(word)) return { ok: false, error: `${quote(text)} is not a number.` };
  const value = Number(word);
  if (!Number.isFinite(Math.fround(value))) return { ok: false, error: `${quote(text)} does not fit into a float32.` };
  return { ok: true, value };
}

function parseList(text: string, parse: (item: string) => Parsed): Parsed {
  const inner = text
    .trim()
    .replace(/^[[(]/, "")
    .replace(/[\])]$/, "")
    .trim();
  if (inner === "") return { ok: true, value: [] };
  const values: (WireNumber | WireInt)[] = [];
  const items = inner.includes(",") ? inner.replace(/,\s*$/, "").split(",") : inner.split(/\s+/);
  for (const [index, item] of items.entries()) {
    const parsed = parse(item.trim());
    if (!parsed.ok) return { ok: false, error: `Item ${index + 1}: ${parsed.error}` };
    values.push(parsed.value as WireNumber | WireInt);
  }
  return { ok: true, value: values };
}

/** Reads strings: `a, b`, or JSON when a string needs quotes: `["a, b", "c"]`. */
function parseStrings(text: string): Parsed {
  const trimmed = text.trim();
  if (trimmed === "") return { ok: true, value: [] };
  if (!trimmed.startsWith("[")) return { ok: true, value: trimmed.split(",").map((item) => item.trim()) };
  try {
    const value: unknown = JSON.parse(trimmed);
    if (Array.isArray(value) && value.every((item) => typeof item === "string")) return { ok: true, value };
    return { ok: false, error: "Every item must be a string in double quotes." };
  } catch {
    return { ok: false, error: 'Not a list of strings; write ["a", "b"] or a, b.' };
  }
}

function quote(text: string): string {
  return `“${text.length > 24 ? `${text.slice(0, 23)}…` : text}”`;
}

/** The text that stands in a field for a value; `parseAttribute` reads it back. */
export function formatAttribute(type: AttributeType, value: AttributeValue): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) {
    if (type === "strings") return formatStrings(value.map(String));
    return value.map((item) => formatScalar(type, item)).join(", ");
  }
  if (typeof value === "object") return formatTensor(value);
  return formatScalar(type, value);
}

function formatScalar(type: AttributeType, value: WireNumber | WireInt | string): string {
  if (typeof value === "string") return value;
  return type === "float" || type === "floats" ? formatFloat32(value) : formatInt(value);
}

/** A plain JSON number past 2^53 lost its last digits on the way; int64's largest is the one that occurs (Slice). */
function formatInt(value: number): string {
  if (Number.isSafeInteger(value)) return String(value);
  if (value >= 2 ** 63) return INT64_MAX.toString();
  return Number.isInteger(value) ? BigInt(value).toString() : String(value);
}

/** The shortest decimal that reads back as the same float32: 0.1, not 0.10000000149011612. */
export function formatFloat32(value: number): string {
  if (!Number.isFinite(value) || Math.fround(value) !== value) return String(value);
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(value);
}

function formatStrings(items: string[]): string {
  const plain = items.every((item) => item !== "" && item === item.trim() && !/[",[\]]/.test(item));
  return plain ? items.join(", ") : JSON.stringify(items);
}

/** The read-only preview of a tensor: "float32[2, 3] 0.1 0.2 …". */
export function formatTensor(tensor: TensorPreview): string {
  return `${tensor.dtype}[${tensor.shape.join(", ")}]`;
}

/** Whether two values are the same to the model; used to send nothing when nothing was changed. */
export function sameValue(a: AttributeValue, b: AttributeValue): boolean {
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, i) => String(item) === String(b[i]));
  }
  return (
    a === b || (a !== null && b !== null && typeof a !== "object" && typeof b !== "object" && String(a) === String(b))
  );
}
