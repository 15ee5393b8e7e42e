/** Asks for values: runs both models on the same inputs, and says from when on values count as different. */

import { useState } from "preact/hooks";
import type { ErrorColumns } from "../kernel/protocol.ts";
import { useCell } from "../state.ts";
import type { Pair } from "./pair.ts";

export function CompareValues({ pair, errors }: { pair: Pair; errors: ErrorColumns | null }) {
  const [local, setLocal] = useState(false);
  const running = useCell(pair.running);
  const app = pair.app(0);
  const inputs = useCell(app!.numbers.inputs);
  if (!app?.client.can.run) return null;
  return (
    <div class="ol-pair-ask">
      <button
        type="button"
        class="ol-button ol-text-button ol-primary"
        data-testid={running ? "pair-stop" : "pair-run"}
        onClick={() => (running ? pair.stopComparing() : void pair.compareValues(local))}
      >
        {running ? "Stop" : errors ? "Run both again" : "Run both and compare"}
      </button>
      <button
        type="button"
        class="ol-link"
        data-testid="pair-inputs"
        title="Inputs of the first model; the second gets the same"
        onClick={() => {
          app.numbers.asking.value = true;
        }}
      >
        Inputs: {inputs && app.numbers.inWords}
      </button>
      <label class="ol-form-check" title="Tells nodes that err by themselves from nodes that only pass an error on">
        <input type="checkbox" checked={local} onChange={(event) => setLocal(event.currentTarget.checked)} />
        each node alone too
      </label>
      {running && <span class="ol-dim">running both models…</span>}
      {errors ? (
        <label class="ol-pair-choice" title="Relative to the largest magnitude of a value">
          tolerance
          <input
            class="ol-input"
            inputMode="decimal"
            placeholder="roundings"
            data-testid="pair-tolerance"
            onInput={(event) => {
              const text = event.currentTarget.value.trim(),
                number = Number(text);
              pair.tolerance.value = text && number >= 0 ? number : null;
            }}
          />
        </label>
      ) : (
        <span class="ol-dim">shows from which node on values differ, and by how much</span>
      )}
    </div>
  );
}
