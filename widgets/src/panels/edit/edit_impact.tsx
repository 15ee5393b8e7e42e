/** The effects of an edit: a notice over the picture, the list of what changed, and why a shape is what it is. */

import type { App } from "../../app.ts";
import type { ExplanationStep } from "../../kernel/protocol.ts";
import { count, plural, valueLabel } from "../../model/names.ts";
import { useCell } from "../../state.ts";
import { useAnswer } from "../parts/ask.ts";
import { Elided, Section, ToolButton } from "../parts/controls.tsx";
import { Icon } from "../parts/icons.tsx";

export function RadiusNotice({ app }: { app: App }) {
  const effects = useCell(app.impact.effects);
  const shown = useCell(app.impact.noticed);
  if (!effects || !shown) return null;
  const { changed, refusal } = effects;
  return (
    <div class={`ol-impact ${refusal ? "ol-impact-refused" : ""}`} role="status" data-testid="impact">
      {changed.size > 0 && (
        <button
          type="button"
          class="ol-link"
          data-testid="impact-list"
          onClick={() => {
            app.drawer.value = "changes";
          }}
        >
          {plural(changed.size, "shape")} changed
        </button>
      )}
      {refusal && (
        <>
          <Icon name="error" />
          <span class="ol-elided" title={refusal.message}>
            <b>first error</b> {refusal.message}
          </span>
          {refusal.node !== 0 && (
            <button
              type="button"
              class="ol-link"
              data-testid="impact-show"
              onClick={() => app.picked.reveal(refusal.node)}
            >
              show
            </button>
          )}
          {app.client.editable && app.impact.culprit(refusal) !== 0 && (
            <button
              type="button"
              class="ol-link"
              data-testid="impact-why"
              onClick={() => app.impact.why(app.impact.culprit(refusal))}
            >
              why
            </button>
          )}
        </>
      )}
      <ToolButton icon="close" title="Dismiss" testid="impact-close" onClick={() => app.impact.dismiss()} />
    </div>
  );
}

const SHOWN = 500;

/** Every shape that the last edit changed, in the order in which values follow from it. */
export function Changes({ app }: { app: App }) {
  const effects = useCell(app.impact.effects);
  if (!effects) return <p class="ol-empty">The last edit changed no shape.</p>;
  const { changed, label } = effects;
  return (
    <div class="ol-table-scroll" tabIndex={0} aria-label="Changed shapes">
      <table class="ol-table">
        <caption>
          {plural(changed.size, "shape")} changed by “{label}”
        </caption>
        <thead>
          <tr>
            <th scope="col" class="ol-left">
              value
            </th>
            <th scope="col" class="ol-left">
              before
            </th>
            <th scope="col" class="ol-left">
              now
            </th>
            <th scope="col" />
          </tr>
        </thead>
        <tbody>
          {[...changed].slice(0, SHOWN).map(([value, [before, now]]) => (
            <tr key={value} data-testid="changed-row">
              <th scope="row" class="ol-left">
                <button type="button" class="ol-link ol-mono" onClick={() => app.picked.revealValue(value)}>
                  <Elided text={valueLabel(app.store, value)} middle />
                </button>
              </th>
              <td class="ol-left ol-mono ol-dim" title={before}>
                {before || "?"}
              </td>
              <td class="ol-left ol-mono" title={now}>
                {now || "?"}
              </td>
              <td>
                <button type="button" class="ol-link" onClick={() => app.impact.why(value)}>
                  why
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {changed.size > SHOWN && <p class="ol-empty">and {count(changed.size - SHOWN)} more</p>}
    </div>
  );
}

/** The reason for a value's shape: a way back through the values that it follows from. */
export function Why({ app, value }: { app: App; value: number }) {
  const { value: explained, axis } = useCell(app.impact.explained);
  if (!app.client.editable) return null;
  return (
    <Section title={explained === value && axis !== null ? `Why axis ${axis}?` : "Why this shape?"}>
      {explained === value ? (
        <Steps key={axis} app={app} value={value} axis={axis} />
      ) : (
        <button
          type="button"
          class="ol-link"
          data-testid="why"
          onClick={() => {
            app.impact.explained.value = { value, axis: null };
          }}
        >
          follow every dim back to where it comes from
        </button>
      )}
    </Section>
  );
}

function Steps({ app, value, axis }: { app: App; value: number; axis: number | null }) {
  const { data, error } = useAnswer(app, "explain", axis === null ? { value } : { value, axis }, value);
  if (error) return <p class="ol-empty">{error.sentence}</p>;
  if (!data) return <p class="ol-empty">Finding the reason…</p>;
  const steps = data.steps.filter((step, i) => !step.passes || i === data.lost || step.edits.length > 0);
  const passed = data.steps.length - steps.length;
  return (
    <ol class="ol-why" data-testid="explanation">
      {steps.map((step, i) => (
        <Step key={i} app={app} step={step} lost={data.steps[data.lost] === step} />
      ))}
      {passed > 0 && (
        <li class="ol-dim">
          {plural(passed, "step")} that only pass a dim on {passed === 1 ? "is" : "are"} left out
        </li>
      )}
      {data.steps.length === 0 && <li class="ol-dim">{data.text}</li>}
    </ol>
  );
}

function Step({ app, step, lost }: { app: App; step: ExplanationStep; lost: boolean }) {
  const { name, what: change, how, node, value, edits } = step;
  const show = () => (node ? app.picked.reveal(node) : app.picked.revealValue(value));
  return (
    <li class={lost ? "ol-why-lost" : ""}>
      <button type="button" class="ol-link ol-mono" disabled={!node && !value} onClick={show}>
        {name}
        {change && ` = ${change}`}
      </button>
      <p class="ol-dim">
        {how}
        {step.lost && <b> – lost here: {step.lost}</b>}
      </p>
      {edits.map((edit) => (
        <p key={edit} class="ol-hint">
          changed by “{edit}”
        </p>
      ))}
    </li>
  );
}
