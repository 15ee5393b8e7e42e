/** All edits that fit what is selected, to be found by a few letters: what the key E and "All edits…" open. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import type { Command, Target } from "../../edit/commands/command.ts";
import { commandsFor, targetLabel } from "../../edit/commands/command_registry.ts";
import { commandsLike } from "../../edit/commands/command_search.ts";
import { useCell } from "../../state.ts";
import { focusPicture } from "./form.tsx";

export function CommandList({ app }: { app: App }) {
  const target = useCell(app.dialogs.list);
  return target ? <OpenList app={app} target={target} /> : null;
}

function OpenList({ app, target }: { app: App; target: Target }) {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const panel = useRef<HTMLDivElement>(null),
    input = useRef<HTMLInputElement>(null);
  const commands = useMemo(() => commandsFor(app, target), [target]);
  const matches = useMemo(() => commandsLike(commands, query), [commands, query]);
  const current = matches[Math.min(at, matches.length - 1)];
  const close = () => {
    const { current: inside } = panel;
    app.dialogs.list.value = null;
    focusPicture(inside);
  };
  const choose = (command: Command | undefined) => {
    if (!command) return;
    close();
    command.act(app, target);
  };
  // The field takes the focus before the browser paints, as keys typed at once must not reach the picture.
  useLayoutEffect(() => input.current?.focus(), []);
  useEffect(
    () => panel.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }),
    [at, query],
  );
  useEffect(() => {
    const away = (event: PointerEvent) => {
      if (panel.current && !event.composedPath().includes(panel.current)) app.dialogs.list.value = null;
    };
    document.addEventListener("pointerdown", away, true);
    return () => document.removeEventListener("pointerdown", away, true);
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") close();
    else if (event.key === "Enter") choose(current);
    else if (event.key === "ArrowDown") setAt(Math.min(at + 1, matches.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const title = `Edit ${targetLabel(app, target)}`;
  return (
    <div
      class="ol-popup ol-palette ol-commands"
      role="dialog"
      aria-label={title}
      ref={panel}
      data-testid="command-list"
      onKeyDown={onKeyDown}
    >
      <p class="ol-palette-title">{title}</p>
      <input
        ref={input}
        type="text"
        class="ol-input"
        placeholder="What shall be done"
        spellcheck={false}
        autocomplete="off"
        value={query}
        aria-label={title}
        role="combobox"
        aria-expanded={true}
        aria-controls="ol-commands"
        data-testid="command-input"
        aria-activedescendant={current ? `ol-command-${commands.indexOf(current)}` : undefined}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          setAt(0);
        }}
      />
      <ul class="ol-palette-list" role="listbox" id="ol-commands" aria-label="Edits">
        {matches.map((command, i) => (
          <li
            key={commands.indexOf(command)}
            id={`ol-command-${commands.indexOf(command)}`}
            role="option"
            aria-selected={command === current}
            class={`ol-hit ol-command ${i > 0 && onModel(matches[i - 1]!) !== onModel(command) ? "ol-command-first" : ""}`}
            data-testid={`command-${command.id}`}
            onMouseEnter={() => setAt(i)}
            onClick={() => choose(command)}
          >
            <span>{command.title}</span>
            {command.keys && <kbd>{command.keys}</kbd>}
          </li>
        ))}
        {matches.length === 0 && (
          <li class="ol-empty" role="presentation">
            Nothing like this for {targetLabel(app, target)}: what can be done depends on what is selected.
          </li>
        )}
      </ul>
    </div>
  );
}

const onModel = (command: Command): boolean => command.on === "model";
