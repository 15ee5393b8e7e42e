/** The inspector of one node. */

import { useState } from "preact/hooks";
import type { App } from "../../app.ts";
import type { AttributeInfo, Diagnostic, NodeInfo } from "../../kernel/protocol.ts";
import { calledFunction, nodeLabel, plural, shortOp } from "../../model/names.ts";
import { useCell, useEvents } from "../../state.ts";
import { useAnswer } from "../parts/ask.ts";
import { Elided, Section, TextField, ToolButton } from "../parts/controls.tsx";
import { Icon } from "../parts/icons.tsx";
import { AttributeRow } from "./attribute_row.tsx";
import { InputRow, OutputRow } from "./endpoints.tsx";
import { LikeThese, RulesNear } from "./pattern.tsx";
import { StatisticsBlock } from "./statistics.tsx";
import { Trees } from "./trees.tsx";

export function NodeInspector({ app, node }: { app: App; node: number }) {
  useEvents(app.client, "connection");
  useEvents(app.store, "commit", "diagnostics");
  const { data, error } = useAnswer(app, "inspect", { node }, node);
  const record = app.store.nodes.get(node);
  if (!record) return null;
  const able = app.client.editable;
  return (
    <div class="ol-panel" data-testid="inspector-node" data-node={node}>
      <header class="ol-panel-head">
        <div class="ol-panel-title">
          <div class="ol-panel-words">
            <span class="ol-op" data-testid="node-op">
              {data?.op_type ?? shortOp(record.op)}
            </span>
            {data && <span class="ol-dim">{originLine(data)}</span>}
          </div>
          <ToolButton
            icon="trash"
            title="Delete, joining its input to its output (Delete); Shift: leave the gap"
            testid="node-delete"
            disabled={!able}
            onClick={() => void app.edits.remove([node], true)}
          />
        </div>
        <NameField app={app} node={node} able={able} />
        {data && <Summary app={app} info={data} />}
      </header>
      <Diagnostics diagnostics={app.store.diagnostics.filter((diagnostic) => diagnostic.node === node)} />
      {error && !data && <p class="ol-empty">{error.message}</p>}
      {shortOp(record.op).startsWith("TreeEnsemble") && <Trees key={node} app={app} node={node} />}
      {data && <Body app={app} info={data} able={able} />}
      {data && <LikeThese app={app} nodes={[node]} />}
      {data && able && <RulesNear app={app} node={node} />}
    </div>
  );
}

function originLine({ domain, since_version }: NodeInfo): string {
  return [domain || "ai.onnx", since_version === null ? "" : `since ${since_version}`].filter(Boolean).join(" · ");
}

function NameField({ app, node, able }: { app: App; node: number; able: boolean }) {
  const grab = useCell(app.edits.renaming);
  return (
    <TextField
      value={app.store.nodes.get(node)?.name ?? ""}
      label="Node name"
      testid="node-name-field"
      errorTestid="node-name-error"
      placeholder={`no name (${nodeLabel(app.store, node)})`}
      disabled={!able}
      mono
      grab={grab}
      onGrabbed={() => {
        app.edits.renaming.value = false;
      }}
      commit={(text) => app.edits.renameNode(node, text)}
    />
  );
}

/** One sentence of the operator's documentation; the rest, as plain text, on demand. */
function Summary({ app, info }: { app: App; info: NodeInfo }) {
  const [open, setOpen] = useState(false);
  return (
    <div class="ol-summary">
      <p>
        {plainSentence(info.summary) || "No documentation for this operator."}{" "}
        {info.summary && (
          <button
            type="button"
            class="ol-link"
            aria-expanded={open}
            data-testid="doc-toggle"
            onClick={() => setOpen(!open)}
          >
            {open ? "hide documentation" : "documentation"}
          </button>
        )}
      </p>
      {open && <Documentation app={app} node={info.id} />}
    </div>
  );
}

