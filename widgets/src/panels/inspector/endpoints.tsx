/** Inputs and outputs as rows: a name, a shape, and one click to what is at the other end. */

import { useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { withoutOperator } from "../../graph/scene/short_names.ts";
import type { Endpoint, InputInfo, OutputInfo } from "../../kernel/protocol.ts";
import { FORMAL, GRAPH_INPUT, GRAPH_OUTPUT } from "../../kernel/protocol.ts";
import { valueLabel } from "../../model/names.ts";
import { Elided } from "../parts/controls.tsx";
import { Icon } from "../parts/icons.tsx";

/** Uses shown at most; the others fold behind "n more". */
const USES_SHOWN = 5;

export function InputRow({ app, node, input }: { app: App; node: number; input: InputInfo }) {
  const { slot, value, producer } = input;
  if (!value) {
    return (
      <div class="ol-end">
        <span class="ol-formal">{input.formal || slot}</span>
        <span class="ol-dim">not connected</span>
        <Rewire app={app} node={node} slot={slot} word="connect" />
      </div>
    );
  }
  const flags = app.store.values.get(value)?.flags ?? 0;
  return (
    <div class="ol-end">
      <ValueLine app={app} formal={input.formal || String(slot)} value={value} name={input.name} label={input.label} />
      <div class="ol-end-line">
        {producer ? (
          <Follow app={app} end={producer} direction="from" testid={`input-link-${slot}`} />
        ) : (
          <button
            type="button"
            class="ol-follow"
            data-testid={`input-link-${slot}`}
            onClick={() => app.picked.revealValue(value)}
            title={valueLabel(app.store, value)}
          >
            <Icon name="from" />
            <span>{input.initializer ? "initializer" : originWords(flags)}</span>
          </button>
        )}
        <Rewire app={app} node={node} slot={slot} word="rewire" />
      </div>
    </div>
  );
}

/** Opens the dialog that asks what an input shall read. */
function Rewire({ app, node, slot, word }: { app: App; node: number; slot: number; word: string }) {
  if (!app.client.editable) return null;
  return (
    <button
      type="button"
      class="ol-link ol-rewire"
      data-testid={`input-rewire-${slot}`}
      aria-label={`${word} input ${slot}`}
      onClick={() => app.dialogs.connect(node, slot)}
    >
      {word}
    </button>
  );
}

function originWords(flags: number): string {
  if (flags & GRAPH_INPUT) return "input of the graph";
  return flags & FORMAL ? "input of this scope" : "made nowhere";
}

export function OutputRow({ app, output }: { app: App; output: OutputInfo }) {
  const [all, setAll] = useState(false);
  const { slot, value, uses } = output;
  if (!value) {
    return (
      <div class="ol-end">
        <span class="ol-formal">{output.formal || slot}</span>
        <span class="ol-dim">not made</span>
      </div>
    );
  }
  const flags = app.store.values.get(value)?.flags ?? 0;
  const shown = all ? uses : uses.slice(0, USES_SHOWN);
  return (
    <div class="ol-end">
      <ValueLine
        app={app}
        formal={output.formal || String(slot)}
        value={value}
        name={output.name}
        label={output.label}
      />
      {shown.map((use, i) => (
        <Follow
          key={`${use.id}/${use.slot}`}
          app={app}
          end={use}
          direction="to"
          testid={i === 0 ? `output-link-${slot}` : `output-link-${slot}-${i}`}
        />
      ))}
      {uses.length > shown.length && (
        <button type="button" class="ol-link" onClick={() => setAll(true)}>
          {uses.length - shown.length} more
        </button>
      )}
      {(flags & (GRAPH_OUTPUT | FORMAL)) !== 0 && (
        <span class="ol-follow ol-dim">
          <Icon name="to" />
          {flags & GRAPH_OUTPUT ? "output of the graph" : "output of this scope"}
        </span>
      )}
      {uses.length === 0 && !(flags & (GRAPH_OUTPUT | FORMAL)) && <span class="ol-follow ol-dim">used by nothing</span>}
    </div>
  );
}

interface ValueLineProps {
  app: App;
  formal: string;
  value: number;
  name: string;
  label: string;
}

/** The formal name, the value (click: inspect it) and its shape, the whole type in the tooltip. */
function ValueLine({ app, formal, value, name, label }: ValueLineProps) {
  const record = app.store.values.get(value);
  return (
    <div class="ol-value-line">
      <span class="ol-formal" title={formal}>
        {formal}
      </span>
      <button
        type="button"
        class="ol-value-name"
        onClick={() => app.picked.selectValue(value)}
        data-testid="value-link"
      >
        <Elided text={name} middle />
      </button>
      <TypeAndShape dtype={record?.dtype} label={record?.label} title={label} />
    </div>
  );
}

/** "float32 1×3×224×224", as the picture writes shapes; a label such as "seq map" says the type by itself. */
export function TypeAndShape({ dtype = "", label = "", title }: { dtype?: string; label?: string; title?: string }) {
  const isTyped = !dtype || label.startsWith(dtype);
  return (
    <span class="ol-shape" title={title}>
      {label ? (isTyped ? label : `${dtype} ${label}`) : dtype ? `${dtype}, any rank` : "no type"}
    </span>
  );
}

interface FollowProps {
  app: App;
  end: Endpoint;
  direction: "from" | "to";
  testid?: string;
}

/** One click to the node at the other end. */
export function Follow({ app, end, direction, testid }: FollowProps) {
  return (
    <button
      type="button"
      class="ol-follow"
      data-testid={testid}
      title={`${end.op} ${end.label}`}
      onClick={() => app.picked.reveal(end.id)}
    >
      <Icon name={direction} />
      <span class="ol-follow-op">{end.op}</span>
      <Elided text={withoutOperator(end.label, end.op)} middle class="ol-dim" />
    </button>
  );
}
