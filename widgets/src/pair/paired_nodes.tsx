/** A node of each model side by side: attributes, what it reads, how far weights are apart, what it makes. */

import { useEffect, useState } from "preact/hooks";
import type { PairedRow } from "../kernel/protocol.ts";
import { asRequestError } from "../kernel/request_error.ts";
import { useCell } from "../state.ts";
import type { Pair } from "./pair.ts";

export function PairedNodes({ pair }: { pair: Pair }) {
  const [a, b] = useCell(pair.nodes);
  const info = useCell(pair.info);
  const change = info?.changes[useCell(pair.change)];
  const [rows, setRows] = useState<PairedRow[] | null>(null);
  const [refused, setRefused] = useState("");
  const client = pair.app(0)?.client;
  const live = client?.can.edit !== false;
  useEffect(() => {
    let current = true;
    setRefused("");
    if (!client || !live || !(a || b)) setRows(null);
    else
      client.request("paired_nodes", { a, b }).then(
        (answer) => current && setRows(answer.rows),
        (error) => current && setRefused(asRequestError(error).sentence),
      );
    return () => {
      current = false;
    };
  }, [a, b, info]);
  if (refused) return <p class="ol-pair-nodes ol-field-error">{refused}</p>;
  if (!rows)
    return (
      <p class="ol-pair-nodes ol-empty">
        {change?.text ?? "Choose a change, or a node in a picture: both sides show here."}
      </p>
    );
  return (
    <div class="ol-pair-nodes" data-testid="paired-nodes">
      <table>
        <thead>
          <tr>
            <th />
            <th>{a ? "A" : "not in A"}</th>
            <th>{b ? "B" : "not in B"}</th>
          </tr>
        </thead>
        {rows.map((row) => (
          <tbody key={row.part} class={row.differs && a && b ? "ol-pair-differs" : ""}>
            <tr>
              <th scope="row">{row.part}</th>
              <td>{row.a || (a ? "–" : "")}</td>
              <td>{row.b || (b ? "–" : "")}</td>
            </tr>
            {row.weights && (
              <tr>
                <td />
                <td colSpan={2} class="ol-pair-apart" data-testid="paired-weights">
                  {row.weights}
                </td>
              </tr>
            )}
          </tbody>
        ))}
      </table>
    </div>
  );
}
