/** The dims of the model in the drawer: renamed, fixed and made dynamic for all inputs at once, and where they go. */

import { useMemo } from "preact/hooks";
import type { App } from "../../app.ts";
import { type SizeRow, type SymbolRow, sizeRows, symbolRows } from "../../model/dims.ts";
import { plural, valueLabel } from "../../model/names.ts";
import { shortDims } from "../../model/short_dims.ts";
import { useEvents } from "../../state.ts";
import { TextField } from "../parts/controls.tsx";
import { ShortNames } from "./short_names.tsx";
import { WhatIf } from "./what_if.tsx";

const SIZES_SHOWN = 24;

export function Dims({ app }: { app: App }) {
  useEvents(app.store, "reset", "commit");
  useEvents(app.client, "connection");
  const { version } = app.store;
  const symbols = useMemo(() => symbolRows(app.store), [version]);
  const sizes = useMemo(() => sizeRows(app.store), [version]);
  return (
    <div class="ol-table-scroll ol-dims" tabIndex={0} aria-label="Dims">
      <WhatIf app={app} />
      <table class="ol-table">
        <caption>
          Names of dims. Type another name to rename one everywhere, or a number to fix it.
          {symbols.length === 0 && " This model has none: all its inputs have fixed sizes."}
        </caption>
        <tbody>
          {symbols.map((row) => (
            <Named key={row.name} app={app} row={row} />
          ))}
        </tbody>
      </table>
      {sizes.length > 0 && (
        <table class="ol-table">
          <caption>Fixed sizes of inputs</caption>
          <tbody>
            {sizes.slice(0, SIZES_SHOWN).map((row) => (
              <Sized key={`${row.axis}/${row.size}`} app={app} row={row} />
            ))}
          </tbody>
        </table>
      )}
      <ShortNames app={app} />
    </div>
  );
}

/** Names of values, the first few of many. */
function listed(app: App, values: readonly number[]): string {
  const names = values.slice(0, 6).map((value) => valueLabel(app.store, value));
  return values.length > names.length
    ? `${names.join(", ")} and ${values.length - names.length} more`
    : names.join(", ");
}

function Named({ app, row }: { app: App; row: SymbolRow }) {
  const { name, inputs, outputs, values, nodes } = row;
  const ends = [...inputs, ...outputs].map(([value]) => value),
    short = shortDims(app.store).shortened(name),
    isNamed = !short.startsWith("?");
  const commit = (text: string) => {
    const dim = text.trim();
    return app.edits.make("replace_dim", "model", [], { old: name, new: /^\d+$/.test(dim) ? Number(dim) : dim });
  };
  return (
    <tr data-testid={`dim-${name}`}>
      <th scope="row" class="ol-left ol-dim-name">
        <TextField
          value={isNamed ? name : short}
          label={
            isNamed ? `Name or size of the dim ${name}` : `Name or size of a dim without one: ${listed(app, ends)}`
          }
          testid={`dim-field-${name}`}
          errorTestid={`dim-error-${name}`}
          mono
          disabled={!app.client.editable}
          check={(text) => (text.trim() ? "" : "A name, a number or ? is needed here.")}
          commit={commit}
        />
      </th>
      <td class="ol-left" title={listed(app, ends)}>
        {plural(inputs.length, "input")}, {plural(outputs.length, "output")}
      </td>
      <td class="ol-left ol-dim">in the shapes of {plural(values.length, "value")}</td>
      <td class="ol-left">
        <button
          type="button"
          class="ol-link"
          data-testid={`dim-light-${name}`}
          onClick={() =>
            app.travel.lightNodes(`${plural(nodes.length, "node")} whose shapes depend on ${name}`, nodes, values)
          }
        >
          light its way
        </button>
      </td>
    </tr>
  );
}

function Sized({ app, row }: { app: App; row: SizeRow }) {
  const { size, axis, inputs, suggested } = row;
  const make = () =>
    void app.edits
      .attempt("replace_dim", "model", [], { old: size, new: suggested, axis, values: inputs })
      .then((done) => {
        if (done) app.notices.done(app, `${suggested} is dynamic now in ${plural(inputs.length, "input")}`);
      });
  return (
    <tr data-testid={`size-${axis}-${size}`}>
      <th scope="row" class="ol-left ol-mono ol-dim-name">
        {size}
      </th>
      <td class="ol-left">axis {axis}</td>
      <td class="ol-left ol-dim" title={listed(app, inputs)}>
        {inputs.length === 1 ? valueLabel(app.store, inputs[0]!) : plural(inputs.length, "input")}
      </td>
      <td class="ol-left">
        <button
          type="button"
          class="ol-link"
          disabled={!app.client.editable}
          title={`Axis ${axis} of ${listed(app, inputs)} becomes ${suggested}; shapes follow`}
          data-testid={`size-dynamic-${axis}-${size}`}
          onClick={make}
        >
          make dynamic: {suggested}
        </button>
      </td>
    </tr>
  );
}
