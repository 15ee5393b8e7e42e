/** The rewrites in the drawer: rules by places, with what they gain where that was measured; apply one, a rule, all. */

import { useEffect } from "preact/hooks";
import type { App } from "../../app.ts";
import type { RewriteGain, RewriteInfo } from "../../kernel/protocol.ts";
import { quantity } from "../../look/node_heat.ts";
import { count, plural } from "../../model/names.ts";
import { useCell, useEvents } from "../../state.ts";
import { TextField, ToolButton } from "../parts/controls.tsx";
import { bytesBecome, Lines, Receipt } from "./rewrite_receipt.tsx";

const LEVELS = ["basic", "extended", "layout"];

/** Forms in fewer bits, as `model.quantize` takes them, and in words. */
const FORMS: Readonly<Record<string, string>> = {
  int8: "compute in int8 (ranges of the last run)",
  int8_dynamic: "products in int8 (ranges of each run)",
  int4_weights: "weights in int4",
  uint4_weights: "weights in uint4",
  int8_weights: "weights in int8",
  float16_weights: "weights in float16",
  bfloat16_weights: "weights in bfloat16",
  float16: "compute in float16",
  bfloat16: "compute in bfloat16",
};

export function RewriteTable({ app }: { app: App }) {
  useEvents(app.client, "connection");
  useEvents(app.store, "commit");
  const { rewriting } = app;
  const result = useCell(rewriting.found),
    busy = useCell(rewriting.busy),
    sentence = useCell(rewriting.said),
    receipt = useCell(rewriting.receipt);
  useEffect(() => {
    rewriting.hide(false);
    return () => rewriting.hide(true);
  }, [rewriting]);
  const able = app.client.editable && !busy;
  return (
    <div class="ol-tables" data-testid="rewrites">
      <Bar app={app} able={able} />
      {(busy || sentence) && (
        <p class="ol-rewrite-said" role="status" data-testid="rewrites-said">
          {busy || sentence}
        </p>
      )}
      <Receipt app={app} />
      {result && result.answer.rules.length > 0 && (
        <div class="ol-table-scroll" tabIndex={0} aria-label="Rewrites">
          <table class="ol-table" data-testid="rewrites-table">
            <thead>
              <tr>
                <th scope="col" class="ol-left">
                  rule
                </th>
                <th scope="col">places</th>
                {result.gains && GAINS.map(([title]) => <th key={title}>{title}</th>)}
                <th scope="col" aria-label="apply" />
                <th scope="col" class="ol-left">
                  what it does
                </th>
              </tr>
            </thead>
            <tbody>
              {result.answer.rules.map((rule) => (
                <Rule key={rule.rule} app={app} rule={rule} gains={result.gains} able={able} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {result && !(receipt && receipt.version >= app.store.version) && <Staying lines={result.answer.staying} />}
    </div>
  );
}

function Bar({ app, able }: { app: App; able: boolean }) {
  const { rewriting } = app;
  const options = useCell(rewriting.asked),
    result = useCell(rewriting.found),
    shown = useCell(rewriting.shown);
  const ownRules = options.rules.length > 0;
  return (
    <div class="ol-tabs ol-rewrite-bar">
      {ownRules ? (
        <code class="ol-mono ol-elided" title={options.rules.join("\n")} data-testid="rewrites-rule">
          {options.rules.join("; ")}
        </code>
      ) : (
        <>
          <select
            aria-label="What is made of the model"
            data-testid="rewrites-level"
            value={options.level}
            disabled={!able}
            onChange={(event) => void rewriting.ask({ level: event.currentTarget.value })}
          >
            <optgroup label="Fewer nodes, equal outputs">
              {LEVELS.map((level) => (
                <option key={level}>{level}</option>
              ))}
            </optgroup>
            <optgroup label="Fewer bits, outputs near">
              {Object.entries(FORMS).map(([form, words]) => (
                <option key={form} value={form}>
                  {words}
                </option>
              ))}
            </optgroup>
          </select>
          {FORMS[options.level] && <Bound app={app} able={able} />}
          {!FORMS[options.level] && (
            <label class="ol-rewrite-check">
              <input
                type="checkbox"
                checked={options.microsoft}
                disabled={!able}
                data-testid="rewrites-microsoft"
                onChange={(event) => void rewriting.ask({ microsoft: event.currentTarget.checked })}
              />
              com.microsoft
            </label>
          )}
        </>
      )}
      <Protected app={app} able={able} />
      {!result && (
        <Text testid="rewrites-look" able={able} act={() => void rewriting.ask({})} words="what would change" />
      )}
      {result && !ownRules && result.answer.rules.length > 0 && (
        <Text
          testid="rewrites-measure"
          able={able}
          act={() => void rewriting.measure()}
          words="measure what it gains"
        />
      )}
      {ownRules && (
        <Text testid="rewrites-standard" able={able} act={() => void rewriting.ask({ rules: [] })} words="all rules" />
      )}
      {result && shown.rule !== "" && (
        <Text testid="rewrites-show-all" able act={() => rewriting.show("")} words="show all in the picture" />
      )}
      {result && result.answer.rules.length > 0 && (
        <>
          <span class="ol-tabs-note ol-dim" data-testid="rewrites-nodes">
            {count(result.answer.nodes[0])} to {count(result.answer.nodes[1])} nodes
            {bytesBecome(result.answer.bytes)}
          </span>
          <Text testid="rewrites-all" able={able} act={() => void rewriting.apply([])} words="apply all" />
          <Text testid="rewrites-none" able act={() => rewriting.forget()} words="none" />
        </>
      )}
    </div>
  );
}

/** Bounds on the loss, in thousandths; "" is any. */
const BOUNDS: readonly (readonly [string, string])[] = [
  ["", "any loss"],
  ["1", "at most 0.1 % off"],
  ["10", "at most 1 % off"],
  ["50", "at most 5 % off"],
];

/** The loss that is accepted: where it is exceeded, what costs most is taken back. */
function Bound({ app, able }: { app: App; able: boolean }) {
  const { atMost } = app.rewriting;
  return (
    <select
      aria-label="How far outputs may be off, as part of their largest element"
      title="Where outputs are further off, what costs most stays as it is"
      data-testid="rewrites-bound"
      value={String(useCell(atMost) ?? "")}
      disabled={!able}
      onChange={({ currentTarget }) => (atMost.value = currentTarget.value ? Number(currentTarget.value) : null)}
    >
      {BOUNDS.map(([value, words]) => (
        <option key={value} value={value}>
          {words}
        </option>
      ))}
    </select>
  );
}

/** Names that no rule touches, with commas between; "\\," is a comma in a name. */
function Protected({ app, able }: { app: App; able: boolean }) {
  const options = useCell(app.rewriting.asked);
  return (
    <div class="ol-rewrite-protect">
      <TextField
        value={options.protect.map((name) => name.replaceAll(",", "\\,")).join(", ")}
        label="Names that stay as they are, with commas between; encoder/ is all that begins so"
        testid="rewrites-protect"
        placeholder="protect: names, encoder/"
        disabled={!able}
        mono
        commit={(text) =>
          app.rewriting.ask({
            protect: text
              .split(/(?<!\\),/)
              .map((name) => name.trim().replaceAll("\\,", ","))
              .filter(Boolean),
          })
        }
      />
    </div>
  );
}

/** Nodes and weights that keep their type. */
function Staying({ lines }: { lines: readonly string[] }) {
  if (!lines.length) return null;
  return (
    <div class="ol-rewrite-receipt" data-testid="rewrites-staying">
      <Lines title={`${plural(lines.length, "place")} stay${lines.length === 1 ? "s" : ""} as before`} lines={lines} />
    </div>
  );
}

function Text({ testid, able, act, words }: { testid: string; able: boolean; act: () => void; words: string }) {
  return (
    <button type="button" class="ol-link" data-testid={testid} disabled={!able} onClick={act}>
      {words}
    </button>
  );
}

/** The difference in words: less or more. */
const fewer = (number: number | string, unit: string): string =>
  Number(number) === 0 ? "0" : `${Number(number) > 0 ? "−" : "+"}${quantity(Math.abs(Number(number)), unit)}`;

const GAINS: [string, (gain: RewriteGain) => string][] = [
  ["nodes", (gain) => fewer(gain.nodes, "")],
  ["file", (gain) => fewer(gain.bytes, "B")],
  ["peak", (gain) => fewer(gain.peak, "B")],
  ["NumPy", (gain) => fewer(gain.seconds.numpy ?? 0, "s")],
  ["onnxruntime", (gain) => fewer(gain.seconds.onnxruntime ?? 0, "s")],
  ["outputs", (gain) => gain.verdict],
];

interface RuleProps {
  app: App;
  rule: RewriteInfo;
  gains: ReadonlyMap<string, RewriteGain> | null;
  able: boolean;
}

function Rule({ app, rule, gains, able }: RuleProps) {
  const shown = useCell(app.rewriting.shown);
  const open = shown.rule === rule.rule,
    gain = gains?.get(rule.key);
  return (
    <>
      <tr class={open ? "ol-selected" : ""} data-testid={`rewrite-${rule.key}`}>
        <th scope="row" class="ol-left">
          <button
            type="button"
            class="ol-link ol-mono"
            aria-pressed={open}
            title="Show in the picture: what goes in red, what comes in green"
            onClick={() => app.rewriting.show(open ? "" : rule.rule)}
          >
            {rule.rule}
          </button>
        </th>
        <td>{count(rule.count)}</td>
        {gains && GAINS.map(([title, words]) => <td key={title}>{gain ? words(gain) : ""}</td>)}
        <td>
          <button
            type="button"
            class="ol-link"
            aria-label={`Apply ${rule.rule}`}
            disabled={!able}
            onClick={() => void app.rewriting.apply([rule.key])}
          >
            apply
          </button>
        </td>
        <td class="ol-left ol-dim" title={rule.doc}>
          {rule.doc}
        </td>
      </tr>
      {open && rule.places.length > 0 && <Place app={app} rule={rule} number={shown.place} able={able} />}
    </>
  );
}

/** One place of the rule that is shown, and the way to the others. */
function Place({ app, rule, number, able }: { app: App; rule: RewriteInfo; number: number; able: boolean }) {
  const place = rule.places[number];
  return (
    <tr class="ol-selected" data-testid="rewrite-place">
      <td class="ol-left ol-rewrite-place" colSpan={GAINS.length + 4}>
        <span class="ol-rewrite-steps">
          <ToolButton
            icon="up"
            title="The place before"
            testid="rewrite-before"
            onClick={() => app.rewriting.step(-1)}
          />
          <ToolButton icon="down" title="The next place" testid="rewrite-next" onClick={() => app.rewriting.step(1)} />
          <span class="ol-dim" data-testid="rewrite-number">
            {place ? `${number + 1} of ${rule.places.length}` : `all ${rule.places.length}`}
          </span>
          {place && (
            <span class="ol-elided" title={`${place.label}: ${place.what}`}>
              <span class="ol-mono">{place.label}</span> <span class="ol-dim">{place.what}</span>
            </span>
          )}
          {place && rule.by_place && place.at > 0 && (
            <button
              type="button"
              class="ol-link"
              data-testid="rewrite-here"
              disabled={!able}
              onClick={() => void app.rewriting.apply([rule.key], place.at)}
            >
              apply here
            </button>
          )}
        </span>
      </td>
    </tr>
  );
}
