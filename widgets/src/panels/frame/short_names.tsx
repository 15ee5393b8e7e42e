/** The short names of dims in the picture: a table, and a line of the first of them. */

import type { App } from "../../app.ts";
import { plural } from "../../model/names.ts";
import { shortDims } from "../../model/short_dims.ts";
import { useEvents } from "../../state.ts";

const ROWS_SHOWN = 12;
/** Names shown in the line at most. */
const FIRST = 2;

/** The line of the first short names: a press shows all of them. */
export function ShortNamesLine({ app }: { app: App }) {
  useEvents(app.store, "reset", "commit");
  const { rows } = shortDims(app.store);
  if (!rows.length) return null;
  return (
    <button
      type="button"
      class="ol-status-button ol-short-names"
      data-testid="short-names"
      title="Short names of dims in the picture: show all"
      onClick={() => {
        app.drawer.value = "dims";
      }}
    >
      {rows
        .slice(0, FIRST)
        .map(({ short, meaning }) => `${short} = ${meaning}`)
        .join(", ")}
      {rows.length > FIRST && `, ${rows.length - FIRST} more`}
    </button>
  );
}

/** The table of all short names. */
export function ShortNames({ app }: { app: App }) {
  useEvents(app.store, "reset", "commit");
  const { rows } = shortDims(app.store);
  if (!rows.length) return null;
  const nodes = (values: readonly number[]) => [
    ...new Set(values.flatMap((value) => app.store.producer(value)?.node ?? [])),
  ];
  return (
    <table class="ol-table">
      <caption>Short names of dims in the picture</caption>
      <tbody>
        {rows.slice(0, ROWS_SHOWN).map(({ short, expression, meaning, values }) => (
          <tr key={expression} data-testid={`short-dim-${short}`}>
            <th scope="row" class="ol-left ol-mono">
              {short}
            </th>
            <td class="ol-left ol-mono">{meaning}</td>
            <td class="ol-left ol-dim">in the shapes of {plural(values.length, "value")}</td>
            <td class="ol-left">
              <button
                type="button"
                class="ol-link"
                onClick={() =>
                  app.travel.lightNodes(
                    `${plural(nodes(values).length, "node")} with ${meaning} in their shapes`,
                    nodes(values),
                    values,
                  )
                }
              >
                light them
              </button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
