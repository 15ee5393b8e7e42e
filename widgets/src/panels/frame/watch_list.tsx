/** The watches of the model in the drawer: what holds, what fails and why; more of them for every value. */

import type { App } from "../../app.ts";
import type { WatchInfo } from "../../kernel/protocol.ts";
import { count, plural } from "../../model/names.ts";
import { useCell } from "../../state.ts";
import { AddWatch } from "../parts/add_watch.tsx";
import { Elided, ToolButton } from "../parts/controls.tsx";
import { Icon } from "../parts/icons.tsx";

export function WatchList({ app }: { app: App }) {
  const { watches, refused } = useCell(app.watches.list);
  return (
    <div class="ol-table-scroll ol-watches" tabIndex={0} aria-label="Watches">
      <p class="ol-watch-new">
        <span>Every value:</span>
        <AddWatch app={app} value={0} />
      </p>
      {refused.map((problem) => (
        <p key={problem} class="ol-field-error">
          {problem}
        </p>
      ))}
      {watches.length === 0 && (
        <p class="ol-empty">
          Nothing is watched. Select a value and enter in the inspector the condition that it must meet.
        </p>
      )}
      <ul aria-label="Watches">
        {watches.map((watch, place) => (
          <WatchRow key={`${place}/${watch.text}`} app={app} watch={watch} place={place} named />
        ))}
      </ul>
    </div>
  );
}

/** The number of watches in the status line, or of those that fail. */
export function WatchCount({ app, pressed, onClick }: { app: App; pressed: boolean; onClick: () => void }) {
  const { watches, refused } = useCell(app.watches.list);
  if (!watches.length && !refused.length && !pressed) return null;
  const failing = app.watches.failing.length;
  return (
    <button
      type="button"
      class={`ol-status-button ${failing ? "ol-warning" : ""}`}
      aria-pressed={pressed}
      data-testid="status-watches"
      onClick={onClick}
    >
      <Icon name={failing ? "warning" : "eye"} />
      {failing
        ? `${count(failing)} of ${plural(watches.length, "watch", "watches")} fail`
        : plural(watches.length, "watch", "watches")}
    </button>
  );
}

/** One watch: its state, what shall hold, and what was found where it does not. */
export function WatchRow(props: { app: App; watch: WatchInfo; place: number; named?: boolean }) {
  const { app, watch, place, named } = props;
  const { name, text, state, why, values } = watch;
  const icon = state === "holds" ? "check" : state === "fails" ? "warning" : "clock";
  return (
    <li class={`ol-watch ol-watch-${state}`} data-testid="watch" data-state={state}>
      <span title={state === "unknown" ? why : state}>
        <Icon name={icon} />
      </span>
      {named &&
        (values[0] ? (
          <button type="button" class="ol-link ol-mono" onClick={() => app.picked.revealValue(values[0]!)}>
            <Elided text={name === "*" ? "every value" : name} middle />
          </button>
        ) : (
          <span class="ol-mono">{name === "*" ? "every value" : name}</span>
        ))}
      <code class="ol-mono">{text}</code>
      {why && <span class="ol-dim ol-elided">{why}</span>}
      <ToolButton
        icon="close"
        title="Watch no more"
        testid="watch-remove"
        onClick={() => void app.watches.remove(place)}
      />
    </li>
  );
}
