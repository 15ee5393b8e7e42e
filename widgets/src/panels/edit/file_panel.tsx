/** The uses of a file that was dropped or chosen: opened here, inserted, or its weights put into the model. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import type { FileInHand } from "../../edit/file_transfer.ts";
import type { FileOffer, WeightPreview } from "../../kernel/protocol.ts";
import { asRequestError } from "../../kernel/request_error.ts";
import { plural } from "../../model/names.ts";
import { useCell } from "../../state.ts";
import { ToolButton } from "../parts/controls.tsx";
import { focusPicture, onEscape } from "./form.tsx";
import { asParameters, firstWiring, Insertion, type Wiring } from "./insertion.tsx";

type Way = "open" | "compare" | "insert" | "weights";

export function FilePanel({ app }: { app: App }) {
  const inHand = useCell(app.files.inHand);
  return inHand ? <OpenPanel key={inHand.file ? "file" : "none"} app={app} inHand={inHand} /> : null;
}

function OpenPanel({ app, inHand }: { app: App; inHand: FileInHand }) {
  const panel = useRef<HTMLDivElement>(null);
  const { file, offer, sent, insert } = inHand;
  const title = file?.name ?? (insert ? "Insert a model" : "Open a file");
  const close = () => {
    const { current } = panel;
    app.files.inHand.value = null;
    focusPicture(current);
  };
  const known = offer !== null;
  useLayoutEffect(() => {
    const first = panel.current?.querySelector<HTMLElement>("input:checked, input[type=file], button");
    first?.focus({ preventScroll: true });
  }, [known]);
  return (
    <div
      class="ol-popup ol-dialog ol-form"
      role="dialog"
      aria-label={title}
      ref={panel}
      data-testid="file-panel"
      onKeyDown={onEscape(close)}
    >
      <div>
        <p class="ol-palette-title ol-elided" title={file?.name}>
          {title}
        </p>
        {offer && (
          <p class="ol-dim" data-testid="file-about">
            {about(offer)}
          </p>
        )}
      </div>
      {!file && (
        <>
          <input
            type="file"
            aria-label="File"
            data-testid="file-choice"
            onChange={(event) => {
              const chosen = event.currentTarget.files?.[0];
              if (chosen) void app.files.take(chosen, inHand.wires, inHand.insert);
            }}
          />
          <p class="ol-hint">
            {inHand.insert
              ? "A model in any format that onnxlab reads: its inputs and outputs show before it is inserted."
              : "A model in any format that onnxlab reads, or weights: .safetensors, .npz, a training checkpoint."}
          </p>
        </>
      )}
      {file && !offer && <p class="ol-dim">{sent < 1 ? `Sending, ${Math.floor(sent * 100)} %…` : "Reading…"}</p>}
      {offer ? (
        <Ways app={app} inHand={inHand} offer={offer} close={close} />
      ) : (
        <div class="ol-form-buttons">
          <button type="button" class="ol-button ol-text-button" onClick={close}>
            Cancel
          </button>
        </div>
      )}
    </div>
  );
}

function about({ title, nodes, initializers, refused }: FileOffer): string {
  const sizes = refused
    ? []
    : [nodes ? plural(nodes, "node") : "", initializers ? plural(initializers, "initializer") : ""];
  return [title, ...sizes].filter(Boolean).join(" · ");
}

interface WaysProps {
  app: App;
  inHand: FileInHand;
  offer: FileOffer;
  close: () => void;
}

function Ways({ app, inHand, offer, close }: WaysProps) {
  const { file, id, wires, insert } = inHand;
  const { weights } = offer;
  const ways = waysOf(app, offer);
  const [way, setWay] = useState<Way>(() => preferred(ways, insert));
  const [wiring, setWiring] = useState(() => firstWiring(app, wires));
  const [problem, setProblem] = useState("");
  const rewire = (changed: Wiring) => {
    setWiring(changed);
    setProblem("");
  };
  const [busy, setBusy] = useState(false);
  const act = async () => {
    setBusy(true);
    try {
      if (way === "open") await app.files.open(id);
      else if (way === "compare") await app.client.request("compare", { file: id });
      else if (way === "weights") await app.files.applyWeights(id, weights?.replaced ?? 0);
      else await app.edits.make("insert_model", "model", [], { file: id, ...asParameters(app, wiring) });
      if (app.files.inHand.value?.file === file) close();
    } catch (error) {
      const refused = asRequestError(error);
      if (refused.code !== "disconnected") setProblem(refused.sentence);
    } finally {
      setBusy(false);
    }
  };
  const row = (name: Way, label: string, children?: ComponentChildren) => (
    <div class="ol-way">
      <label class="ol-form-check">
        <input
          type="radio"
          name="ol-file-way"
          checked={way === name}
          disabled={!ways.includes(name)}
          data-testid={`file-way-${name}`}
          onChange={() => {
            setWay(name);
            setProblem("");
          }}
        />
        {label}
      </label>
      {children && <div class="ol-way-more">{children}</div>}
    </div>
  );
  return (
    <form
      class="ol-form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (!busy && ways.length) void act();
      }}
    >
      {ways.length > 0 && (
        <div role="radiogroup" aria-label="What to do with it" class="ol-ways">
          {row(
            "open",
            "Open it in this view",
            <p class="ol-hint">{app.store.title} stays in Python as it is; “Back” shows it again.</p>,
          )}
          {ways.includes("compare") && row("compare", `Compare ${app.store.title} with it, side by side`)}
          {offer.nodes > 0 &&
            row(
              "insert",
              wires.connect && wires.feed ? "Insert it on the line" : "Insert it into this model",
              way === "insert" && <Insertion app={app} offer={offer} wiring={wiring} change={rewire} />,
            )}
          {weights && row("weights", "Apply it as weights of this model", <Effect weights={weights} />)}
        </div>
      )}
      {offer.refused && (
        <p class="ol-save-note" data-testid="file-refused">
          {offer.refused}
        </p>
      )}
      {offer.torch && <Torch app={app} code={offer.torch} refused={offer.refused !== ""} />}
      {offer.note && (
        <p class="ol-save-note" data-testid="file-note">
          {offer.note}
        </p>
      )}
      {problem && (
        <p class="ol-field-error" role="alert" data-testid="file-problem">
          {problem}
        </p>
      )}
      <div class="ol-form-buttons">
        <button type="button" class="ol-button ol-text-button" onClick={close}>
          {ways.length ? "Cancel" : "Close"}
        </button>
        {ways.length > 0 && (
          <button type="submit" class="ol-button ol-text-button ol-primary" disabled={busy} data-testid="file-submit">
            {busy ? "Working…" : { open: "Open", compare: "Compare", insert: "Insert", weights: "Apply" }[way]}
          </button>
        )}
      </div>
    </form>
  );
}

function waysOf(app: App, { refused, nodes, weights }: FileOffer): Way[] {
  const ways: Way[] = refused ? [] : ["open"];
  if (!refused && app.client.can.compare) ways.push("compare");
  if (!refused && nodes) ways.push("insert");
  if (weights?.replaced && !weights.misfits.length) ways.push("weights");
  return ways;
}

/** The use that is chosen at first: on a line insertion, for weights that fit their application. */
function preferred(ways: readonly Way[], insert: boolean): Way {
  if (ways.includes("weights")) return "weights";
  return insert && ways.includes("insert") ? "insert" : "open";
}

