/** The statements of the file's format on the whole model besides ONNX: a sentence, and a table. */

import type { App } from "../../app.ts";
import { plural } from "../../model/names.ts";
import { useAnswer } from "../parts/ask.ts";
import { Section } from "../parts/controls.tsx";
import { Pairs } from "./inspect_node.tsx";

export function AboutFormat({ app }: { app: App }) {
  const { data } = useAnswer(app, "format", {}, 1);
  if (!data || !(data.uninferred || data.rows.length || Object.keys(data.pairs).length)) return null;
  return (
    <>
      <Section title="Format">
        <p class="ol-text" data-testid="format-title">
          {[data.title, data.uninferred].filter(Boolean).join(". ")}
        </p>
        {data.rows.length > 0 && (
          <div class="ol-table-scroll" tabIndex={0} aria-label={data.title}>
            <table class="ol-table ol-format-table" data-testid="format-table">
              <thead>
                <tr>
                  {data.columns.map((column) => (
                    <th key={column} scope="col">
                      {column}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {data.rows.map((row) => (
                  <tr key={row[0]}>
                    {row.map((cell, place) => (
                      <td key={data.columns[place]}>{cell}</td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
        {data.more > 0 && <p class="ol-dim">{plural(data.more, "more row")}</p>}
      </Section>
      <Pairs title="In its format" pairs={data.pairs} testid="format-pairs" />
    </>
  );
}
