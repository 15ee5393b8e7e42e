/** The parts that a cut takes away, with those that it makes instead, before it is made. */

import { useLayoutEffect, useRef } from "preact/hooks";
import type { App } from "../../app.ts";
import type { AskedCut, CutWay } from "../../edit/cutting.ts";
import type { CutPreview } from "../../kernel/protocol.ts";
import { plural, valueLabel } from "../../model/names.ts";
import { useCell } from "../../state.ts";
import { focusPicture } from "./form.tsx";

const TITLES: Record<CutWay, string> = {
  end: "End the model at",
  start: "Start the model at",
  behind: "Delete all behind",
  out: "Cut out",
};

export function CutPanel({ app }: { app: App }) {
  const cut = useCell(app.cutting.asked);
  return cut ? <OpenCut app={app} cut={cut} /> : null;
}

function OpenCut({ app, cut }: { app: App; cut: AskedCut }) {
  const { way, values, preview, refused } = cut;
  const panel = useRef<HTMLDivElement>(null);
  const close = () => {
    const { current } = panel;
    app.cutting.giveUp();
    focusPicture(current);
  };
  const known = preview !== null || refused !== "";
  useLayoutEffect(() => {
    (panel.current?.querySelector<HTMLElement>(".ol-primary") ?? panel.current)?.focus({ preventScroll: true });
  }, [known]);
  const subject =
    way === "out" ? plural(values.length, "node") : values.map((value) => valueLabel(app.store, value)).join(", ");
  const title = `${TITLES[way]} ${subject}${way === "out" ? " as a model" : ""}`;
  return (
    <div
      class={`ol-popup ol-cut ol-cut-${way}`}
      role="dialog"
      aria-label={title}
      tabIndex={-1}
      ref={panel}
      data-testid="cut-panel"
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        close();
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      <p class="ol-palette-title">{title}</p>
      {refused && (
        <p class="ol-field-error" role="alert" data-testid="cut-refused">
          {refused}
        </p>
      )}
      {!known && <p class="ol-dim">Finding what is removed…</p>}
      {preview && <What app={app} cut={cut} preview={preview} />}
      <div class="ol-form-buttons">
        <button type="button" class="ol-button ol-text-button" onClick={close}>
          Cancel
        </button>
        {refused && way === "behind" && <Remedy app={app} way="end" cut={cut} label="End the model here instead" />}
        {preview && way === "out" && (
          <button
            type="button"
            class="ol-button ol-text-button"
            data-testid="cut-open"
            title="The model stays as it is; “Back” shows it again"
            onClick={() => app.cutting.take("openPart")}
          >
            Open in this view
          </button>
        )}
        {preview && (
          <button
            type="button"
            class="ol-button ol-text-button ol-primary"
            data-testid="cut-make"
            onClick={() => {
              focusPicture(panel.current);
              if (way === "out") app.cutting.take("download");
              else void app.cutting.make();
            }}
          >
            {way === "out" ? "Download" : confirmation(preview)}
          </button>
        )}
      </div>
    </div>
  );
}

function confirmation({ nodes, lost_outputs }: CutPreview): string {
  const outputs = lost_outputs.length ? ` and ${plural(lost_outputs.length, "output")}` : "";
  return `Cut: ${plural(nodes.length, "node")}${outputs} ${nodes.length + lost_outputs.length === 1 ? "goes" : "go"}`;
}

function Remedy({ app, way, cut, label }: { app: App; way: CutWay; cut: AskedCut; label: string }) {
  return (
    <button
      type="button"
      class="ol-button ol-text-button ol-primary"
      data-testid="cut-remedy"
      onClick={() => void app.cutting.ask(way, cut.values)}
    >
      {label}
    </button>
  );
}

/** Names, the first few of many. */
function listed(names: string[]): string {
  return names.length > 8 ? `${names.slice(0, 8).join(", ")} and ${names.length - 8} more` : names.join(", ");
}

function What({ app, cut, preview }: { app: App; cut: AskedCut; preview: CutPreview }) {
  const { nodes, kept: along, stored, outputs, inputs, lost_outputs, lost_inputs, siblings } = preview;
  const rows: [string, string[]][] = [
    ["outputs that go", lost_outputs],
    [cut.way === "out" ? "its outputs" : "new outputs", outputs],
    [cut.way === "out" ? "its inputs" : "new inputs", inputs],
    ["inputs that go", lost_inputs],
  ];
  const border = siblings.map((value) => valueLabel(app.store, value));
  return (
    <>
      <p data-testid="cut-count">
        {cut.way === "out"
          ? `${plural(along, "node")} and ${plural(stored, "initializer")} make the new model; all else stays out and is faint in the picture. This model does not change.`
          : `${plural(nodes.length, "node")} go: they are faint in the picture.`}
      </p>
      <dl class="ol-pairs">
        {rows.map(
          ([words, names]) =>
            names.length > 0 && [
              <dt key={words}>{words}</dt>,
              <dd key={`${words}:`} class="ol-mono" data-testid={`cut-${words.replaceAll(" ", "-")}`}>
                {listed(names)}
              </dd>,
            ],
        )}
      </dl>
      {cut.way !== "out" && (border.length > 0 || !cut.siblings) && (
        <label class="ol-form-check">
          <input
            type="checkbox"
            checked={cut.siblings}
            data-testid="cut-siblings"
            onChange={(event) => void app.cutting.ask(cut.way, cut.values, event.currentTarget.checked)}
          />
          <span>Take what crosses the same border too{border.length > 0 && `: ${listed(border)}`}</span>
        </label>
      )}
    </>
  );
}
