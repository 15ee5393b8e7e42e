/** A field for a condition on a value, checked after every run and edit. */

import { useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { asRequestError } from "../../kernel/request_error.ts";
import { useCell } from "../../state.ts";

export function AddWatch({ app, value }: { app: App; value: number }) {
  const [text, setText] = useState("");
  const [error, setError] = useState("");
  const { measures } = useCell(app.watches.list);
  const add = async () => {
    try {
      await app.watches.add(value, text);
      setText("");
      setError("");
    } catch (problem) {
      setError(asRequestError(problem).sentence);
    }
  };
  return (
    <span class="ol-watch-field">
      <input
        class="ol-input ol-mono"
        placeholder="nan == 0 and abs_max < 65504"
        aria-label="What shall hold"
        title={`Measures: ${measures.join(", ")}`}
        value={text}
        data-testid="watch-text"
        onInput={(event) => {
          setText(event.currentTarget.value);
          setError("");
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && text.trim()) void add();
        }}
      />
      <button
        type="button"
        class="ol-button"
        disabled={!text.trim() || app.client.can.run === false}
        data-testid="watch-add"
        onClick={() => void add()}
      >
        Watch
      </button>
      {error && (
        <span class="ol-field-error" role="alert" data-testid="watch-error">
          {error}
        </span>
      )}
    </span>
  );
}
