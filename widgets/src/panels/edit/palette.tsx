/** All operators that the model can use, to search by name and meaning, with their documentation beside the list. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import type { PaletteQuestion } from "../../edit/operator_palette.ts";
import type { Documentation, OperatorInfo } from "../../kernel/protocol.ts";
import { plural } from "../../model/names.ts";
import { rankOperators } from "../../model/operators.ts";
import { useCell } from "../../state.ts";

const SHOWN = 80;

export function PalettePanel({ app }: { app: App }) {
  const palette = useCell(app.palette.question);
  return palette ? <OpenPalette app={app} palette={palette} /> : null;
}

function OpenPalette({ app, palette }: { app: App; palette: PaletteQuestion }) {
  const operators = useCell(app.palette.operators);
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const panel = useRef<HTMLDivElement>(null),
    input = useRef<HTMLInputElement>(null),
    list = useRef<HTMLUListElement>(null);
  const matches = useMemo(
    () =>
      rankOperators(
        operators.filter(({ inputs }) => inputs[1] >= palette.inputs),
        query,
        palette.like,
      ),
    [operators, query, palette],
  );
  const current = matches[Math.min(at, matches.length - 1)];
  const close = () => {
    app.palette.question.value = null;
    panel.current
      ?.closest<HTMLElement>(".onnxlab")
      ?.querySelector<HTMLElement>('[data-testid="outline"]')
      ?.focus({ preventScroll: true });
  };
  const choose = (operator: OperatorInfo | undefined) => {
    if (!operator) return;
    close();
    palette.choose(operator);
  };
  // The field takes the focus before the browser paints, as keys typed at once must not reach the picture.
  useLayoutEffect(() => input.current?.focus(), []);
  useEffect(
    () => list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }),
    [at, query],
  );
  useEffect(() => {
    const away = (event: PointerEvent) => {
      if (panel.current && !event.composedPath().includes(panel.current)) app.palette.question.value = null;
    };
    document.addEventListener("pointerdown", away, true);
    return () => document.removeEventListener("pointerdown", away, true);
  }, []);
  const carried = useCell(app.palette.carried);
  const onDragStart = (event: DragEvent, operator: OperatorInfo) => {
    event.dataTransfer?.setData("text/plain", operator.op);
    // Chromium gives up a drag whose source changes in the same turn.
    setTimeout(() => {
      app.palette.carried.value = operator;
    }, 0);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") close();
    else if (event.key === "Enter") choose(current);
    else if (event.key === "ArrowDown") setAt(Math.min(at + 1, matches.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      class={`ol-popup ol-palette ${carried ? "ol-carrying" : ""}`}
      role="dialog"
      aria-label={palette.title}
      ref={panel}
      data-testid="palette"
      onKeyDown={onKeyDown}
      onDragEnd={() => {
        app.palette.carried.value = null;
      }}
    >
      <p class="ol-palette-title">{palette.title}</p>
      <input
        ref={input}
        type="text"
        class="ol-input"
        placeholder="Operator, or what it does"
        spellcheck={false}
        autocomplete="off"
        value={query}
        aria-label={palette.title}
        role="combobox"
        aria-expanded={true}
        aria-controls="ol-operators"
        data-testid="palette-input"
        aria-activedescendant={current ? `ol-operator-${current.op}` : undefined}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          setAt(0);
        }}
      />
      <div class="ol-palette-body">
        <ul class="ol-palette-list" role="listbox" id="ol-operators" aria-label="Operators" ref={list}>
          {matches.slice(0, SHOWN).map((operator, i) => (
            <li
              key={operator.op}
              id={`ol-operator-${operator.op}`}
              role="option"
              aria-selected={operator === current}
              class="ol-hit"
              data-testid={`operator-${operator.op}`}
              onMouseEnter={() => setAt(i)}
              onClick={() => choose(operator)}
              draggable
              onDragStart={(event) => onDragStart(event, operator)}
            >
              <span class="ol-palette-op">{operator.op}</span>
            </li>
          ))}
          {operators.length > 0 && matches.length === 0 && (
            <li class="ol-empty" role="presentation">
              No operator like this
            </li>
          )}
          {matches.length > SHOWN && (
            <li class="ol-empty" role="presentation">
              {plural(matches.length - SHOWN, "more operator")}
            </li>
          )}
        </ul>
        {current && <Preview app={app} operator={current} />}
      </div>
    </div>
  );
}

function Preview({ app, operator }: { app: App; operator: OperatorInfo }) {
  const [doc, setDoc] = useState<Documentation | null>(null);
  useEffect(() => {
    setDoc(null);
    let live = true;
    const timer = setTimeout(() => {
      app.client.request("operator_doc", { op: operator.op }).then(
        (documentation) => live && setDoc(documentation),
        () => undefined,
      );
    }, 120);
    return () => {
      live = false;
      clearTimeout(timer);
    };
  }, [operator.op]);
  const [least, most] = operator.inputs;
  const takes = least === most ? plural(least, "input") : `${least} to ${most > 1000 ? "any number of" : most} inputs`;
  return (
    <div class="ol-palette-doc" tabIndex={0} aria-label={`About ${operator.op}`}>
      <p>
        <strong>{operator.op}</strong> <span class="ol-dim">{takes}</span>
      </p>
      {doc ? <pre>{doc.text}</pre> : <p>{operator.summary}</p>}
    </div>
  );
}
