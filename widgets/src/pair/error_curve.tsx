/** Errors along the depth of the first model, on a scale of powers of ten; a click shows a value on both sides. */

import { useState } from "preact/hooks";
import { type ErrorColumns, fromWire, type WireNumber } from "../kernel/protocol.ts";
import { count, valueLabel } from "../model/names.ts";
import { Elided } from "../panels/parts/controls.tsx";
import { useCell } from "../state.ts";
import { firstBeyond, type Pair } from "./pair.ts";

const HEIGHT = 120,
  COLUMNS = 900,
  GUILTY = 6;
/** Powers of ten at the lower and at the upper end of the scale. */
const LOW = -9,
  HIGH = 1;

export function ErrorCurve({ pair, errors }: { pair: Pair; errors: ErrorColumns }) {
  const [hover, setHover] = useState(-1);
  const value = useCell(pair.value);
  const size = errors.a.length;
  if (!size) return <p class="ol-empty">No value is in both models.</p>;
  const at = hover >= 0 ? hover : errors.a.indexOf(value);
  const place = (event: MouseEvent): number => {
    const { left, width } = (event.currentTarget as Element).getBoundingClientRect();
    return Math.min(size - 1, Math.max(0, Math.floor(((event.clientX - left) / width) * size)));
  };
  return (
    <div class="ol-pair-curve">
      <svg
        viewBox={`0 0 ${size} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`errors of ${count(size)} values in the order in which they are made`}
        data-testid="error-curve"
        onMouseMove={(event) => setHover(place(event))}
        onMouseLeave={() => setHover(-1)}
        onClick={(event) => pair.showValue(place(event))}
      >
        {[-6, -3, 0].map((power) => (
          <line key={power} class="ol-pair-grid" x1={0} x2={size} y1={yOf(10 ** power)} y2={yOf(10 ** power)} />
        ))}
        <path class="ol-pair-noise" d={curve(errors.noise)} />
        <path class="ol-pair-error" d={curve(errors.relative)} />
        {errors.local.length > 0 && <path class="ol-pair-local" d={curve(errors.local)} />}
        {at >= 0 && <line class="ol-pair-here" x1={at + 0.5} x2={at + 0.5} y1={0} y2={HEIGHT} />}
      </svg>
      <div class="ol-pair-scale" aria-hidden="true">
        {["1", "10⁻³", "10⁻⁶"].map((words, i) => (
          <span key={words} style={{ top: `${(yOf(10 ** (-3 * i)) / HEIGHT) * 100}%` }}>
            {words}
          </span>
        ))}
      </div>
      <p class="ol-pair-words">
        <span class="ol-pair-key ol-pair-error">error</span>
        {errors.local.length > 0 && <span class="ol-pair-key ol-pair-local">of the node alone</span>}
        <span class="ol-pair-key ol-pair-noise">what roundings explain</span>
        {at >= 0 && <Words pair={pair} errors={errors} at={at} />}
      </p>
      <Guilty pair={pair} errors={errors} />
    </div>
  );
}

/** One value in words. */
function Words({ pair, errors, at }: { pair: Pair; errors: ErrorColumns; at: number }) {
  const store = pair.app(0)?.store;
  const problem = errors.problems[at];
  return (
    <span class="ol-pair-at" data-testid="error-at">
      <b class="ol-mono">{store && <Elided text={valueLabel(store, errors.a[at]!)} middle />}</b>
      <span>
        {problem ||
          `${powers(errors.relative[at]!)} of the peak, ${decibels(errors.sqnr[at]!)}, noise ${powers(errors.noise[at]!)}`}
      </span>
    </span>
  );
}

/** The nodes whose own error is large, else the first value that differs by more than is allowed. */
function Guilty({ pair, errors }: { pair: Pair; errors: ErrorColumns }) {
  const tolerance = useCell(pair.tolerance);
  const store = pair.app(0)?.store;
  const first = firstBeyond(errors, tolerance),
    byThemselves = tolerance === null && errors.guilty.length > 0;
  const places = byThemselves ? errors.guilty.slice(0, GUILTY) : first >= 0 ? [first] : [];
  if (!store || !places.length)
    return <p class="ol-dim">All values agree within {tolerance ?? "what roundings explain"}.</p>;
  return (
    <ul class="ol-pair-guilty" aria-label={byThemselves ? "Nodes that are off by themselves" : "Where they diverge"}>
      {places.map((place) => (
        <li key={place}>
          <button type="button" class="ol-link ol-mono" data-testid="pair-guilty" onClick={() => pair.showValue(place)}>
            <Elided text={valueLabel(store, errors.a[place]!)} middle />
          </button>
          <span class="ol-dim">
            {byThemselves
              ? ` ${powers(errors.local[place] ?? 0)} by itself`
              : ` differs first, by ${powers(errors.relative[place]!)} of the peak`}
          </span>
        </li>
      ))}
    </ul>
  );
}

function yOf(number: number): number {
  const power = number > 0 ? Math.log10(number) : LOW;
  return HEIGHT * (1 - (Math.min(HIGH, Math.max(LOW, power)) - LOW) / (HIGH - LOW));
}

/** Steps of the largest number in each column. */
function curve(numbers: readonly WireNumber[]): string {
  const wide = Math.ceil(numbers.length / COLUMNS);
  const parts: string[] = [];
  for (let at = 0; at < numbers.length; at += wide) {
    const most = Math.max(...numbers.slice(at, at + wide).map((number) => fromWire(number)));
    parts.push(`${parts.length ? "L" : "M"}${at} ${yOf(Number.isNaN(most) ? Infinity : most).toFixed(1)}h${wide}`);
  }
  return parts.join("");
}

export function powers(number: WireNumber): string {
  const exact = fromWire(number);
  if (exact === 0 || !Number.isFinite(exact)) return String(exact).replace("Infinity", "∞");
  return exact >= 1e-3 && exact < 1e4 ? String(Number(exact.toPrecision(2))) : exact.toExponential(1);
}

function decibels(number: WireNumber): string {
  const exact = fromWire(number);
  return Number.isFinite(exact) ? `${exact.toFixed(1)} dB` : exact > 0 ? "equal" : "no signal";
}
