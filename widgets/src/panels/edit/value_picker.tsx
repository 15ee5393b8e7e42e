/** A field that takes a value of the model: a few letters of its name, arrows and Enter; and why it cannot go there. */

import { useEffect, useMemo, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { rankValues } from "../../find/value_search.ts";
import { scopePath, valueLabel } from "../../model/names.ts";
import { useEvents } from "../../state.ts";

interface Props {
  app: App;
  id: string;
  testid: string;
  value: number;
  /** Values of this scope and of those around it are offered. */
  scope: number;
  /** The node and slot that are to read the value; 0: any. */
  node: number;
  slot: number;
  change: (value: number) => void;
}

const SHOWN = 50;

export function ValuePicker({ app, id, testid, value, scope, node, slot, change }: Props) {
  useEvents(app.store, "commit");
  const [query, setQuery] = useState(value ? valueLabel(app.store, value) : "");
  const [at, setAt] = useState(0);
  const [reason, setReason] = useState("");
  const visible = useMemo(() => new Set(scopePath(app.store, scope)), [scope]);
  const matches = useMemo(
    () => rankValues(app.store.values.values(), visible, query, SHOWN),
    [query, visible, app.store.version],
  );
  const current = matches[Math.min(at, matches.length - 1)];
  useEffect(() => {
    setReason("");
    if (!value || !node) return undefined;
    let live = true;
    app.wires.refusal(value, node, slot).then(
      (text) => {
        if (live) setReason(text);
      },
      () => undefined,
    );
    return () => {
      live = false;
    };
  }, [value, node, slot]);
  const choose = (chosen: number) => {
    change(chosen);
    setQuery(valueLabel(app.store, chosen));
  };
  const open = !value || query !== valueLabel(app.store, value);
  const onKeyDown = (event: KeyboardEvent) => {
    if (!open) return;
    if (event.key === "ArrowDown") setAt(Math.min(at + 1, matches.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
    else if (event.key === "Enter" && current) choose(current.id);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="ol-picker">
      <input
        id={id}
        type="text"
        class="ol-input ol-mono"
        role="combobox"
        aria-expanded={open}
        aria-controls={`${id}-list`}
        value={query}
        aria-activedescendant={open && current ? `${id}-${current.id}` : undefined}
        spellcheck={false}
        autocomplete="off"
        data-testid={testid}
        placeholder="A few letters of its name"
        onKeyDown={onKeyDown}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          setAt(0);
          change(0);
        }}
      />
      {open && (
        <ul class="ol-picker-list" role="listbox" id={`${id}-list`} aria-label="Values">
          {matches.map((record) => (
            <li
              key={record.id}
              id={`${id}-${record.id}`}
              role="option"
              aria-selected={record === current}
              class="ol-hit"
              data-testid={`value-${record.name}`}
              onClick={() => choose(record.id)}
            >
              <span class="ol-mono ol-elided">{record.name}</span>
              <span class="ol-shape">{record.label}</span>
            </li>
          ))}
          {matches.length === 0 && (
            <li class="ol-empty" role="presentation">
              No value like this
            </li>
          )}
        </ul>
      )}
      {reason && (
        <p class="ol-field-error" role="alert" data-testid="picker-reason">
          {reason}
        </p>
      )}
    </div>
  );
}
