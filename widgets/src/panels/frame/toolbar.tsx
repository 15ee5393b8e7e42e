/** The bar above the picture: history, run, save, view, the path to the selection, search. */

import type { App } from "../../app.ts";
import { mainScope, plural, scopeLabel, scopePath } from "../../model/names.ts";
import { whereIs } from "../../model/where.ts";
import { useCell, useEvents } from "../../state.ts";
import { Elided, ToolButton } from "../parts/controls.tsx";
import { Icon } from "../parts/icons.tsx";
import { SearchBox } from "./search_box.tsx";
import { TravelButtons } from "./travel_bar.tsx";

export function Toolbar({ app }: { app: App }) {
  useEvents(app.client, "connection");
  const live = app.client.can.edit !== false;
  const open = useCell(app.inspectorOpen);
  const tree = useCell(app.outlineOpen);
  return (
    <div class="ol-toolbar" role="toolbar" aria-label="Model">
      <ToolButton
        icon="tree"
        title="Outline of the model (O)"
        testid="toolbar-tree"
        pressed={tree}
        onClick={() => {
          app.outlineOpen.value = !tree;
        }}
      />
      <Breadcrumb app={app} />
      <div class="ol-tools">
        <TravelButtons app={app} />
        {live && <HistoryButtons app={app} />}
        {live && <RunButtons app={app} />}
        {live && <SaveButton app={app} />}
        <div class="ol-tool-group ol-look">
          <ToolButton icon="fit" title="Fit to view (Space)" testid="toolbar-fit" onClick={() => app.picture?.fit()} />
          {document.fullscreenEnabled && (
            <ToolButton
              icon="expand"
              title="Full window, and back"
              testid="toolbar-full"
              onClick={() => app.toggleFull()}
            />
          )}
          <FlowButton app={app} />
          <ColumnsButton app={app} />
          <ToolButton
            icon="fold"
            title="Fold all groups"
            testid="toolbar-fold"
            onClick={() => app.picture?.foldAll()}
          />
        </div>
      </div>
      <SearchBox app={app} />
      <ToolButton
        icon="panel"
        title={open ? "Hide the inspector" : "Show the inspector"}
        testid="toolbar-inspector"
        pressed={open}
        onClick={() => {
          app.inspectorOpen.value = !open;
        }}
      />
    </div>
  );
}

function FlowButton({ app }: { app: App }) {
  const flow = useCell(app.flow);
  const other = flow === "down" ? "right" : "down";
  return (
    <ToolButton
      icon={other === "right" ? "flowRight" : "flowDown"}
      title={other === "right" ? "Read from left to right" : "Read from top to bottom"}
      testid="toolbar-flow"
      onClick={() => {
        app.setReading(other);
        app.onReading(other);
      }}
    />
  );
}

function ColumnsButton({ app }: { app: App }) {
  const columns = useCell(app.columns);
  if (!useCell(app.tall)) return null;
  return (
    <ToolButton
      icon="columns"
      title={columns ? "Very tall pictures are drawn in columns" : "Draw very tall pictures in columns"}
      testid="toolbar-columns"
      pressed={columns}
      onClick={() => {
        app.setColumns(!columns);
        app.onColumns(!columns);
      }}
    />
  );
}

function HistoryButtons({ app }: { app: App }) {
  useEvents(app.store, "history");
  useEvents(app.client, "connection");
  const { undo, redo } = app.store.history;
  const able = app.client.editable;
  return (
    <div class="ol-tool-group">
      <ToolButton
        icon="undo"
        testid="toolbar-undo"
        disabled={!able || undo === null}
        onClick={() => app.edits.undo()}
        title={undo === null ? "Nothing to undo" : `Undo ${undo} (Ctrl+Z)`}
      />
      <ToolButton
        icon="redo"
        testid="toolbar-redo"
        disabled={!able || redo === null}
        onClick={() => app.edits.redo()}
        title={redo === null ? "Nothing to redo" : `Redo ${redo} (Ctrl+Y)`}
      />
    </div>
  );
}