/** Markdown's links and code marks taken out: the sentence is shown as text. */
function plainSentence(text: string): string {
  return text
    .replace(/\[([^\]]+)\]\([^)\s]*\)/g, "$1")
    .replace(/`+/g, "")
    .replace(/\*\*/g, "");
}

function Documentation({ app, node }: { app: App; node: number }) {
  const { data, error } = useAnswer(app, "doc", { node }, node);
  if (error) return <p class="ol-empty">{error.message}</p>;
  if (!data) return <p class="ol-empty">Loading…</p>;
  return (
    <div class="ol-doc" data-testid="doc-text" tabIndex={0} aria-label={`Documentation of ${data.title}`}>
      {data.deprecated && <p class="ol-doc-note">Deprecated.</p>}
      <pre>{data.text}</pre>
    </div>
  );
}

/** Required ones first, then by name: schemas keep them in no order, and a change of value must not move a field. */
function inOrder(attributes: AttributeInfo[]): AttributeInfo[] {
  return [...attributes].sort((a, b) => Number(b.required) - Number(a.required) || a.name.localeCompare(b.name));
}

function nodesIn(app: App, scope: number): number {
  let nodes = 0;
  for (const node of app.store.nodes.values()) if (node.scope === scope) nodes++;
  return nodes;
}

export function Diagnostics({ diagnostics }: { diagnostics: Diagnostic[] }) {
  if (diagnostics.length === 0) return null;
  return (
    <ul class="ol-diagnostics">
      {diagnostics.map((diagnostic, i) => (
        <li key={i} class={`ol-diagnostic ol-${diagnostic.severity}`} data-testid="node-diagnostic">
          <Icon name={diagnostic.severity} />
          <div>
            <p>{diagnostic.message}</p>
            {(diagnostic.expected || diagnostic.found) && (
              <dl class="ol-pairs">
                {diagnostic.expected && (
                  <>
                    <dt>expected</dt>
                    <dd>{diagnostic.expected}</dd>
                  </>
                )}
                {diagnostic.found && (
                  <>
                    <dt>found</dt>
                    <dd>{diagnostic.found}</dd>
                  </>
                )}
              </dl>
            )}
            {diagnostic.hint && <p class="ol-hint">{diagnostic.hint}</p>}
          </div>
        </li>
      ))}
    </ul>
  );
}

function Body({ app, info, able }: { app: App; info: NodeInfo; able: boolean }) {
  const results = useCell(app.runs.results);
  const statistics = info.outputs.flatMap((output) => results?.byValue.get(output.value) ?? []);
  const called = calledFunction(app.store, info.id);
  const doors = [...info.bodies, ...(called ? [{ attribute: "definition of the function", scope: called }] : [])];
  return (
    <>
      {info.attributes.length > 0 && (
        <Section title="Attributes">
          {inOrder(info.attributes).map((attribute) => (
            <AttributeRow key={attribute.name} app={app} node={info.id} attribute={attribute} able={able} />
          ))}
        </Section>
      )}
      {doors.length > 0 && (
        <Section title={called ? "Function" : "Bodies"}>
          {doors.map(({ attribute, scope }, i) => (
            <button
              key={scope}
              type="button"
              class="ol-row ol-row-button"
              data-testid={`body-link-${i}`}
              onClick={() => app.picture?.openScope(scope)}
            >
              <Icon name="enter" />
              <span class="ol-grow">{attribute}</span>
              <span class="ol-dim">{plural(nodesIn(app, scope), "node")}</span>
            </button>
          ))}
        </Section>
      )}
      <Section title="Inputs" count={info.inputs.length}>
        {info.inputs.map((input) => (
          <InputRow key={input.slot} app={app} node={info.id} input={input} />
        ))}
      </Section>
      <Section title="Outputs" count={info.outputs.length}>
        {info.outputs.map((output) => (
          <OutputRow key={output.slot} app={app} output={output} />
        ))}
      </Section>
      {statistics.length > 0 && results && (
        <Section title="Last run">
          {statistics.map((entry) => (
            <StatisticsBlock
              key={entry.id}
              statistics={entry}
              named={statistics.length > 1}
              stale={results.version !== app.store.version}
            />
          ))}
        </Section>
      )}
      {info.doc_string && (
        <Section title="Note in the file">
          <p class="ol-text">{info.doc_string}</p>
        </Section>
      )}
      <Pairs title="Metadata" pairs={info.metadata} />
      <Pairs title="In its format" pairs={info.notes} testid="format-notes" />
    </>
  );
}

/** Texts by their keys; nothing where there are none. */
export function Pairs({ title, pairs, testid }: { title: string; pairs: Record<string, string>; testid?: string }) {
  const rows = Object.entries(pairs);
  if (rows.length === 0) return null;
  return (
    <Section title={title}>
      <dl class="ol-stacked" data-testid={testid}>
        {rows.map(([key, text]) => [
          <dt key={key}>
            <Elided text={key} middle />
          </dt>,
          <dd title={text}>{text}</dd>,
        ])}
      </dl>
    </Section>
  );
}
