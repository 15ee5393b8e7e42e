/** The panel below two views: the list of changes, or the errors along the depth with the numbers of both sides. */

import { useState } from "preact/hooks";
import { count } from "../model/names.ts";
import { useCell } from "../state.ts";
import { ChangeList } from "./change_list.tsx";
import { CompareValues } from "./compare_values.tsx";
import { ErrorCurve } from "./error_curve.tsx";
import type { Pair } from "./pair.ts";
import { PairedNodes } from "./paired_nodes.tsx";
import { PairedNumbers } from "./paired_numbers.tsx";
import { RegionList } from "./region_list.tsx";

type Tab = "changes" | "regions" | "errors";

export function PairPanel({ pair }: { pair: Pair }) {
  const info = useCell(pair.info);
  const [chosen, setTab] = useState<Tab | null>(null);
  if (!info) return null;
  const tabs: [Tab, string][] = [];
  if (info.sides > 1) tabs.push(["changes", `Changes ${count(info.changes.length + info.more)}`]);
  if (info.regions.length) tabs.push(["regions", `Fused ${count(info.regions.length)}`]);
  if (info.errors || (info.sides > 1 && pair.app(0)?.client.can.run))
    tabs.push(["errors", info.errors ? `Values ${count(info.errors.a.length)}` : "Values"]);
  const usual = info.errors ? "errors" : tabs[0]?.[0],
    tab = tabs.some(([name]) => name === chosen) ? chosen : usual;
  return (
    <section class="ol-pair-panel" aria-label="Differences" data-testid="pair-panel">
      {tabs.length > 1 && (
        <div class="ol-tabs" role="tablist" aria-label="What differs">
          {tabs.map(([name, words]) => (
            <button
              key={name}
              type="button"
              role="tab"
              class="ol-tab"
              aria-selected={name === tab}
              data-testid={`pair-tab-${name}`}
              onClick={() => setTab(name)}
            >
              {words}
            </button>
          ))}
        </div>
      )}
      {tab === "changes" && (
        <div class="ol-pair-changes">
          <div class="ol-pair-left">
            <ChangeList pair={pair} info={info} />
          </div>
          <PairedNodes pair={pair} />
        </div>
      )}
      {tab === "regions" && <RegionList pair={pair} info={info} />}
      {tab === "errors" && info.sides > 1 && <CompareValues pair={pair} errors={info.errors} />}
      {tab === "errors" && info.errors && (
        <div class="ol-pair-errors">
          <ErrorCurve pair={pair} errors={info.errors} />
          <PairedNumbers pair={pair} errors={info.errors} />
        </div>
      )}
    </section>
  );
}
