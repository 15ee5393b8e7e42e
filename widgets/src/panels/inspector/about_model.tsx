/** The statements of a model on itself: its parameters, what wrote it, its documentation and metadata. */

import { useMemo } from "preact/hooks";
import type { App } from "../../app.ts";
import { inShort } from "../../graph/groups/summary.ts";
import { quantity } from "../../look/node_heat.ts";
import { plural } from "../../model/names.ts";
import { constantsOf, parameterTotals, readBy, typeWords } from "../../model/parameter_totals.ts";
import { useAnswer } from "../parts/ask.ts";
import { Elided, Section } from "../parts/controls.tsx";
import { Pairs } from "./inspect_node.tsx";

/** The number of parameters, of the model or of nodes, their bytes and types; nothing where none is stored. */
export function Parameters({ app, nodes }: { app: App; nodes?: readonly number[] }) {
  const { store } = app;
  const totals = useMemo(
    () => parameterTotals(nodes ? readBy(store, nodes) : store.values.values(), constantsOf(store)),
    [store.version, nodes?.length, nodes?.[0]],
  );
  if (!totals.elements) return null;
  return (
    <>
      <dt>parameters</dt>
      <dd data-testid="model-parameters" title={plural(totals.elements, "parameter")}>
        {inShort(totals.elements)} <span class="ol-dim">· {quantity(totals.bytes, "B")}</span>
      </dd>
      {totals.types.length > 0 && (
        <>
          <dt>stored as</dt>
          <dd data-testid="model-types">{typeWords(totals)}</dd>
        </>
      )}
    </>
  );
}

/** The IR version and what wrote the file, where it says so. */
export function MadeBy({ app }: { app: App }) {
  const fields = useAnswer(app, "about", {}, 1).data?.fields;
  const producer = [fields?.producer_name, fields?.producer_version].filter(Boolean).join(" ");
  return (
    <>
      {Boolean(fields?.ir_version) && (
        <>
          <dt>IR version</dt>
          <dd>{fields!.ir_version}</dd>
        </>
      )}
      {producer && (
        <>
          <dt>producer</dt>
          <dd data-testid="model-producer">
            <Elided text={producer} middle />
          </dd>
        </>
      )}
    </>
  );
}

/** The documentation and the metadata of the model. */
export function OwnNotes({ app }: { app: App }) {
  const { data } = useAnswer(app, "about", {}, 1);
  if (!data) return null;
  const notes = [data.doc_string, data.graph_doc_string].filter(Boolean).join("\n");
  return (
    <>
      {notes && (
        <Section title="Documentation">
          <p class="ol-text ol-own-notes" tabIndex={0} data-testid="model-notes">
            {notes}
          </p>
        </Section>
      )}
      <Pairs title="Metadata" pairs={data.metadata} testid="model-metadata" />
    </>
  );
}
