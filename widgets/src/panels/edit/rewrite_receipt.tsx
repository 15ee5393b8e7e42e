/** The receipt of the last rewrite: nodes before and now, the verdict on the outputs, what was not done and what is lost. */

import type { App } from "../../app.ts";
import type { Rewritten } from "../../kernel/protocol.ts";
import { quantity } from "../../look/node_heat.ts";
import { count, plural } from "../../model/names.ts";
import { useCell, useEvents } from "../../state.ts";

/** The sizes of all tensors before and after, "" where they stay. */
export const bytesBecome = ([before, now]: Rewritten["bytes"]): string =>
  before === now ? "" : `, ${quantity(Number(before), "B")} to ${quantity(Number(now), "B")}`;

/** Shows as long as the rewrite is the last edit: after an undo its figures would be wrong. */
export function Receipt({ app }: { app: App }) {
  useEvents(app.store, "commit", "history");
  const receipt = useCell(app.rewriting.receipt);
  if (!receipt || receipt.version < app.store.version) return null;
  const { nodes, bytes, verdict, applied, refused, unfit, lost } = receipt;
  return (
    <div class="ol-rewrite-receipt" role="status" data-testid="rewrites-receipt">
      <p>
        <b>
          {count(nodes[0])} nodes before, {count(nodes[1])} now
          {bytesBecome(bytes)}
        </b>
        ; outputs: {verdict}.{" "}
        {applied > 0 && (
          <button
            type="button"
            class="ol-link"
            data-testid="rewrites-undo"
            disabled={!app.client.editable}
            onClick={() => app.edits.undo()}
          >
            undo
          </button>
        )}
      </p>
      <Lines title={`${plural(refused.length, "change")} taken back`} lines={refused} open />
      <Lines title={`${plural(unfit.length, "place")} not changed`} lines={unfit} open />
      <Lines
        title={`${plural(lost.length, "note")} of what went ${lost.length === 1 ? "is" : "are"} lost`}
        lines={lost}
      />
    </div>
  );
}

export function Lines({ title, lines, open = false }: { title: string; lines: readonly string[]; open?: boolean }) {
  if (!lines.length) return null;
  return (
    <details open={open}>
      <summary>{title}</summary>
      <ul>
        {lines.map((line, i) => (
          <li key={i} class="ol-elided" title={line}>
            {line}
          </li>
        ))}
      </ul>
    </details>
  );
}
