/**
 * The inputs of a run: for each the way to make it, sizes for names of dims, the seed of what is random; how long it
 * may take.
 */

import { useEffect, useRef } from "preact/hooks";
import type { App } from "../../app.ts";
import { imagePlace } from "../../kernel/npy.ts";
import { type GivenInput, INITIALIZER, type ValueRecord } from "../../kernel/protocol.ts";
import { type Choice, dimNames } from "../../look/tensor_state.ts";
import { mainScope } from "../../model/names.ts";
import { useCell, useEvents } from "../../state.ts";
import { focusPicture, onEscape } from "../edit/form.tsx";
import { Elided, ToolButton } from "../parts/controls.tsx";
import { FileChoice } from "./file_choice.tsx";

const WAYS: Record<GivenInput["how"], string> = {
  random: "random",
  zeros: "zeros",
  ones: "ones",
  last: "as in the last run",
  text: "typed…",
  file: "from a file…",
};

export function RunInputs({ app }: { app: App }) {
  const open = useCell(app.numbers.asking);
  return open ? <OpenInputs app={app} /> : null;
}

function OpenInputs({ app }: { app: App }) {
  useEvents(app.store, "commit", "reset");
  const { sizes, seed, deadline } = useCell(app.numbers.inputs);
  const running = useCell(app.runs.running);
  const inputs = graphInputs(app);
  const panel = useRef<HTMLDivElement>(null);
  useEffect(() => panel.current?.focus({ preventScroll: true }), []);
  const close = () => {
    focusPicture(panel.current);
    app.numbers.asking.value = false;
  };
  return (
    <div
      class="ol-popup ol-inputs"
      role="dialog"
      aria-label="Inputs of the run"
      data-testid="run-inputs"
      tabIndex={-1}
      ref={panel}
      onKeyDown={onEscape(close)}
    >
      <div class="ol-inputs-head">
        <b>Inputs of the run</b>
        <ToolButton icon="close" title="Close" testid="run-inputs-close" onClick={close} />
      </div>
      <div class="ol-inputs-list">
        {inputs.map((value) => (
          <InputChoice key={value.id} app={app} value={value} />
        ))}
        {inputs.length === 0 && <p class="ol-empty">This model takes no inputs.</p>}
      </div>
      <div class="ol-inputs-sizes">
        {dimNames(inputs).map((name) => (
          <NumberField
            key={name}
            label={name}
            value={sizes[name] ?? null}
            testid={`run-size-${name}`}
            change={(size) => app.numbers.size(name, size)}
          />
        ))}
        <NumberField
          label="seed"
          value={seed || null}
          testid="run-seed"
          change={(next) => {
            app.numbers.inputs.value = { ...app.numbers.inputs.value, seed: next ?? 0 };
          }}
        />
        <NumberField
          label="seconds"
          value={deadline}
          testid="run-deadline"
          change={(next) => {
            app.numbers.inputs.value = { ...app.numbers.inputs.value, deadline: next };
          }}
        />
      </div>
      <button
        type="button"
        class="ol-button ol-text-button"
        disabled={running !== null || !app.client.editable}
        data-testid="run-inputs-run"
        onClick={() => {
          close();
          void app.runs.run(null);
        }}
      >
        Run all
      </button>
    </div>
  );
}

/** Whether an input is one for images first of all: they can be chosen at once. */
function isLikeAnImage({ label, dtype }: ValueRecord): boolean {
  return (imagePlace(label)?.rank ?? 0) > 2 && /float|uint8/.test(dtype ?? "");
}

function graphInputs(app: App): ValueRecord[] {
  const { store } = app;
  const ids = store.scopes.get(mainScope(store))?.inputs ?? [];
  return ids.flatMap((id) => store.values.get(id) ?? []).filter(({ flags }) => !(flags & INITIALIZER));
}

function NumberField({
  label,
  value,
  testid,
  change,
}: {
  label: string;
  value: number | null;
  testid: string;
  change: (number: number | null) => void;
}) {
  return (
    <label class="ol-inputs-size">
      <span class="ol-elided ol-mono" title={label}>
        {label}
      </span>{" "}
      <input
        type="number"
        class="ol-input"
        min={0}
        placeholder="auto"
        value={value ?? ""}
        data-testid={testid}
        onInput={(event) => {
          const next = event.currentTarget.valueAsNumber;
          change(Number.isInteger(next) && next >= 0 ? next : null);
        }}
      />
    </label>
  );
}

function InputChoice({ app, value }: { app: App; value: ValueRecord }) {
  const { choices } = useCell(app.numbers.inputs);
  const { name, label, dtype } = value;
  const choice: Choice | undefined = choices[name];
  const set = (next: Choice | null) => app.numbers.choose(name, next);
  const change = (how: string) => set(how === "" ? null : { how: how as GivenInput["how"] });
  return (
    <div class="ol-inputs-row">
      <span class="ol-mono ol-inputs-name">
        <Elided text={name} middle />
      </span>
      <span class="ol-dim ol-elided" title={`${dtype} ${label}`}>
        {dtype} {label || "?"}
      </span>
      <select
        class="ol-input ol-select"
        value={choice?.how ?? ""}
        aria-label={`How ${name} is made`}
        data-testid={`run-how-${name}`}
        onChange={(event) => change(event.currentTarget.value)}
      >
        <option value="">as last time, or random</option>
        {Object.entries(WAYS).map(([how, words]) => (
          <option key={how} value={how}>
            {words}
          </option>
        ))}
      </select>
      {choice?.how === "text" && (
        <input
          type="text"
          class="ol-input ol-mono ol-inputs-wide"
          placeholder="one number for all, one for each, or [[1, 2], [3, 4]]"
          value={choice.text ?? ""}
          aria-label={`Numbers of ${name}`}
          data-testid={`run-text-${name}`}
          onInput={(event) => set({ how: "text", text: event.currentTarget.value })}
        />
      )}
      {(choice?.how === "file" || (!choice && isLikeAnImage(value))) && (
        <FileChoice app={app} value={value} choice={choice} set={set} />
      )}
    </div>
  );
}
