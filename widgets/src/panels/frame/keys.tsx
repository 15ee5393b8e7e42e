/** The keys of the widget, on one page: those of looking around, and of the edits that have one. */

import type { App } from "../../app.ts";
import { COMMANDS } from "../../edit/commands/command_registry.ts";
import { useCell } from "../../state.ts";
import { focusPicture } from "../edit/form.tsx";
import { ToolButton } from "../parts/controls.tsx";

/** The keys of looking around, which belong to no command. */
const LOOKING: [keys: string, what: string][] = [
  ["Arrows", "walk along values and rows; with Shift add to the selection"],
  ["Tab", "the next box"],
  ["Enter", "fold, unfold or enter; with Alt all below"],
  ["Space", "fit to view; held, drag to pan from anywhere"],
  ["+ −", "zoom"],
  ["Ctrl+F", "search; Ctrl+Enter there selects all that was found"],
  ["Ctrl+Shift+P", "all commands: edits, looks, runs, help"],
  ["V", "go through the values of a node"],
  ["[ ]", "light what a node depends on, what depends on it"],
  ["P", "light the ways between two selected nodes"],
  ["Alt+← Alt+→", "back and forward"],
  ["B N", "bookmark, next bookmark"],
  ["O", "show or hide the outline of the model"],
  ["M", "show or hide the small map"],
  ["K", "show or hide the nodes that make constants"],
  ["Ctrl+Z Ctrl+Y", "undo, redo"],
  ["Ctrl+S", "save"],
  ["Ctrl+C", "copy names"],
  ["F6", "picture, inspector, drawer, bar"],
  ["?", "this page"],
  ["Esc", "close, unselect, then back to the notebook"],
];

export function KeysPanel({ app }: { app: App }) {
  const open = useCell(app.keysOpen);
  if (!open) return null;
  const editing = COMMANDS.flatMap(({ keys, title }) =>
    keys ? [[keys, title.replace("…", "").toLowerCase()] as [string, string]] : [],
  );
  const all =
    app.client.can.edit === false
      ? LOOKING
      : [...LOOKING, ...new Map(editing.map((binding) => [binding.join(), binding])).values()];
  const close = (event: Event) => {
    app.keysOpen.value = false;
    focusPicture(event.currentTarget as HTMLElement);
  };
  return (
    <div
      class="ol-popup ol-keys"
      role="dialog"
      aria-label="Keys"
      data-testid="keys"
      tabIndex={-1}
      ref={(element) => element?.focus()}
      onKeyDown={(event) => {
        if (event.key !== "Escape" && event.key !== "?") return;
        close(event);
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      <div class="ol-inputs-head">
        <b>Keys</b>
        <ToolButton
          icon="close"
          title="Close"
          onClick={() => {
            app.keysOpen.value = false;
          }}
        />
      </div>
      <dl class="ol-keys-list" tabIndex={0} aria-label="Keys">
        {all.map(([keys, action]) => [
          <dt key={keys + action}>
            <kbd>{keys}</kbd>
          </dt>,
          <dd>{action}</dd>,
        ])}
      </dl>
    </div>
  );
}