function RunButtons({ app }: { app: App }) {
  useEvents(app.client, "connection");
  const running = useCell(app.runs.running);
  const asking = useCell(app.numbers.asking);
  const profiling = useCell(app.profile.busy);
  useCell(app.numbers.inputs);
  useCell(app.picked.subject);
  const selected = app.picked.nodes;
  const able = app.client.editable && app.client.can.run !== false;
  if (running) {
    const share = running.total ? Math.min(1, running.done / running.total) : 0;
    return (
      <div class="ol-tool-group ol-running">
        <ToolButton
          icon="stop"
          testid="toolbar-stop"
          label={running.stopping ? "Stopping…" : "Stop"}
          title="Stop the run"
          disabled={running.stopping}
          onClick={() => app.runs.stop()}
        />
        <div
          class="ol-progress"
          role="progressbar"
          aria-label="Run"
          aria-valuenow={running.done}
          aria-valuemin={0}
          aria-valuemax={running.total}
          title={running.node}
        >
          <div class="ol-progress-bar" style={{ width: `${100 * share}%` }} />
        </div>
        <span class="ol-dim ol-progress-text" data-testid="toolbar-progress">
          {running.done} / {running.total}
        </span>
      </div>
    );
  }
  const title = selected.length
    ? `Run what is selected (${plural(selected.length, "node")}); select nothing (Esc) to run all`
    : "Run the whole model";
  return (
    <div class="ol-tool-group">
      <ToolButton
        icon="run"
        testid="toolbar-run"
        title={title}
        disabled={!able}
        label={selected.length ? "Run selected" : "Run all"}
        onClick={() => void app.runs.run(selected.length ? selected : null)}
      />
      <ToolButton
        icon="down"
        testid="toolbar-inputs"
        title="Inputs of the run…"
        disabled={!able}
        pressed={asking}
        onClick={() => {
          app.numbers.asking.value = !asking;
        }}
      >
        {Object.keys(app.numbers.asked).length > 0 && <span class="ol-dirty" aria-label="inputs are chosen" />}
      </ToolButton>
      {app.client.can.compare && (
        <ToolButton
          icon="compare"
          testid="toolbar-compare"
          title="Compare with another model…"
          disabled={!able}
          onClick={() => {
            app.comparing.value = true;
          }}
        />
      )}
      <ToolButton
        icon="timer"
        testid="toolbar-profile"
        title="Profile: which node is slow"
        disabled={!able || profiling}
        onClick={() => void app.profile.take()}
      />
    </div>
  );
}

function SaveButton({ app }: { app: App }) {
  useEvents(app.store, "history", "reset");
  useEvents(app.client, "connection");
  const saving = useCell(app.edits.saving);
  const { dirty, path } = app.store;
  const where = path ?? "no path yet: save once from Python";
  return (
    <div class="ol-tool-group">
      <ToolButton
        icon="save"
        testid="toolbar-save"
        disabled={saving || !app.client.editable}
        onClick={() => void app.edits.save()}
        title={dirty ? `Save changes… (Ctrl+S) – ${where}` : `Saved – ${where}`}
      >
        {dirty && <span class="ol-dirty" data-testid="dirty-dot" aria-label="unsaved changes" />}
      </ToolButton>
    </div>
  );
}

function Breadcrumb({ app }: { app: App }) {
  useEvents(app.store, "reset", "commit");
  const scope = useCell(app.scope);
  const title = useCell(app.title);
  useCell(app.picked.subject);
  const groups = whereIs(app.store, useCell(app.seen).path).flatMap(({ id }) => app.store.groups.get(id) ?? []);
  const outer = groups.slice(0, -1); // behind an ellipsis: the bar has room for one name
  // what is selected may be in a subgraph that is drawn inside its node: the way goes on to it
  const shown = scope || mainScope(app.store),
    inner = scopePath(app.store, app.picked.here);
  const path = inner.includes(shown) ? inner : scopePath(app.store, shown);
  if (app.store.version === 0 || path.length === 0) return <div class="ol-breadcrumb" />;
  return (
    <nav class="ol-breadcrumb" aria-label="Scopes">
      {path.map((id, i) => {
        const label = scopeLabel(app.store, id, title);
        const last = i === path.length - 1;
        return (
          <span class="ol-crumb" key={id}>
            {i > 0 && <Icon name="right" />}
            <button
              type="button"
              class="ol-crumb-button"
              data-testid={`breadcrumb-${i}`}
              disabled={last && i > 0 && id === shown}
              aria-current={last ? "location" : undefined}
              title={id === shown ? label : `Show ${label} alone`}
              onClick={() => (id === shown ? app.picked.select([]) : app.picture?.openScope(id))}
            >
              <Elided text={label} middle />
            </button>
          </span>
        );
      })}
      {outer.slice(-1).map(({ id }) => (
        <GroupCrumb app={app} key="outer" id={id} text="…" title={outer.map(({ name }) => name).join(" › ")} />
      ))}
      {groups.slice(outer.length).map(({ id, name, about }) => (
        <GroupCrumb app={app} key={`group ${id}`} id={id} text={name} title={about || name} />
      ))}
    </nav>
  );
}

function GroupCrumb({ app, id, text, title }: { app: App; id: number; text: string; title: string }) {
  return (
    <span class="ol-crumb ol-crumb-group">
      <Icon name="right" />
      <button
        type="button"
        class="ol-crumb-button"
        data-testid="breadcrumb-group"
        title={title}
        onClick={() => app.picked.revealGroup(id)}
      >
        {text === "…" ? text : <Elided text={text} middle />}
      </button>
    </span>
  );
}
