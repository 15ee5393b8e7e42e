/** The inspector of one value: a clicked edge, an input, an output or an initializer. */

import type { App } from "../../app.ts";
import { FORMAL, GRAPH_INPUT, GRAPH_OUTPUT, INITIALIZER } from "../../kernel/protocol.ts";
import { quantity } from "../../look/node_heat.ts";
import { plural } from "../../model/names.ts";
import { bytes } from "../../model/tables.ts";
import { useCell, useEvents } from "../../state.ts";
import { Why } from "../edit/edit_impact.tsx";
import { useAnswer } from "../parts/ask.ts";
import { Section, TextField } from "../parts/controls.tsx";
import { Thumbnail } from "../values/thumbnail.tsx";
import { Follow } from "./endpoints.tsx";
import { Diagnostics, Pairs } from "./inspect_node.tsx";
import { StatisticsBlock } from "./statistics.tsx";
import { ValueWatches } from "./value_watches.tsx";

export function ValueInspector({ app, value }: { app: App; value: number }) {
  useEvents(app.client, "connection");
  useEvents(app.store, "commit", "diagnostics");
  const { data, error } = useAnswer(app, "value", { value }, value);
  const results = useCell(app.runs.results);
  const renaming = useCell(app.edits.renaming);
  const record = app.store.values.get(value);
  if (!record) return null;
  const ran = results?.byValue.get(value);
  const statistics = ran ?? data?.statistics;
  return (
    <div class="ol-panel" data-testid="inspector-value" data-value={value}>
      <header class="ol-panel-head">
        <div class="ol-panel-title">
          <div class="ol-panel-words">
            <span class="ol-op">Value</span>
            <span class="ol-dim">{kinds(record.flags)}</span>
          </div>
        </div>
        <TextField
          value={record.name}
          label="Value name"
          testid="value-name-field"
          errorTestid="value-name-error"
          mono
          disabled={!app.client.editable}
          grab={renaming}
          onGrabbed={() => {
            app.edits.renaming.value = false;
          }}
          commit={(text) => app.edits.renameValue(value, text)}
        />
        <TypeLine app={app} value={value} label={data?.label || record.label || "type unknown"} />
        {(record.flags & (GRAPH_INPUT | GRAPH_OUTPUT)) !== 0 && data && (
          <Declared app={app} value={value} label={data.label} />
        )}
      </header>
      <Diagnostics
        diagnostics={app.store.diagnostics.filter((diagnostic) => diagnostic.value === value && !diagnostic.node)}
      />
      {error && !data && <p class="ol-empty">{error.message}</p>}
      {data?.producer && (
        <Section title="Made by">
          <Follow app={app} end={data.producer} direction="from" testid="value-producer" />
        </Section>
      )}
      {data && (
        <Section title="Used by" count={data.uses.length}>
          {data.uses.map((use, i) => (
            <Follow key={`${use.id}/${use.slot}`} app={app} end={use} direction="to" testid={`value-use-${i}`} />
          ))}
          {data.uses.length === 0 && <p class="ol-empty">No node takes this value.</p>}
          {data.uses.length > 1 && (
            <button
              type="button"
              class="ol-link"
              onClick={() => app.picked.select([...new Set(data.uses.map((use) => use.id))])}
            >
              select {plural(new Set(data.uses.map((use) => use.id)).size, "node")}
            </button>
          )}
        </Section>
      )}
      {data && <Pairs title="In its format" pairs={data.notes} testid="format-notes" />}
      <Look app={app} value={value} />
      {data?.initializer && (
        <Section title="Stored values">
          <pre class="ol-preview" data-testid="value-preview">
            {data.initializer.preview}
          </pre>
        </Section>
      )}
      {statistics && (
        <Section title={ran ? "Last run" : "Statistics"}>
          <StatisticsBlock
            statistics={statistics}
            named={false}
            stale={ran !== undefined && results?.version !== app.store.version}
          />
        </Section>
      )}
      <ValueWatches app={app} value={value} />
      <Why app={app} value={value} />
    </div>
  );
}

