/**
 * The drawer below the picture: a status line, and above it, on demand, the problems or the results of the last run.
 */

import { useEffect, useRef } from "preact/hooks";
import type { App, Drawer as DrawerName } from "../../app.ts";
import type { Diagnostic, Severity, Statistics } from "../../kernel/protocol.ts";
import { count, nodeLabel, plural } from "../../model/names.ts";
import { useCell, useEvents } from "../../state.ts";
import { Changes } from "../edit/edit_impact.tsx";
import { HistoryList } from "../edit/history.tsx";
import { RewriteTable } from "../edit/rewrite_table.tsx";
import { formatNumber, formatShape, HistogramChart } from "../inspector/statistics.tsx";
import { Elided, ToolButton } from "../parts/controls.tsx";
import { Icon } from "../parts/icons.tsx";
import { TensorDrawer } from "../values/tensor_view.tsx";
import { Dims } from "./dims.tsx";
import { ColorBy, Legend } from "./legend.tsx";
import { ProfileTable } from "./profile.tsx";
import { DrawerEdge } from "./room.tsx";
import { ShortNamesLine } from "./short_names.tsx";
import { ModelTables } from "./tables.tsx";
import { WatchCount, WatchList } from "./watch_list.tsx";

const PROBLEMS_SHOWN = 300,
  RESULTS_SHOWN = 500;
const ORDER: Record<Severity, number> = { error: 0, warning: 1, info: 2 };

const TITLES = {
  problems: "Problems",
  results: "Results",
  tensor: "Tensor",
  changes: "Changed shapes",
  history: "History",
  table: "Tables",
  dims: "Dims",
  profile: "Profile",
  rewrites: "Rewrites",
  watches: "Watches",
};

export function Drawer({ app }: { app: App }) {
  const drawer = useCell(app.drawer);
  const height = useCell(app.drawerHeight);
  const section = useRef<HTMLElement>(null);
  if (drawer === null) return null;
  return (
    <section
      class="ol-drawer"
      aria-label={TITLES[drawer]}
      data-testid={`drawer-${drawer}`}
      ref={section}
      style={height ? { height: `min(${height}px, 80cqh)` } : undefined}
    >
      <DrawerEdge app={app} measure={() => section.current?.offsetHeight ?? height} />
      {drawer === "problems" && <Problems app={app} />}
      {drawer === "results" && <ResultsTable app={app} />}
      {drawer === "tensor" && <TensorDrawer app={app} />}
      {drawer === "changes" && <Changes app={app} />}
      {drawer === "history" && <HistoryList app={app} />}
      {drawer === "table" && <ModelTables app={app} />}
      {drawer === "dims" && <Dims app={app} />}
      {drawer === "profile" && <ProfileTable app={app} />}
      {drawer === "rewrites" && <RewriteTable app={app} />}
      {drawer === "watches" && <WatchList app={app} />}
      <ToolButton
        icon="close"
        title="Close"
        testid="drawer-close"
        onClick={() => {
          app.drawer.value = null;
        }}
      />
    </section>
  );
}

