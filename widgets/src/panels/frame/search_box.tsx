/** Search by node name, operator type and value name, with the hits as a list to walk through. */

import { useMemo, useRef, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import { completions } from "../../find/completion.ts";
import { count } from "../../model/names.ts";
import { useCell } from "../../state.ts";
import { Hits } from "../find/hit_list.tsx";
import { ToolButton } from "../parts/controls.tsx";
import { Icon } from "../parts/icons.tsx";

export function SearchBox({ app }: { app: App }) {
  const search = useCell(app.finder.search);
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const { query, total, current } = search;
  const offered = useMemo(
    () => (open && query ? completions(query, app.store, app.finder.attributes) : []),
    [open, search],
  );

  const step = (by: number) => app.finder.showHit(current < 0 && by < 0 ? -1 : current + by);
  const close = () => setOpen(false);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Tab" && !event.shiftKey && open && offered[0]) {
      event.preventDefault();
      app.finder.setQuery(offered[0].query);
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      app.finder.selectFound();
      close();
    } else if (event.key === "Enter") {
      event.preventDefault();
      step(event.shiftKey ? -1 : 1);
      close();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      step(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Escape" && (open || query)) {
      event.stopPropagation();
      if (open && query) close();
      else app.finder.setQuery("");
    }
  };
  const onFocusOut = (event: FocusEvent) => {
    if (!box.current?.contains(event.relatedTarget as Node | null)) close();
  };
  return (
    <div class="ol-search" ref={box} onFocusOut={onFocusOut} role="search">
      <Icon name="search" />
      <input
        type="text"
        class="ol-input ol-search-input"
        placeholder="Search, or op:Conv kernel_shape:3,3"
        spellcheck={false}
        autocomplete="off"
        size={1}
        value={query}
        data-testid="search-input"
        aria-label="Search nodes, operators and values (Ctrl+F)"
        title="Search nodes, operators and values (Ctrl+F)"
        role="combobox"
        aria-expanded={open && query !== ""}
        aria-controls={`ol-hits-${app.client.session}`}
        data-clean={query === "" ? "" : undefined}
        onInput={(event) => {
          app.finder.setQuery(event.currentTarget.value);
          setOpen(true);
        }}
        onFocus={() => {
          setOpen(true);
          setTimeout(() => app.finder.prepare()); // before the first letter comes
        }}
        onKeyDown={onKeyDown}
      />
      {query && (
        <span class="ol-search-count" data-testid="search-count">
          {search.pending
            ? "…"
            : total === 0
              ? "none"
              : current < 0
                ? count(total)
                : `${count(current + 1)} / ${count(total)}`}
        </span>
      )}
      {query && total > 0 && (
        <>
          <ToolButton icon="up" title="Previous (Shift+Enter)" testid="search-previous" onClick={() => step(-1)} />
          <ToolButton icon="down" title="Next (Enter)" testid="search-next" onClick={() => step(1)} />
        </>
      )}
      {query && (
        <ToolButton
          icon="close"
          title="Clear the search"
          testid="search-clear"
          onClick={() => app.finder.setQuery("")}
        />
      )}
      {open && query && (
        <Hits
          app={app}
          id={`ol-hits-${app.client.session}`}
          search={search}
          completions={offered}
          onComplete={(next) => {
            app.finder.setQuery(next);
            box.current?.querySelector("input")?.focus();
          }}
          onPick={close}
        />
      )}
    </div>
  );
}
