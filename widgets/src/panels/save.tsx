/** The effect of Save on the file, before it is made: the edits, the fields that they change, a copy instead. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { App } from "../app.ts";
import type { Unsaved } from "../kernel/protocol.ts";
import { asRequestError } from "../kernel/request_error.ts";
import { plural } from "../model/names.ts";
import { useCell } from "../state.ts";
import { focusPicture, onEscape } from "./edit/form.tsx";
import { useAnswer } from "./parts/ask.ts";
import { Elided } from "./parts/controls.tsx";

export function SavePanel({ app }: { app: App }) {
  return useCell(app.edits.savePanel) ? <OpenSave app={app} /> : null;
}

function OpenSave({ app }: { app: App }) {
  const { data, error } = useAnswer(app, "unsaved", {}, 1);
  const saving = useCell(app.edits.saving);
  const [refused, setRefused] = useState("");
  const panel = useRef<HTMLDivElement>(null);
  const first = useRef<HTMLButtonElement>(null);
  const close = () => {
    const { current } = panel;
    app.edits.savePanel.value = false;
    focusPicture(current);
  };
  const known = data !== null;
  useLayoutEffect(() => (first.current ?? panel.current)?.focus({ preventScroll: true }), [known]);
  const save = async (copy: boolean) => {
    try {
      await app.edits.confirmSave(copy);
      close();
    } catch (failure) {
      setRefused(asRequestError(failure).sentence);
    }
  };
  const name = data ? fileName(data.path) : "";
  const sentence = refused || error?.sentence;
  return (
    <div
      class="ol-popup ol-dialog ol-form"
      role="dialog"
      aria-label="Save"
      tabIndex={-1}
      ref={panel}
      data-testid="save-panel"
      onKeyDown={onEscape(close)}
    >
      <p class="ol-palette-title">{data ? `Replace ${name}?` : "Save"}</p>
      {data ? <What data={data} /> : !error && <p class="ol-dim">Comparing with the file…</p>}
      {sentence && (
        <p class="ol-field-error" role="alert" data-testid="save-error">
          {sentence}
        </p>
      )}
      <div class="ol-form-buttons">
        <button type="button" class="ol-button ol-text-button" onClick={close}>
          Cancel
        </button>
        {data && (
          <>
            <button
              type="button"
              class="ol-button ol-text-button"
              disabled={saving}
              data-testid="save-copy"
              title="The model belongs to the copy from then on; the file stays as it is"
              onClick={() => void save(true)}
            >
              Save as {data.copy}
            </button>
            <button
              type="button"
              class="ol-button ol-text-button ol-primary"
              disabled={saving}
              ref={first}
              data-testid="save-confirm"
              onClick={() => void save(false)}
            >
              {saving ? "Saving…" : "Replace"}
            </button>
          </>
        )}
      </div>
    </div>
  );
}

function What({ data }: { data: Unsaved }) {
  const { edits, fields, more, notes, path } = data;
  return (
    <>
      <p class="ol-dim ol-mono" title={path}>
        <Elided text={path} middle />
      </p>
      {edits.length > 0 ? (
        <List items={edits} more={more[0]} testid="save-edits" label="Edits that are not saved" />
      ) : (
        <p data-testid="save-nothing">Nothing was edited since it was loaded or saved.</p>
      )}
      {fields.length > 0 && (
        <details>
          <summary>
            {plural(fields.length + more[1], "field")} of the file{" "}
            {fields.length + more[1] === 1 ? "changes" : "change"}
          </summary>
          <List items={fields} more={more[1]} testid="save-fields" label="Fields that change" mono />
        </details>
      )}
      {notes.map((note) => (
        <p key={note} class="ol-save-note" data-testid="save-note">
          {note}
        </p>
      ))}
    </>
  );
}

function List({
  items,
  more,
  testid,
  label,
  mono = false,
}: {
  items: string[];
  more: number;
  testid: string;
  label: string;
  mono?: boolean;
}) {
  return (
    <ul class={`ol-save-list ${mono ? "ol-mono" : ""}`} data-testid={testid} aria-label={label} tabIndex={0}>
      {items.map((item, i) => (
        <li key={i}>{item}</li>
      ))}
      {more > 0 && <li class="ol-dim">and {more.toLocaleString("en")} more</li>}
    </ul>
  );
}

function fileName(path: string): string {
  return path.split(/[/\\]/).pop() ?? path;
}
