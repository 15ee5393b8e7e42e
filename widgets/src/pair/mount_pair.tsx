/** Puts two views side by side on the page, with what differs between them below, and takes them off again. */

import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Transport } from "../kernel/transport.ts";
import { currentTheme, watchTheme } from "../look/page_theme.ts";
import { mount, type Shared } from "../mount.tsx";
import { Elided } from "../panels/parts/controls.tsx";
import { useCell } from "../state.ts";
import { Pair, type Side } from "./pair.ts";
import { PairBar } from "./pair_bar.tsx";
import { PairPanel } from "./pair_panel.tsx";

/** The height of the whole. */
export interface PairSize {
  /** Pixels; "fill": as high as the element around it. */
  height(): number | "fill";
  onHeight(listener: () => void): () => void;
}

/** Parts of a pair for browser tests: `element.__onnxlabPair`. */
export interface PairElement extends HTMLElement {
  __onnxlabPair?: Pair;
}

const LEAST_HEIGHT = 360,
  DEFAULT_HEIGHT = 860;

/** `end` takes the pair's place back, where it stands in the place of a view. */
export function mountPair(
  host: HTMLElement,
  transports: Transport[],
  size: PairSize,
  end: (() => void) | null = null,
): () => void {
  const root = host.ownerDocument.createElement("div");
  root.className = "onnxlab ol-pair";
  root.dataset.testid = "onnxlab-pair";
  root.dataset.lmSuppressShortcuts = "true";
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", "Two ONNX models");
  host.append(root);
  const pair = new Pair(end);
  (root as PairElement).__onnxlabPair = pair;
  const setTheme = (theme: string) => {
    root.dataset.theme = theme;
  };
  const setHeight = () => {
    const height = size.height();
    root.style.height = height === "fill" ? "100%" : `${Math.max(LEAST_HEIGHT, height || DEFAULT_HEIGHT)}px`;
  };
  // Before the views see the key: they let none through.
  root.addEventListener("keydown", (event) => walk(pair, event), { capture: true });
  setTheme(currentTheme(root.ownerDocument));
  setHeight();
  const offs = [watchTheme(root.ownerDocument, setTheme), size.onHeight(setHeight)];
  render(<Whole pair={pair} transports={transports} />, root);
  return () => {
    for (const off of offs) off();
    pair.dispose();
    render(null, root);
    root.remove();
  };
}

/** Alt and up or down: the change before and the next one. */
function walk(pair: Pair, event: KeyboardEvent): void {
  if (!event.altKey || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
  pair.step(event.key === "ArrowUp" ? -1 : 1);
  event.preventDefault();
  event.stopPropagation();
}

function Whole({ pair, transports }: { pair: Pair; transports: Transport[] }) {
  return (
    <>
      <PairBar pair={pair} />
      <div class="ol-pair-sides">
        {transports.map((transport, side) => (
          <Pane key={side} pair={pair} side={side as Side} transport={transport} />
        ))}
      </div>
      <PairPanel pair={pair} />
    </>
  );
}

/** One view; any gesture or key in it makes it lead. */
function Pane({ pair, side, transport }: { pair: Pair; side: Side; transport: Transport }) {
  const pane = useRef<HTMLDivElement>(null);
  const name = useCell(pair.info)?.names[side] ?? "";
  useEffect(() => {
    const { current } = pane;
    if (!current) return;
    const lead = () => pair.lead(side);
    for (const type of ["pointerdown", "wheel", "keydown"]) current.addEventListener(type, lead, { capture: true });
    return mount(current, transport, sharedOf(current, pair, side), (app) => {
      app.inspectorOpen.value = false;
      pair.join(side, app);
    });
  }, []);
  return (
    <section class="ol-pair-side" aria-label={side ? "second model" : "first model"} data-testid={`pair-side-${side}`}>
      <p class="ol-pair-name">
        <b>{side ? "B" : "A"}</b> <Elided text={name} middle />
      </p>
      <div class="ol-pair-view" ref={pane} />
    </section>
  );
}

/** The state of a view that belongs to no widget of its own. */
function sharedOf(pane: HTMLElement, pair: Pair, side: Side): Shared {
  let selection: number[] = [],
    bookmarks: number[] = [];
  const nothing = () => () => undefined;
  return {
    height: () => pane.clientHeight,
    onHeight(listener) {
      const observer = new ResizeObserver(() => listener());
      observer.observe(pane);
      return () => observer.disconnect();
    },
    title: () => pair.info.value?.names[side] ?? "",
    onTitle: (listener) => pair.info.on(() => listener()),
    selection: () => selection,
    setSelection: (nodes) => {
      selection = nodes;
    },
    onSelection: nothing,
    reading: () => "auto",
    setReading: () => undefined,
    columns: () => true,
    setColumns: () => undefined,
    onReading: nothing,
    bookmarks: () => bookmarks,
    setBookmarks: (nodes) => {
      bookmarks = nodes;
    },
    onBookmarks: nothing,
  };
}
