/**
 * A dialog that asks for what an edit needs: fields in a column, the refusal under them, Enter to do it, Escape to
 * leave.
 */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import type { Form } from "../../edit/dialogs.ts";
import { type Entry, type Field, initialEntry, readEntry } from "../../edit/fields.ts";
import { useCell } from "../../state.ts";
import { ElementGrid } from "./element_grid.tsx";
import { ValuePicker } from "./value_picker.tsx";

export function FormPanel({ app }: { app: App }) {
  const form = useCell(app.dialogs.form);
  return form ? <OpenForm key={form.title} app={app} form={form} /> : null;
}

/** Gives the keyboard back to the picture. */
export function focusPicture(inside: HTMLElement | null): void {
  inside
    ?.closest<HTMLElement>(".onnxlab")
    ?.querySelector<HTMLElement>('[data-testid="outline"]')
    ?.focus({ preventScroll: true });
}

/** The handler that leaves a dialog when Escape is pressed in it. */
export function onEscape(close: () => void): (event: KeyboardEvent) => void {
  return (event) => {
    if (event.key !== "Escape") return;
    close();
    event.preventDefault();
    event.stopPropagation();
  };
}

function OpenForm({ app, form }: { app: App; form: Form }) {
  const [entries, setEntries] = useState<Record<string, Entry>>(() =>
    Object.fromEntries(form.fields.map((field) => [field.name, initialEntry(field)])),
  );
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const panel = useRef<HTMLDivElement>(null);
  const close = () => {
    const { current } = panel;
    app.dialogs.form.value = null;
    focusPicture(current);
  };
  useLayoutEffect(() => {
    const first = panel.current?.querySelector<HTMLElement>("input, select, textarea");
    first?.focus();
    if (first instanceof HTMLInputElement) first.select();
  }, []);
  const submit = async () => {
    const answers: Record<string, unknown> = {};
    for (const field of form.fields) {
      const read = readEntry(field, entries[field.name] ?? null);
      if (!read.ok) {
        setError(read.error);
        return;
      }
      answers[field.name] = read.given;
    }
    setBusy(true);
    const refused = await app.dialogs.submit(form, answers);
    setBusy(false);
    if (refused) setError(refused);
    else if (app.dialogs.form.value === form) close();
  };
  return (
    <div
      class="ol-popup ol-dialog"
      role="dialog"
      aria-label={form.title}
      ref={panel}
      data-testid="form"
      onKeyDown={onEscape(close)}
    >
      <form
        class="ol-form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <p class="ol-palette-title">{form.title}</p>
        {form.fields.map((field) => (
          <FieldRow
            key={field.name}
            app={app}
            field={field}
            entry={entries[field.name] ?? null}
            entries={entries}
            change={(entry) => {
              setEntries({ ...entries, [field.name]: entry });
              setError("");
            }}
          />
        ))}
        {error && (
          <p class="ol-field-error" role="alert" data-testid="form-error">
            {error}
          </p>
        )}
        <div class="ol-form-buttons">
          <button type="button" class="ol-button ol-text-button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="ol-button ol-text-button ol-primary" disabled={busy} data-testid="form-submit">
            {busy ? "Working…" : "Do it"}
          </button>
        </div>
      </form>
    </div>
  );
}

interface RowProps {
  app: App;
  field: Field;
  entry: Entry;
  entries: Record<string, Entry>;
  change: (entry: Entry) => void;
}

/** A field with its label and hint. */
export function FieldRow({ app, field, entry, entries, change }: RowProps) {
  const id = `ol-form-${field.name}`;
  return (
    <div class="ol-form-row">
      {field.kind !== "bool" && <label for={id}>{field.label}</label>}
      <div class="ol-form-field">
        <Control app={app} field={field} entry={entry} entries={entries} change={change} id={id} />
        {field.hint && <p class="ol-hint">{field.hint}</p>}
      </div>
    </div>
  );
}

function Control({ app, field, entry, entries, change, id }: RowProps & { id: string }) {
  const testid = `form-${field.name}`;
  switch (field.kind) {
    case "bool":
      return (
        <label class="ol-form-check">
          <input
            id={id}
            type="checkbox"
            checked={entry === true}
            data-testid={testid}
            onChange={(event) => change(event.currentTarget.checked)}
          />
          {field.label}
        </label>
      );
    case "choice":
      return (
        <select
          id={id}
          class="ol-input ol-select"
          value={String(entry)}
          data-testid={testid}
          onChange={(event) => change(event.currentTarget.value)}
        >
          {field.choices.map(({ value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      );
    case "file":
      if (field.initial)
        return (
          <span id={id} class="ol-mono ol-elided">
            {field.initial.name}
          </span>
        );
      return (
        <input
          id={id}
          type="file"
          accept={field.accept}
          data-testid={testid}
          onChange={(event) => change(event.currentTarget.files?.[0] ?? null)}
        />
      );
    case "grid":
      return <ElementGrid id={id} field={field} changed={entry instanceof Map ? entry : new Map()} change={change} />;
    case "long":
      return (
        <textarea
          id={id}
          class="ol-input ol-area"
          rows={6}
          value={String(entry)}
          data-testid={testid}
          onInput={(event) => change(event.currentTarget.value)}
        />
      );
    case "value": {
      const slot = field.slot ? Number(entries[field.slot]) : 0;
      return (
        <ValuePicker
          app={app}
          id={id}
          testid={testid}
          value={Number(entry)}
          scope={field.scope}
          node={field.node ?? 0}
          slot={slot}
          change={change}
        />
      );
    }
    default:
      return (
        <input
          id={id}
          type="text"
          class="ol-input ol-mono"
          value={String(entry)}
          spellcheck={false}
          autocomplete="off"
          data-testid={testid}
          onInput={(event) => change(event.currentTarget.value)}
        />
      );
  }
}
