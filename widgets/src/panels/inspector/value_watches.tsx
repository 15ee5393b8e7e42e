/** The watches of a value, in its inspector. */

import type { App } from "../../app.ts";
import { useCell } from "../../state.ts";
import { WatchRow } from "../frame/watch_list.tsx";
import { AddWatch } from "../parts/add_watch.tsx";
import { Section } from "../parts/controls.tsx";

export function ValueWatches({ app, value }: { app: App; value: number }) {
  useCell(app.watches.list);
  if (!app.client.can.run) return null;
  const watches = app.watches.of(value);
  return (
    <Section title="Watches" count={watches.length || undefined}>
      <ul>
        {watches.map(({ watch, place }) => (
          <WatchRow key={`${place}/${watch.text}`} app={app} watch={watch} place={place} />
        ))}
      </ul>
      <AddWatch app={app} value={value} />
    </Section>
  );
}
