/** The form of an edit: fields as the table of edits has them, and their answers as the request takes them. Pure. */

import { ELEMENT_TYPE_NAMES } from "../model/attributes.ts";
import { EDITS, type EditField } from "./edit_fields.ts";
import type { EditName, Edits } from "./edits.ts";
import type { Field } from "./fields.ts";

export const NUMBERS_HINT = "One number fills the tensor; several are its elements in order.";

const dtypes = ELEMENT_TYPE_NAMES.filter(Boolean).map((value) => ({ value, label: value }));

/**
 * The content of a form's fields before anything is typed, by parameter; of an array, by "dtype", "shape", "numbers".
 */
export type Initial = Readonly<Record<string, string | boolean | File | null>>;

/** Choices of an element type. */
export function dtypeField(initial = "float32"): Field {
  return { kind: "choice", name: "dtype", label: "Type", choices: dtypes, initial };
}

/** The fields of a tensor that is typed. */
export function arrayFields({ dtype, shape = "1", numbers = "0" }: Initial = {}): Field[] {
  return [
    dtypeField(dtype ? String(dtype) : "float32"),
    { kind: "dims", name: "shape", label: "Shape", initial: String(shape) },
    { kind: "numbers", name: "numbers", label: "Elements", initial: String(numbers), hint: NUMBERS_HINT },
  ];
}

/** The fields that a form of an edit has; parameters that the page knows itself are left out by name. */
export function formFields(edit: EditName, initial: Initial = {}, known: readonly string[] = []): Field[] {
  return Object.entries(EDITS[edit].fields)
    .filter(([name]) => !known.includes(name))
    .flatMap(([name, field]) => fieldsOf(name, field, initial));
}

function fieldsOf(name: string, { kind, label, hint }: EditField, initial: Initial): Field[] {
  const field = { name, label, ...(hint ? { hint } : {}) };
  const text = initial[name] === undefined ? undefined : String(initial[name]);
  switch (kind) {
    case "array":
      return arrayFields(initial);
    case "dtype":
      return [dtypeField(text)];
    case "bool":
      return [{ kind: "bool", ...field, initial: initial[name] === true }];
    case "shape":
      return [{ kind: name in initial || !hint?.includes("Empty") ? "dims" : "dims?", ...field, initial: text }];
    case "names":
      return [{ kind: "texts", ...field, initial: text }];
    case "int":
    case "version":
      return [{ kind: "int", ...field, initial: text ?? "0" }];
    case "dim":
    case "long":
      return [{ kind, ...field, initial: text }];
    case "attribute":
      return [{ kind: "numbers", ...field, initial: text }];
    default:
      return [{ kind: "text", ...field, initial: text, required: kind === "name" }];
  }
}

/** The answers of a form as parameters: the fields of an array as one of them. */
export function parametersOf<E extends EditName>(edit: E, answers: Record<string, unknown>): Edits[E] {
  const array = Object.entries(EDITS[edit].fields).find(([, { kind }]) => kind === "array")?.[0];
  if (!array || !("numbers" in answers)) return answers as unknown as Edits[E];
  const { dtype, shape, numbers, ...rest } = answers;
  return { ...rest, [array]: { dtype, shape, numbers } } as unknown as Edits[E];
}
