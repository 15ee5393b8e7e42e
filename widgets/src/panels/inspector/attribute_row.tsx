/**
 * One attribute as a typed field: text for numbers, strings and lists, a menu for enumerations, previews for the rest.
 */

import { useEffect, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import type { AttributeInfo, AttributeValue, TensorPreview } from "../../kernel/protocol.ts";
import { asRequestError } from "../../kernel/request_error.ts";
import { ELEMENT_TYPE_NAMES, formatAttribute, isTextual, parseAttribute, sameValue } from "../../model/attributes.ts";
import { TextField } from "../parts/controls.tsx";
import { Icon } from "../parts/icons.tsx";

interface Props {
  app: App;
  node: number;
  attribute: AttributeInfo;
  able: boolean;
}

export function AttributeRow({ app, node, attribute, able }: Props) {
  const { name, doc, type } = attribute;
  return (
    <div class={`ol-attribute ${attribute.set ? "" : "ol-unset"}`} data-testid={`attr-row-${name}`}>
      <label class="ol-attribute-name" title={[`${name}: ${type}`, doc].filter(Boolean).join("\n\n")}>
        <span class="ol-elided">{name}</span>
        <span class="ol-type">{type}</span>
      </label>
      <div class="ol-attribute-value">
        <Value app={app} node={node} attribute={attribute} able={able} />
        <SetOrReset app={app} node={node} attribute={attribute} able={able} />
      </div>
    </div>
  );
}

function Value({ app, node, attribute, able }: Props) {
  const { name, type, reference, choices } = attribute;
  if (reference)
    return (
      <span class="ol-readonly" title="Taken from the function's attribute">
        @{reference}
      </span>
    );
  if (!isTextual(type)) return <ReadOnly app={app} node={node} attribute={attribute} able={able} />;
  const set = (value: AttributeValue) => app.edits.setAttribute(node, name, value, type);
  if (choices && type === "string") return <Choice attribute={attribute} able={able} set={set} />;
  if (type === "int" && ELEMENT_TYPES.has(name)) return <ElementType attribute={attribute} able={able} set={set} />;
  const shown = formatAttribute(type, attribute.value);
  const fallback = formatAttribute(type, attribute.default);
  const commit = async (text: string) => {
    const parsed = parseAttribute(type, text);
    if (!parsed.ok) return;
    if (attribute.set && sameValue(parsed.value, attribute.value)) return;
    await set(parsed.value);
  };
  return (
    <TextField
      value={attribute.set ? shown : ""}
      label={`${name}, ${type}`}
      testid={`attr-field-${name}`}
      errorTestid={`attr-error-${name}`}
      disabled={!able || !attribute.editable}
      mono
      numeric={type === "int" || type === "float"}
      placeholder={attribute.set ? "" : attribute.required ? "required" : fallback || "not set"}
      check={(text) => {
        const parsed = parseAttribute(type, text);
        return parsed.ok ? "" : parsed.error;
      }}
      commit={commit}
    />
  );
}

interface ChoiceProps {
  attribute: AttributeInfo;
  able: boolean;
  set: (value: AttributeValue) => Promise<void>;
}

function Choice({ attribute, able, set }: ChoiceProps) {
  const { name, choices, value, default: fallback } = attribute;
  const [error, setError] = useState("");
  const current = attribute.set ? String(value ?? "") : "";
  useEffect(() => setError(""), [current]);
  const options = [...new Set([...(choices ?? []), ...(current ? [current] : [])])];
  const change = async (next: string) => {
    try {
      await set(next === "" ? null : next);
      setError("");
    } catch (problem) {
      setError(asRequestError(problem).sentence);
    }
  };
  return (
    <div class="ol-field">
      <select
        class="ol-input ol-select"
        value={current}
        aria-label={`${name}, one of ${options.length}`}
        aria-invalid={error !== ""}
        data-testid={`attr-field-${name}`}
        disabled={!able || !attribute.editable}
        onChange={(event) => void change(event.currentTarget.value)}
      >
        {!attribute.set && <option value="">{fallback ? String(fallback) : "not set"}</option>}
        {options
          .filter((option) => attribute.set || option !== fallback)
          .map((option) => (
            <option key={option} value={option}>
              {option}
            </option>
          ))}
      </select>
      {error && (
        <p class="ol-field-error" role="alert" data-testid={`attr-error-${name}`}>
          {error}
        </p>
      )}
    </div>
  );
}

/** Attributes that say an element type by its number in onnx.proto. */
const ELEMENT_TYPES = new Set(["to", "dtype", "output_dtype"]);

function ElementType({ attribute, able, set }: ChoiceProps) {
  const { name, value, default: fallback } = attribute;
  const current = attribute.set ? String(value ?? "") : "";
  const known = ELEMENT_TYPE_NAMES.map((label, number) => ({ label, value: String(number) })).filter(
    ({ label }) => label,
  );
  const options =
    known.some((choice) => choice.value === current) || !current
      ? known
      : [...known, { label: `type ${current}`, value: current }];
  const [error, setError] = useState("");
  useEffect(() => setError(""), [current]);
  const change = (next: string) =>
    set(next === "" ? null : Number(next)).catch((problem) => setError(asRequestError(problem).sentence));
  const unset = typeof fallback === "number" ? ELEMENT_TYPE_NAMES[fallback] || "not set" : "not set";
  return (
    <div class="ol-field">
      <select
        class="ol-input ol-select"
        value={current}
        aria-label={`${name}, an element type`}
        aria-invalid={error !== ""}
        data-testid={`attr-field-${name}`}
        disabled={!able || !attribute.editable}
        onChange={(event) => void change(event.currentTarget.value)}
      >
        {!attribute.set && <option value="">{unset}</option>}
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
      {error && (
        <p class="ol-field-error" role="alert" data-testid={`attr-error-${name}`}>
          {error}
        </p>
      )}
    </div>
  );
}

/** Tensors by their type and first values, to be opened as a grid; graphs are entered under "Bodies". */
function ReadOnly({ app, node, attribute, able }: Props) {
  const { type, value, set } = attribute;
  if (!set)
    return (
      <span class="ol-readonly ol-dim" data-testid={`attr-field-${attribute.name}`}>
        not set
      </span>
    );
  const tensor = isTensor(value) ? value : null;
  const text = tensor ? `${formatAttribute(type, tensor)} ${tensor.preview}` : type;
  const edit = () =>
    void app.dialogs.editElements(`${attribute.name}: ${formatAttribute(type, tensor)}`, {
      node,
      name: attribute.name,
    });
  return (
    <>
      <span class="ol-readonly ol-mono ol-elided" title={text} data-testid={`attr-field-${attribute.name}`}>
        {text}
      </span>
      {tensor && able && type === "tensor" && (
        <button
          type="button"
          class="ol-button ol-small"
          title="Edit the elements in a grid"
          data-testid={`attr-edit-${attribute.name}`}
          onClick={edit}
        >
          edit
        </button>
      )}
    </>
  );
}

function isTensor(value: AttributeValue): value is TensorPreview {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The buttons of a default: "set" writes it into the node, the arrow takes the attribute out again. */
function SetOrReset({ app, node, attribute, able }: Props) {
  const { name, type, set, required, reference, editable } = attribute;
  if (!able || !editable || required || reference || !isTextual(type)) return null;
  const change = (value: AttributeValue) =>
    app.edits.setAttribute(node, name, value, type).catch((error) => app.notices.fail(error));
  if (set) {
    const back = attribute.default === null ? "not set" : formatAttribute(type, attribute.default) || "empty";
    return (
      <button
        type="button"
        class="ol-button ol-small"
        title={`Reset to default (${back})`}
        aria-label={`Reset ${name} to its default`}
        data-testid={`attr-reset-${name}`}
        onClick={() => void change(null)}
      >
        <Icon name="reset" />
      </button>
    );
  }
  if (attribute.default === null) return null;
  return (
    <button
      type="button"
      class="ol-button ol-small"
      title="Write the default into the node"
      aria-label={`Set ${name}`}
      data-testid={`attr-set-${name}`}
      onClick={() => void change(attribute.default)}
    >
      set
    </button>
  );
}
