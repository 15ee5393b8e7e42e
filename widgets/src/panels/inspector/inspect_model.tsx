/** The inspector while nothing is selected: the scope in view at a glance. */

import { useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { bundlesOf } from "../../graph/groups/bundles.ts";
import { INITIALIZER } from "../../kernel/protocol.ts";
import { count, mainScope, scopeLabel } from "../../model/names.ts";
import { useCell, useEvents } from "../../state.ts";
import { Bookmarks } from "../frame/travel_bar.tsx";
import { Elided, Section } from "../parts/controls.tsx";
import { AboutFormat } from "./about_format.tsx";
import { MadeBy, OwnNotes, Parameters } from "./about_model.tsx";
import { TypeAndShape } from "./endpoints.tsx";
import { OpTable } from "./op_table.tsx";

export function ModelInspector({ app }: { app: App }) {
  useEvents(app.store, "reset", "commit", "history");
  const scopeId = useCell(app.scope);
  const title = useCell(app.title);
  const { store } = app;
  const scope = store.scopes.get(scopeId || mainScope(store));
  const nodes = [...store.nodes.values()].filter((node) => !scope || node.scope === scope.id).map((node) => node.id);
  let initializers = 0;
  const stored: number[] = [];
  for (const value of store.values.values()) {
    if (!(value.flags & INITIALIZER) || (scope && value.scope !== scope.id)) continue;
    initializers++;
    if (!nodes.length) stored.push(value.id);
  }
  const isMain = scope?.kind === "graph";
  const functions = [...store.scopes.values()].filter((record) => record.kind === "function");
  return (
    <div class="ol-panel" data-testid="inspector-model">
      <header class="ol-panel-head">
        <div class="ol-panel-title">
          <div class="ol-panel-words">
            <span class="ol-op">
              <Elided text={scope ? scopeLabel(store, scope.id, title) : store.title} />
            </span>
          </div>
        </div>
        {store.path && (
          <p class="ol-dim">
            <Elided text={store.path} middle />
          </p>
        )}
      </header>
      <dl class="ol-pairs ol-block">
        <dt>nodes</dt>
        <dd>{count(nodes.length)}</dd>
        {nodes.length !== store.nodes.size && (
          <>
            <dt>with subgraphs</dt>
            <dd>{count(store.nodes.size)}</dd>
          </>
        )}
        {isMain && <Parameters app={app} />}
        <dt>initializers</dt>
        <dd>{count(initializers)}</dd>
        {functions.length > 0 && (
          <>
            <dt>functions</dt>
            <dd>{count(functions.length)}</dd>
          </>
        )}
        <Opsets opsets={store.opsets} />
        {isMain && <MadeBy app={app} />}
      </dl>
      {isMain && <OwnNotes app={app} />}
      <AboutFormat app={app} />
      <Bookmarks app={app} />
      {stored.length > 0 && <Values app={app} title="Initializers" values={stored} />}
      {scope && !stored.length && (
        <Values app={app} title="Inputs" values={scope.inputs.filter((id) => !isInitializer(app, id))} />
      )}
      {scope && !stored.length && <Values app={app} title="Outputs" values={scope.outputs} />}
      {functions.length > 0 && isMain && (
        <Section title="Functions" count={functions.length}>
          {functions.map((record) => (
            <button
              key={record.id}
              type="button"
              class="ol-row ol-row-button"
              onClick={() => app.picture?.openScope(record.id)}
            >
              <Elided text={scopeLabel(store, record.id)} middle class="ol-mono" />
            </button>
          ))}
        </Section>
      )}
      {nodes.length > 0 && (
        <Section title="Operators">
          <OpTable app={app} nodes={nodes} />
        </Section>
      )}
      {app.client.can.edit !== false && nodes.length > 0 && <OpensRewrites app={app} />}
    </div>
  );
}

function OpensRewrites({ app }: { app: App }) {
  useEvents(app.client, "connection");
  return (
    <Section title="Rewrites">
      <button
        type="button"
        class="ol-link"
        data-testid="rewrites-open"
        disabled={!app.client.editable}
        onClick={() => void app.rewriting.open()}
      >
        what would make it smaller or faster
      </button>
      <button
        type="button"
        class="ol-link"
        data-testid="quantize-open"
        disabled={!app.client.editable}
        onClick={() => void app.rewriting.quantize()}
      >
        what fewer bits would lose
      </button>
    </Section>
  );
}

/** The opset of ai.onnx; the others are listed on demand where there are many. */
function Opsets({ opsets }: { opsets: Readonly<Record<string, number>> }) {
  const [all, setAll] = useState(false);
  const domains = Object.entries(opsets).sort(([a], [b]) => a.length - b.length);
  const shown = all || domains.length <= 3 ? domains : domains.slice(0, 1);
  return (
    <>
      {shown.map(([domain, version]) => [
        <dt key={domain}>
          <Elided text={`opset ${domain || "ai.onnx"}`} />
        </dt>,
        <dd key={`${domain}:`}>{version}</dd>,
      ])}
      {shown.length < domains.length && (
        <>
          <dt />
          <dd>
            <button type="button" class="ol-link" onClick={() => setAll(true)}>
              {count(domains.length - shown.length)} more domains
            </button>
          </dd>
        </>
      )}
    </>
  );
}

/** Old files list every initializer as an input as well. */
function isInitializer(app: App, value: number): boolean {
  return ((app.store.values.get(value)?.flags ?? 0) & INITIALIZER) !== 0;
}

const SHOWN = 40;

/** Values that differ in numbers and one word are one row as they are one box in the picture; a press lists them. */
function Values({ app, title, values }: { app: App; title: string; values: number[] }) {
  const [all, setAll] = useState(false);
  const [listed, setListed] = useState<ReadonlySet<number>>(new Set());
  const bundles = bundlesOf(app.store, values);
  const rows = values.filter((id) => {
    const first = bundles.get(id)?.first ?? id;
    return first === id || listed.has(first);
  });
  return (
    <Section title={title} count={values.length}>
      {(all ? rows : rows.slice(0, SHOWN)).map((id) => {
        const bundle = bundles.get(id);
        if (!bundle || listed.has(bundle.first)) return <ValueRow key={id} app={app} id={id} />;
        return (
          <button
            key={id}
            type="button"
            class="ol-row ol-row-button"
            aria-expanded={false}
            data-testid="value-bundle"
            onClick={() => setListed(new Set([...listed, bundle.first]))}
          >
            <Elided text={bundle.name} middle class="ol-mono" />
            <span class="ol-shape">×{count(bundle.values.length)}</span>
          </button>
        );
      })}
      {values.length === 0 && <p class="ol-empty">none</p>}
      {!all && rows.length > SHOWN && (
        <button type="button" class="ol-link" onClick={() => setAll(true)}>
          {count(rows.length - SHOWN)} more
        </button>
      )}
    </Section>
  );
}

function ValueRow({ app, id }: { app: App; id: number }) {
  const value = app.store.values.get(id);
  if (!value) return null;
  return (
    <button type="button" class="ol-row ol-row-button" onClick={() => app.picked.revealValue(id)}>
      <Elided text={value.name} middle class="ol-mono" />
      <TypeAndShape dtype={value.dtype} label={value.label} />
    </button>
  );
}
