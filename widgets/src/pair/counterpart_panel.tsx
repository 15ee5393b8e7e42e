/** Asks for the model to compare with: an earlier state, another model of the kernel, a file beside it, one of the page. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { App } from "../app.ts";
import type { Counterpart } from "../kernel/protocol.ts";
import { asRequestError } from "../kernel/request_error.ts";
import { focusPicture, onEscape } from "../panels/edit/form.tsx";
import { useAnswer } from "../panels/parts/ask.ts";
import { useCell } from "../state.ts";

const KINDS: Record<Counterpart["kind"], string> = {
  state: "This model before",
  model: "Models in this kernel",
  file: "Files in its folder",
};
const ROWS = 9;

export function CounterpartPanel({ app }: { app: App }) {
  return useCell(app.comparing) ? <OpenPanel app={app} /> : null;
}

function OpenPanel({ app }: { app: App }) {
  const { data, error } = useAnswer(app, "counterparts", {}, 1);
  const [chosen, setChosen] = useState("");
  const [refused, setRefused] = useState("");
  const [busy, setBusy] = useState("");
  const panel = useRef<HTMLFormElement>(null);
  const list = data?.counterparts ?? [],
    id = list.some((entry) => entry.id === chosen) ? chosen : (list[0]?.id ?? "");
  useLayoutEffect(() => {
    const first = panel.current?.querySelector<HTMLElement>("select, input");
    first?.focus({ preventScroll: true });
  }, [data === null]);
  const close = () => {
    const { current } = panel;
    app.comparing.value = false;
    focusPicture(current);
  };
  const compare = async (words: string, ask: () => Promise<{ counterpart: string } | { file: string }>) => {
    if (busy) return;
    setBusy(words);
    setRefused("");
    try {
      await app.client.request("compare", await ask());
      app.comparing.value = false;
    } catch (failure) {
      setRefused(asRequestError(failure).sentence);
      setBusy("");
    }
  };
  return (
    <form
      class="ol-popup ol-dialog ol-form"
      aria-label="Compare with another model"
      ref={panel}
      data-testid="counterpart-panel"
      onKeyDown={onEscape(close)}
      onSubmit={(event) => {
        event.preventDefault();
        if (id) void compare("Comparing…", async () => ({ counterpart: id }));
      }}
    >
      <p class="ol-palette-title">Compare with another model</p>
      <p class="ol-hint">Both show side by side: what was added, removed and changed. Nothing is edited.</p>
      {list.length > 0 && (
        <select
          class="ol-input"
          size={ROWS}
          value={id}
          aria-label="Model"
          data-testid="counterpart-list"
          onChange={(event) => setChosen(event.currentTarget.value)}
          onDblClick={() => panel.current?.requestSubmit()}
        >
          {(Object.keys(KINDS) as Counterpart["kind"][]).map((kind) => {
            const entries = list.filter((entry) => entry.kind === kind);
            return (
              entries.length > 0 && (
                <optgroup key={kind} label={KINDS[kind]}>
                  {entries.map((entry) => (
                    <option key={entry.id} value={entry.id}>
                      {entry.title} – {entry.about}
                    </option>
                  ))}
                </optgroup>
              )
            );
          })}
        </select>
      )}
      {data && !list.length && (
        <p class="ol-dim">No edits yet, and no other model is in this kernel or in the folder of this one.</p>
      )}
      <label class="ol-form-row">
        A file of this computer
        <input
          type="file"
          data-testid="counterpart-file"
          onChange={(event) => {
            const file = event.currentTarget.files?.[0];
            if (file) void compare("Sending…", async () => ({ file: await app.files.upload(file) }));
          }}
        />
      </label>
      {(refused || error) && (
        <p class="ol-field-error" role="alert" data-testid="counterpart-refused">
          {refused || error?.sentence}
        </p>
      )}
      <div class="ol-form-buttons">
        <button type="button" class="ol-button ol-text-button" onClick={close}>
          Cancel
        </button>
        <button
          type="submit"
          class="ol-button ol-text-button ol-primary"
          disabled={!id || busy !== ""}
          data-testid="counterpart-submit"
        >
          {busy || "Compare"}
        </button>
      </div>
    </form>
  );
}
