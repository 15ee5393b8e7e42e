/** Nodes of one model that others of the other stand for. */

import type { PairInfo } from "../kernel/protocol.ts";
import { count } from "../model/names.ts";
import type { Pair } from "./pair.ts";

const SHOWN = 500;

export function RegionList({ pair, info }: { pair: Pair; info: PairInfo }) {
  return (
    <ul class="ol-pair-list" tabIndex={0} aria-label="Fused regions">
      {info.regions.slice(0, SHOWN).map(({ a_nodes, b_nodes, text }, place) => (
        <li key={place}>
          <button
            type="button"
            class="ol-pair-row"
            title={text}
            data-testid="pair-region"
            onClick={() => pair.showRegion(a_nodes, b_nodes)}
          >
            <span class="ol-elided">{text}</span>
          </button>
        </li>
      ))}
      {info.regions.length > SHOWN && <li class="ol-empty">and {count(info.regions.length - SHOWN)} more</li>}
    </ul>
  );
}
