/** The inspector of a group: how much is in it. */

import type { App } from "../../app.ts";
import { count } from "../../model/names.ts";
import type { Store } from "../../model/store.ts";
import { useCell, useEvents } from "../../state.ts";
import { Elided, Section } from "../parts/controls.tsx";
import { Parameters } from "./about_model.tsx";
import { OpTable } from "./op_table.tsx";

const KINDS: Record<string, string> = {
  scope: "name scope",
  cut: "section between cuts",
  function: "function",
  body: "subgraph",
};

export function GroupInspector({ app, group }: { app: App; group: number }) {
  useEvents(app.store, "commit");
  const record = app.store.groups.get(group);
  if (!record) return null;
  const members = groupMembers(app.store, group);
  const inner = [...app.store.groups.values()].filter((child) => child.parent === group).length;
  return (
    <div class="ol-panel" data-testid="inspector-group">
      <header class="ol-panel-head">
        <div class="ol-panel-title">
          <div class="ol-panel-words">
            <span class="ol-op">Group</span>
            <span class="ol-dim">{[record.about, KINDS[record.kind] ?? record.kind].filter(Boolean).join(" · ")}</span>
          </div>
        </div>
        <p class="ol-mono">
          <Elided text={record.name} middle />
        </p>
      </header>
      <dl class="ol-pairs ol-block">
        <dt>nodes</dt>
        <dd>{count(members.length)}</dd>
        <Parameters app={app} nodes={members} />
        {inner > 0 && (
          <>
            <dt>groups inside</dt>
            <dd>{count(inner)}</dd>
          </>
        )}
      </dl>
      <div class="ol-actions ol-block">
        <button type="button" class="ol-button ol-text-button" onClick={() => app.picture?.unfold(group)}>
          Unfold
        </button>
        <button type="button" class="ol-button ol-text-button" onClick={() => app.picture?.fold(group)}>
          Fold
        </button>
        <button type="button" class="ol-button ol-text-button" onClick={() => app.picked.select(members)}>
          Select its nodes
        </button>
        {app.client.editable && (
          <>
            <button
              type="button"
              class="ol-button ol-text-button"
              data-testid="group-rename"
              onClick={() => app.dialogs.group(members, record.name)}
            >
              Rename…
            </button>
            <button
              type="button"
              class="ol-button ol-text-button"
              title="What is in it stands in the group around it"
              data-testid="group-dissolve"
              onClick={() => void app.edits.attempt("ungroup_nodes", "nodes", members, {})}
            >
              Dissolve
            </button>
          </>
        )}
      </div>
      <Equal app={app} group={group} members={members} />
      <Section title="Operators">
        <OpTable app={app} nodes={members} />
      </Section>
    </div>
  );
}

/** The groups that are equal to this one, to go through them and to edit all. */
function Equal({ app, group, members }: { app: App; group: number; members: number[] }) {
  const equal = useCell(app.blocks.equal).get(group),
    run = app.picture?.repeatOf(group);
  const verified = run?.likes.every((member) => equal?.includes(member)) ?? true;
  const groups = run?.likes ?? equal;
  if (!groups) return null;
  const at = groups.indexOf(group);
  const all = (open: boolean) => {
    if (run) app.picture?.showAll(group, open);
    else groups.forEach((member) => (open ? app.picture?.unfold(member) : app.picture?.fold(member)));
  };
  const go = (by: number) => app.picked.revealGroup(groups[(at + by + groups.length) % groups.length]!);
  return (
    <Section title={verified ? "Equal blocks" : "Alike blocks"} count={groups.length}>
      <p class="ol-text">
        This is number {at + 1} of {groups.length} blocks that{" "}
        {verified ? "are equal node by node and wire by wire" : "look alike: the same operators, wired alike"}.
        {run && " They follow one another and are drawn as one."}
      </p>
      <div class="ol-actions">
        <button type="button" class="ol-button ol-text-button" data-testid="block-next" onClick={() => go(1)}>
          Next one
        </button>
        <button type="button" class="ol-button ol-text-button" data-testid="block-one" onClick={() => all(false)}>
          {run ? "Show one for all" : "Fold all"}
        </button>
        <button type="button" class="ol-button ol-text-button" data-testid="block-all" onClick={() => all(true)}>
          {run ? "Show all" : "Unfold all"}
        </button>
        {app.client.editable && (
          <button
            type="button"
            class="ol-button ol-text-button"
            title="An edit of the selection then changes all of them"
            data-testid="block-select"
            onClick={() => void app.picked.selectCopies(members)}
          >
            Select in all
          </button>
        )}
      </div>
    </Section>
  );
}

/** The nodes in a group and in the groups inside it. */
export function groupMembers(store: Store, group: number): number[] {
  const inside = new Set([group]);
  // Parents come before children in the records, but nothing promises it: repeat until nothing is new.
  for (let before = 0; before !== inside.size; ) {
    before = inside.size;
    for (const record of store.groups.values()) if (inside.has(record.parent)) inside.add(record.id);
  }
  const members: number[] = [];
  for (const node of store.nodes.values()) if (inside.has(node.group)) members.push(node.id);
  return members;
}
