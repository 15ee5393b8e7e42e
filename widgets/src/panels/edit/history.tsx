/** The edits so far as a list to step through: a click takes the model to that state. */

import { useEffect } from "preact/hooks";
import type { App } from "../../app.ts";
import { useCell, useEvents } from "../../state.ts";
import { ToolButton } from "../parts/controls.tsx";

export function HistoryList({ app }: { app: App }) {
  useEvents(app.store, "history");
  const { steps, position, dropped } = useCell(app.edits.steps);
  const { history } = app.store;
  useEffect(() => void app.edits.fetchHistory(), [history]);
  return (
    <ol class="ol-history" tabIndex={0} aria-label="History">
      <Step
        app={app}
        position={0}
        now={position}
        dropped={dropped}
        label={app.store.path ? "as loaded" : "as it was given"}
        python=""
      />
      {steps.map((step, i) => (
        <Step
          key={i}
          app={app}
          position={i + 1}
          now={position}
          dropped={dropped}
          label={step.label}
          python={step.python}
        />
      ))}
    </ol>
  );
}

interface StepProps {
  app: App;
  position: number;
  now: number;
  dropped: number;
  label: string;
  python: string;
}

function Step({ app, position, now, dropped, label, python }: StepProps) {
  const state = position === now ? "now" : position < now ? "done" : "undone";
  const gone = position < dropped;
  const title = gone
    ? "Cannot be gone back to: the history had no room for it"
    : state === "undone"
      ? "Redo up to here"
      : "Go back to here";
  return (
    <li class={`ol-step ol-step-${state}`}>
      <button
        type="button"
        class="ol-step-button"
        aria-current={state === "now" ? "step" : undefined}
        data-testid={`history-${position}`}
        title={title}
        disabled={gone}
        onClick={() => void app.edits.goTo(position)}
      >
        <span class="ol-step-mark" aria-hidden="true" />
        <span class="ol-elided">{label}</span>
        <code class="ol-mono ol-elided ol-dim">{python}</code>
      </button>
      {python && (
        <ToolButton
          icon="copy"
          title="Copy the line of Python"
          testid={`history-copy-${position}`}
          onClick={() => void app.notices.copyText(python)}
        />
      )}
    </li>
  );
}
