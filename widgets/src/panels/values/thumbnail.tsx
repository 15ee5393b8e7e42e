/** A value's numbers as a small heat map, fetched when it is first shown. */

import { useEffect, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import type { Drawn } from "../../look/tensor_state.ts";
import { valueLabel } from "../../model/names.ts";
import { useCell } from "../../state.ts";
import { TensorCanvas } from "./canvas.tsx";

export function Thumbnail({ app, value }: { app: App; value: number }) {
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const results = useCell(app.runs.results);
  useEffect(() => {
    let live = true;
    void app.numbers.thumbnail(value).then((drawing) => {
      if (live) setDrawn(drawing);
    });
    return () => {
      live = false;
    };
  }, [value, results, app.store.version]);
  if (!drawn) return null;
  const stale = drawn.part.source === "stale";
  return (
    <>
      <TensorCanvas
        drawn={drawn}
        label={`heat map of ${valueLabel(app.store, value)}${stale ? ", of before the last edits" : ""}`}
        class="ol-thumbnail"
      />
      {stale && <span class="ol-stale">of before the last edits</span>}
    </>
  );
}
