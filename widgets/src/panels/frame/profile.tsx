/** The profile in the drawer: nodes, groups or operators by the time that they took, each with why. */

import { useMemo, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { type ProfileBy, type ProfileRow, profileRows } from "../../look/profile.ts";
import { count } from "../../model/names.ts";
import { useCell, useEvents } from "../../state.ts";
import { Elided } from "../parts/controls.tsx";

const SHOWN = 400;
const WAYS: ProfileBy[] = ["node", "group", "operator"];

export function ProfileTable({ app }: { app: App }) {
  useEvents(app.store, "commit");
  const profile = useCell(app.profile.taken);
  const busy = useCell(app.profile.busy);
  const [by, setBy] = useState<ProfileBy>("node");
  const rows = useMemo(
    () => (profile ? profileRows(app.store, profile.table, by) : []),
    [profile, by, app.store.version],
  );
  if (!profile) return <p class="ol-empty">{busy ? "Running the model node by node…" : "Nothing was profiled yet."}</p>;
  const stale = profile.version !== app.store.version;
  return (
    <div class="ol-tables">
      <div class="ol-tabs">
        <div class="ol-tab-list" role="tablist" aria-label="Profile by">
          {WAYS.map((way) => (
            <button
              key={way}
              type="button"
              role="tab"
              class="ol-tab"
              aria-selected={way === by}
              data-testid={`profile-by-${way}`}
              onClick={() => setBy(way)}
            >
              by {way}
            </button>
          ))}
        </div>
        <span class={`ol-tabs-note ${stale ? "ol-stale" : "ol-dim"}`} data-testid="profile-note">
          {milliseconds(1000 * profile.table.seconds)} in all, one node at a time, fastest of {profile.table.runs} runs
          {stale && " – the model was edited since"}
        </span>
        <button
          type="button"
          class="ol-link"
          disabled={busy || !app.client.editable}
          data-testid="profile-again"
          onClick={() => void app.profile.take()}
        >
          {busy ? "running…" : "again"}
        </button>
      </div>
      <div class="ol-table-scroll" tabIndex={0} aria-label={`Profile by ${by}`}>
        <table class="ol-table" data-testid="profile-table">
          <thead>
            <tr>
              <th scope="col" class="ol-left">
                {by}
              </th>
              <th scope="col" class="ol-left">
                operator
              </th>
              <th scope="col">ms</th>
              <th scope="col">%</th>
              <th scope="col" class="ol-left">
                share
              </th>
              <th scope="col" class="ol-left">
                provider
              </th>
              <th scope="col" title="The least time that this machine needs for the work, as a part of the time taken">
                % of what can be
              </th>
              <th scope="col" class="ol-left">
                waits for, work
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, SHOWN).map((row) => (
              <Row key={row.key} app={app} row={row} most={rows[0]!.ms} by={by} />
            ))}
          </tbody>
        </table>
        {rows.length > SHOWN && <p class="ol-empty">and {count(rows.length - SHOWN)} more</p>}
      </div>
    </div>
  );
}

function Row({ app, row, most, by }: { app: App; row: ProfileRow; most: number; by: ProfileBy }) {
  const show = () => {
    if (by === "group" && row.group) app.picked.revealGroup(row.group);
    else app.picked.show(row.nodes);
  };
  return (
    <tr data-testid="profile-row" data-node={by === "node" ? row.nodes[0] : undefined}>
      <th scope="row" class="ol-left">
        <button type="button" class="ol-link ol-mono" onClick={show}>
          <Elided text={row.name} middle />
        </button>
      </th>
      <td class="ol-left">{row.detail}</td>
      <td>{row.ms.toPrecision(3)}</td>
      <td>{(100 * row.share).toFixed(row.share < 0.1 ? 1 : 0)}</td>
      <td class="ol-left">
        <span class="ol-share" aria-hidden="true">
          <span style={{ width: `${(100 * row.ms) / (most || 1)}%` }} />
        </span>
      </td>
      <td class="ol-left ol-dim">{row.provider}</td>
      <td>{(100 * row.ofRoofline).toFixed(row.ofRoofline < 0.1 ? 1 : 0)}</td>
      <td class="ol-left ol-dim" title={row.why}>
        {row.why}
      </td>
    </tr>
  );
}

function milliseconds(ms: number): string {
  return ms < 1000 ? `${ms.toPrecision(3)} ms` : `${(ms / 1000).toFixed(2)} s`;
}