/** Type and shape; each dim tells why it is what it is. */
function TypeLine({ app, value, label }: { app: App; value: number; label: string }) {
  const size = bytes(app.store.values.get(value));
  const [, dtype = "", dims = ""] = /^([\w.]+)\[(.+)\]$/.exec(label) ?? [];
  if (!dtype)
    return (
      <p class="ol-value-type" data-testid="value-label">
        {label}
      </p>
    );
  return (
    <p class="ol-value-type" data-testid="value-label">
      {dtype}[
      {splitDims(dims).map((dim, axis) => (
        <span key={axis}>
          {axis > 0 && ","}
          {app.client.editable ? (
            <button
              type="button"
              class="ol-link ol-dim-link"
              title={`Why is axis ${axis} ${dim}? Lights the way that it comes`}
              data-testid={`value-dim-${axis}`}
              onClick={() => void app.impact.whyDim(value, axis)}
            >
              {dim}
            </button>
          ) : (
            dim
          )}
        </span>
      ))}
      ]{size !== "" && <span class="ol-dim"> · {quantity(size, "B")}</span>}
    </p>
  );
}

/** The dims of a label; a comma inside of parentheses belongs to a dim. */
function splitDims(text: string): string[] {
  const dims = [""];
  let depth = 0;
  for (const letter of text) {
    depth += letter === "(" ? 1 : letter === ")" ? -1 : 0;
    if (letter === "," && depth === 0) dims.push("");
    else dims[dims.length - 1] += letter;
  }
  return dims.map((dim) => dim.trim());
}

/** Actions on the numbers of a value: look into them, keep them in later runs. */
function Look({ app, value }: { app: App; value: number }) {
  const pinned = useCell(app.numbers.pinned).has(value);
  useCell(app.runs.results);
  const running = useCell(app.runs.running);
  if (!app.client.can.run) return null;
  if (!app.numbers.known(value))
    return (
      <Section title="Numbers">
        <button
          type="button"
          class="ol-button ol-text-button"
          data-testid="value-large"
          disabled={running !== null || !app.client.editable}
          onClick={() => void app.numbers.lookAtLarge(value)}
        >
          Run and look at it
        </button>
      </Section>
    );
  const stored = ((app.store.values.get(value)?.flags ?? 0) & INITIALIZER) !== 0;
  return (
    <Section title="Numbers">
      <Thumbnail app={app} value={value} />
      <div class="ol-actions">
        <button
          type="button"
          class="ol-button ol-text-button"
          data-testid="value-look"
          onClick={() => app.numbers.look(value)}
        >
          Look into it
        </button>
        <button
          type="button"
          class="ol-button ol-text-button"
          data-testid="value-large"
          title="Planes side by side, image, wave form, largest five"
          onClick={() => void app.numbers.lookAtLarge(value)}
        >
          At large
        </button>
        {!stored && (
          <button
            type="button"
            class="ol-button ol-text-button"
            aria-pressed={pinned}
            data-testid="value-pin"
            title="A pinned value stays what it is now in every run, whatever makes it"
            onClick={() => void app.numbers.pin(value, !pinned)}
          >
            {pinned ? "Pinned: let go" : "Pin"}
          </button>
        )}
      </div>
    </Section>
  );
}

/**
 * Shape and type that an input or output declares, to be changed: numbers, names for dynamic dims, ? for unknown ones.
 */
function Declared({ app, value, label }: { app: App; value: number; label: string }) {
  const [, dtype = "", dims = ""] = /^(\w+)\[(.*)\]$/.exec(label) ?? [];
  if (!dtype) return null;
  const parse = (text: string): (number | string)[] =>
    text
      .split(",")
      .map((part) => part.trim())
      .filter(Boolean)
      .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
  return (
    <div class="ol-declared">
      <TextField
        value={dims.replaceAll(",", ", ")}
        label="Declared shape"
        testid="value-shape-field"
        errorTestid="value-shape-error"
        mono
        disabled={!app.client.editable}
        commit={(text) => app.edits.make("set_shape", "value", [value], { shape: parse(text) })}
      />
      <TextField
        value={dtype}
        label="Declared type"
        testid="value-dtype-field"
        errorTestid="value-dtype-error"
        mono
        disabled={!app.client.editable}
        commit={(text) => app.edits.make("set_dtype", "value", [value], { dtype: text.trim() })}
      />
    </div>
  );
}

function kinds(flags: number): string {
  const words = [];
  if (flags & GRAPH_INPUT) words.push("input of the graph");
  if (flags & GRAPH_OUTPUT) words.push("output of the graph");
  if (flags & INITIALIZER) words.push("initializer");
  if (flags & FORMAL && !(flags & GRAPH_INPUT)) words.push("formal parameter");
  return words.join(" · ") || "intermediate";
}
