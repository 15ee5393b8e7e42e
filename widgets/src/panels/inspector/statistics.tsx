/** Statistics of one value after a run, with its histogram. */

import { fromWire, type Histogram, type Statistics, type WireNumber } from "../../kernel/protocol.ts";
import { formatFloat32 } from "../../model/attributes.ts";
import { count } from "../../model/names.ts";
import { Elided } from "../parts/controls.tsx";

/** Six significant digits are enough to see what a value is like. */
export function formatNumber(value: WireNumber | null): string {
  if (value === null || value === undefined) return "–";
  const number = fromWire(value);
  if (Number.isNaN(number)) return "NaN";
  if (!Number.isFinite(number)) return number > 0 ? "∞" : "−∞";
  const text = Number.isInteger(number) && Math.abs(number) < 1e9 ? String(number) : formatShort(number);
  return text.replaceAll("-", "−");
}

function formatShort(number: number): string {
  const size = Math.abs(number);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return number.toExponential(2).replace("e+", "e");
  const exact = formatFloat32(number);
  return exact.length <= 7 ? exact : String(Number(number.toPrecision(4)));
}

export function formatShape(statistics: Statistics): string {
  const shape = statistics.shape ? statistics.shape.join("×") || "scalar" : "";
  return [statistics.dtype, shape].filter(Boolean).join(" ");
}

interface BlockProps {
  statistics: Statistics;
  /** Whether the name of the value shows. */
  named: boolean;
  /** Whether the model was edited since the run. */
  stale: boolean;
}

export function StatisticsBlock({ statistics, named, stale }: BlockProps) {
  const { nan, inf, zeros } = statistics;
  return (
    <div class="ol-statistics" data-testid={`run-stat-${statistics.name}`}>
      {named && <Elided text={statistics.name} middle class="ol-mono" />}
      <p class="ol-dim">
        {formatShape(statistics)}
        {stale && <span class="ol-stale"> · before the last edit</span>}
      </p>
      {statistics.histogram && <HistogramChart histogram={statistics.histogram} />}
      <dl class="ol-stat-grid">
        <Figure name="min" text={formatNumber(statistics.min)} />
        <Figure name="mean" text={formatNumber(statistics.mean)} />
        <Figure name="max" text={formatNumber(statistics.max)} />
        <Figure name="std" text={formatNumber(statistics.std)} />
        <Figure name="zeros" text={count(zeros)} />
        <Figure name="NaN" text={count(nan)} bad={nan > 0} />
        <Figure name="Inf" text={count(inf)} bad={inf > 0} />
      </dl>
    </div>
  );
}

function Figure({ name, text, bad = false }: { name: string; text: string; bad?: boolean }) {
  return (
    <div class={bad ? "ol-bad" : ""}>
      <dt>{name}</dt>
      <dd>{text}</dd>
    </div>
  );
}

const WIDTH = 128,
  HEIGHT = 32;

/** Counts as bars over [low, high]; roots of the counts, so that rare values stay visible beside common ones. */
export function HistogramChart({ histogram, small = false }: { histogram: Histogram; small?: boolean }) {
  const { counts } = histogram;
  const peak = Math.sqrt(Math.max(1, ...counts));
  const step = WIDTH / Math.max(1, counts.length);
  const bars = counts.map((binCount, i) => {
    const height = binCount > 0 ? Math.max(1, (HEIGHT * Math.sqrt(binCount)) / peak) : 0;
    return height ? `M${round(i * step + 0.5)} ${HEIGHT}v${round(-height)}h${round(step - 1)}v${round(height)}z` : "";
  });
  const low = formatNumber(histogram.low),
    high = formatNumber(histogram.high);
  const total = counts.reduce((sum, binCount) => sum + binCount, 0);
  return (
    <div class={small ? "ol-histogram ol-histogram-small" : "ol-histogram"}>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Histogram of ${total} values from ${low} to ${high}`}
      >
        <path d={bars.join("")} />
      </svg>
      {!small && (
        <div class="ol-histogram-ends">
          <span>{low}</span>
          <span>{high}</span>
        </div>
      )}
    </div>
  );
}

function round(number: number): number {
  return Math.round(number * 100) / 100;
}