/** One line at the bottom: size of the model, problems, results. */
export function StatusLine({ app }: { app: App }) {
  useEvents(app.store, "reset", "commit", "diagnostics", "history");
  const drawer = useCell(app.drawer);
  const results = useCell(app.runs.results);
  useCell(app.picked.subject);
  const selected = app.picked.nodes.length;
  const toggle = (name: DrawerName) => {
    app.drawer.value = drawer === name ? null : name;
  };
  return (
    <div class="ol-status" role="group" aria-label="Status">
      <span data-testid="status-size">{app.store.version > 0 && plural(app.store.nodes.size, "node")}</span>
      {selected > 0 && <span class="ol-dim">{count(selected)} selected</span>}
      <ShortNamesLine app={app} />
      <span class="ol-stretch">
        <LastLine app={app} />
      </span>
      <ColorBy app={app} />
      <Legend app={app} />
      {app.store.version > 0 && (
        <button
          type="button"
          class="ol-status-button ol-status-tool"
          aria-pressed={drawer === "dims"}
          data-testid="status-dims"
          title="Names and sizes of dims: rename, fix, make dynamic"
          onClick={() => toggle("dims")}
        >
          <Icon name="dims" />
          Dims
        </button>
      )}
      <button
        type="button"
        class="ol-status-button ol-status-tool"
        aria-pressed={drawer === "table"}
        data-testid="status-table"
        onClick={() => toggle("table")}
      >
        <Icon name="table" />
        Tables
      </button>
      {app.client.can.edit !== false && app.store.version > 0 && (
        <button
          type="button"
          class="ol-status-button"
          aria-pressed={drawer === "history"}
          data-testid="status-history"
          onClick={() => toggle("history")}
        >
          <Icon name="clock" />
          {plural(app.store.history.position, "edit")}
        </button>
      )}
      {results && (
        <button
          type="button"
          class="ol-status-button"
          aria-pressed={drawer === "results"}
          data-testid="status-results"
          onClick={() => toggle("results")}
        >
          <Icon name="table" />
          {plural(results.values.length, "result")}
        </button>
      )}
      <WatchCount app={app} pressed={drawer === "watches"} onClick={() => toggle("watches")} />
      <ProblemCount app={app} pressed={drawer === "problems"} onClick={() => toggle("problems")} />
    </div>
  );
}

/** The last action, in Python, to be copied into a cell. */
function LastLine({ app }: { app: App }) {
  const line = useCell(app.edits.line);
  if (!line) return null;
  return (
    <span class="ol-last-line">
      <code class="ol-mono ol-elided" title={line} data-testid="python-line">
        {line}
      </code>
      <ToolButton
        icon="copy"
        title="Copy this line of Python"
        testid="python-copy"
        onClick={() => void app.notices.copyText(line)}
      />
    </span>
  );
}

function ProblemCount({ app, pressed, onClick }: { app: App; pressed: boolean; onClick: () => void }) {
  const { diagnostics, version } = app.store;
  if (version === 0) return null;
  const worst = diagnostics.reduce<Severity>(
    (so_far, diagnostic) => (ORDER[diagnostic.severity] < ORDER[so_far] ? diagnostic.severity : so_far),
    "info",
  );
  const shown = diagnostics.length;
  return (
    <button
      type="button"
      class={`ol-status-button ${shown ? `ol-${worst}` : ""}`}
      aria-pressed={pressed}
      data-testid="status-problems"
      onClick={onClick}
    >
      <Icon name={shown ? worst : "check"} />
      {shown ? plural(shown, "problem") : "No problems"}
    </button>
  );
}

function Problems({ app }: { app: App }) {
  useEvents(app.store, "diagnostics", "commit", "reset");
  useEffect(() => {
    if (!app.rulesFollow) app.checkRules();
  }, [app.store.version]);
  const diagnostics = [...app.store.diagnostics].sort((a, b) => ORDER[a.severity] - ORDER[b.severity]);
  if (diagnostics.length === 0)
    return (
      <p class="ol-empty">
        No problems: all types and shapes that can be known agree, and the file keeps ONNX’s rules.
      </p>
    );
  return (
    <ul class="ol-problems" tabIndex={0} aria-label="Problems">
      {diagnostics.slice(0, PROBLEMS_SHOWN).map((diagnostic, i) => (
        <Problem key={i} app={app} diagnostic={diagnostic} />
      ))}
      {diagnostics.length > PROBLEMS_SHOWN && (
        <li class="ol-empty">and {count(diagnostics.length - PROBLEMS_SHOWN)} more</li>
      )}
    </ul>
  );
}

