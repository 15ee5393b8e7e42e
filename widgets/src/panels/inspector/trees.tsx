/** The trees of an ensemble: how many and how large, which features they use, and one of them as text. */

import { useEffect, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import type { TreesInfo } from "../../kernel/protocol.ts";
import { asRequestError } from "../../kernel/request_error.ts";
import { plural } from "../../model/names.ts";
import { Section } from "../parts/controls.tsx";
import { formatNumber } from "./statistics.tsx";

const FEATURES_SHOWN = 12;

export function Trees({ app, node }: { app: App; node: number }) {
  const [tree, setTree] = useState(0);
  const [ensemble, setEnsemble] = useState<TreesInfo | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    let live = true;
    app.client.request("trees", { node, tree }).then(
      (answer) => {
        if (!live) return;
        setEnsemble(answer);
        setError("");
      },
      (problem) => live && setError(asRequestError(problem).sentence),
    );
    return () => {
      live = false;
    };
  }, [node, tree, app.store.version]);
  if (!ensemble) return <p class="ol-empty">{error}</p>;
  const { count, splits, leaves, depth, features, more, text } = ensemble;
  const most = Math.max(1, ...features.map((use) => use.splits));
  const hidden = more + Math.max(0, features.length - FEATURES_SHOWN);
  return (
    <Section title="Trees">
      <p data-testid="trees-summary">
        {plural(count, "tree")}, {plural(splits, "split")}, {plural(leaves, "leaf", "leaves")}, depth{" "}
        {depth.join(" to ")}
      </p>
      {features.slice(0, FEATURES_SHOWN).map((use) => (
        <div
          key={use.feature}
          class="ol-row ol-feature"
          title={`${plural(use.splits, "split")}, at ${formatNumber(use.low)} … ${formatNumber(use.high)}`}
          data-testid="trees-feature"
        >
          <span class="ol-mono">feature {use.feature}</span>
          <span class="ol-share">
            <span style={{ width: `${(use.splits / most) * 100}%` }} />
          </span>
          <span class="ol-dim">{use.splits}</span>
        </div>
      ))}
      {hidden > 0 && <p class="ol-dim">and {plural(hidden, "more feature")}</p>}
      <label class="ol-tensor-axis">
        tree{" "}
        <input
          type="number"
          class="ol-input"
          min={0}
          max={count - 1}
          value={tree}
          data-testid="trees-number"
          onInput={(event) => {
            const next = event.currentTarget.valueAsNumber;
            if (Number.isInteger(next) && next >= 0 && next < count) setTree(next);
          }}
        />
      </label>
      {error && <p class="ol-field-error">{error}</p>}
      <pre class="ol-tree-text" tabIndex={0} data-testid="trees-text" aria-label={`Tree ${ensemble.tree}`}>
        {text}
      </pre>
    </Section>
  );
}