/** The effect of applying weights, name by name. */
function Effect({ weights }: { weights: WeightPreview }) {
  const { replaced, missing, extra, misfits, more } = weights;
  const lists: [string, string[], number][] = [
    ["of another shape or type, so that nothing is applied", misfits, more[2]],
    ["of the model not in the file, which stay", missing, more[0]],
    ["of the file not in the model, left out", extra, more[1]],
  ];
  return (
    <div data-testid="file-weights">
      <p class={replaced ? "" : "ol-dim"}>
        {replaced
          ? `Replaces ${plural(replaced, "initializer")} by name.`
          : "No initializer of this model has a name in it."}
      </p>
      {lists.map(
        ([text, names, rest]) =>
          names.length > 0 && (
            <details key={text} open={names === misfits}>
              <summary>
                {(names.length + rest).toLocaleString("en")} {text}
              </summary>
              <ul class="ol-save-list ol-mono">
                {names.map((name) => (
                  <li key={name}>{name}</li>
                ))}
                {rest > 0 && <li class="ol-dim">and {rest.toLocaleString("en")} more</li>}
              </ul>
            </details>
          ),
      )}
    </div>
  );
}

/** The way to convert a file of torch, which no page may do: it runs what is in the file. */
function Torch({ app, code, refused }: { app: App; code: string; refused: boolean }) {
  return (
    <div data-testid="file-torch">
      <p>
        {refused ? "Torch converts it" : "It opens to be looked at; to run it, let torch convert it"}, which runs code
        of the file. Where you trust it, put it beside the notebook and run
      </p>
      <p class="ol-code-line">
        <code>{code}</code>
        <ToolButton
          icon="copy"
          title="Copy"
          testid="file-torch-copy"
          onClick={() => void app.notices.copyText(code, "Copied")}
        />
      </p>
    </div>
  );
}