function Problem({ app, diagnostic }: { app: App; diagnostic: Diagnostic }) {
  const { severity, message, node, value, expected, found: actual, hint } = diagnostic;
  const where = node ? nodeLabel(app.store, node) : value ? (app.store.values.get(value)?.name ?? "") : "";
  // Messages begin with the node's name, which stands in a column of its own here.
  const isNamed = where && /^[: ]/.test(message.slice(where.length)) && message.startsWith(where);
  const text = isNamed ? message.slice(where.length).replace(/^:? /, "") : message;
  const detail = [expected && `expected ${expected}`, actual && `found ${actual}`, hint].filter(Boolean).join(" · ");
  return (
    <li>
      <button
        type="button"
        class={`ol-problem ol-${severity}`}
        data-testid="problems-item"
        data-node={node}
        title={[message, detail].filter(Boolean).join("\n")}
        onClick={() => (node ? app.picked.reveal(node) : value ? app.picked.revealValue(value) : undefined)}
      >
        <Icon name={severity} />
        <span class="ol-problem-where ol-mono ol-elided">{where}</span>
        <span class="ol-problem-text ol-elided">
          {text}
          {detail && <span class="ol-dim"> – {detail}</span>}
        </span>
      </button>
    </li>
  );
}

function ResultsTable({ app }: { app: App }) {
  useEvents(app.store, "commit");
  const results = useCell(app.runs.results);
  const subject = useCell(app.picked.subject);
  if (!results) return <p class="ol-empty">Nothing has been run yet.</p>;
  const stale = results.version !== app.store.version;
  const current = subject.kind === "value" ? subject.value : 0;
  return (
    <div class="ol-table-scroll" tabIndex={0} aria-label="Results">
      <table class="ol-table">
        <caption>
          {plural(results.values.length, "value")} in {formatSeconds(results.seconds)} from {app.runs.ranWith}
          {stale && <span class="ol-stale"> – the model was edited since; run again for its values now</span>}
        </caption>
        <thead>
          <tr>
            <th scope="col" class="ol-left">
              value
            </th>
            <th scope="col" class="ol-left">
              type
            </th>
            <th scope="col">min</th>
            <th scope="col">mean</th>
            <th scope="col">max</th>
            <th scope="col">NaN</th>
            <th scope="col">Inf</th>
            <th scope="col">zeros</th>
            <th scope="col" class="ol-left">
              histogram
            </th>
          </tr>
        </thead>
        <tbody>
          {results.values.slice(0, RESULTS_SHOWN).map((statistics) => (
            <ResultRow key={statistics.id} app={app} statistics={statistics} selected={statistics.id === current} />
          ))}
        </tbody>
      </table>
      {results.values.length > RESULTS_SHOWN && (
        <p class="ol-empty">and {count(results.values.length - RESULTS_SHOWN)} more</p>
      )}
    </div>
  );
}

function ResultRow({ app, statistics, selected }: { app: App; statistics: Statistics; selected: boolean }) {
  const { id, name, nan, inf, zeros, count: size } = statistics;
  const share = size > 0 ? `${Number(((100 * zeros) / size).toPrecision(2))} %` : "";
  return (
    <tr class={selected ? "ol-selected" : ""} data-testid={`run-row-${name}`}>
      <th scope="row" class="ol-left">
        <button type="button" class="ol-link ol-mono" onClick={() => app.picked.revealValue(id)}>
          <Elided text={name} middle />
        </button>
      </th>
      <td class="ol-left ol-dim" title={formatShape(statistics)}>
        {formatShape(statistics)}
      </td>
      <td>{formatNumber(statistics.min)}</td>
      <td>{formatNumber(statistics.mean)}</td>
      <td>{formatNumber(statistics.max)}</td>
      <td class={nan > 0 ? "ol-bad" : "ol-dim"}>{count(nan)}</td>
      <td class={inf > 0 ? "ol-bad" : "ol-dim"}>{count(inf)}</td>
      <td class="ol-dim" title={`${count(zeros)} of ${count(size)}`}>
        {zeros > 0 ? share : "0"}
      </td>
      <td class="ol-left">{statistics.histogram && <HistogramChart histogram={statistics.histogram} small />}</td>
    </tr>
  );
}

function formatSeconds(seconds: number): string {
  return seconds < 1 ? `${Math.max(1, Math.round(seconds * 1000))} ms` : `${seconds.toFixed(1)} s`;
}
