/** What rewriting would do: rules with counts, what goes faint in the picture, apply one or all; and near misses. */

import { useEffect, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import type { NearMisses, RewriteInfo, Rewrites } from "../../kernel/protocol.ts";
import { asRequestError } from "../../kernel/request_error.ts";
import { plural } from "../../model/names.ts";
import { useEvents } from "../../state.ts";
import { Elided, Section } from "../parts/controls.tsx";

const LEVELS = ["basic", "extended", "layout"];

/** Looks and applies only when asked to: on a large model either takes seconds. */
export function RewritePanel({ app }: { app: App }) {
  useEvents(app.client, "connection");
  const [level, setLevel] = useState("basic");
  const [found, setFound] = useState<Rewrites | null>(null);
  const [shown, setShown] = useState("");
  const [busy, setBusy] = useState(false);
  const [said, setSaid] = useState("");
  const show = (rule: RewriteInfo | null) => {
    setShown(rule?.rule ?? "");
    app.picture?.mark({ dimmed: rule?.nodes ?? [] });
  };
  useEffect(() => app.store.on("commit", () => setFound(null)), [app]);
  useEffect(() => () => app.picture?.mark({ dimmed: [] }), [app]);
  const attempt = async (work: () => Promise<string>) => {
    setBusy(true);
    show(null);
    try {
      setSaid(await work());
    } catch (error) {
      setSaid(asRequestError(error).message);
    }
    setBusy(false);
  };
  const look = () =>
    attempt(async () => {
      const answer = await app.client.request("rewrites", { level });
      setFound(answer);
      return answer.rules.length ? "" : "Nothing would change.";
    });
  const apply = (rules: string[]) =>
    attempt(async () => {
      const done = await app.client.request("rewrite", { level, rules, version: app.store.version });
      const taken = done.refused.length ? ` Taken back: ${done.refused.join("; ")}` : "";
      return `${done.nodes[0]} nodes before, ${done.nodes[1]} now; outputs: ${done.verdict}.${taken}`;
    });
  return (
    <Section title="Rewrites">
      <div class="ol-row">
        <select
          aria-label="Level of optimization"
          data-testid="rewrites-level"
          value={level}
          onChange={(event) => {
            setLevel(event.currentTarget.value);
            setFound(null);
          }}
        >
          {LEVELS.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        <button type="button" class="ol-link" data-testid="rewrites-look" disabled={busy} onClick={() => void look()}>
          {busy ? "working…" : "what would change"}
        </button>
      </div>
      {found?.rules.map((rule) => (
        <Rule
          key={rule.rule}
          rule={rule}
          shown={shown === rule.rule}
          able={app.client.editable && !busy}
          show={() => show(shown === rule.rule ? null : rule)}
          apply={() => void apply([rule.rule])}
        />
      ))}
      {found && found.rules.length > 0 && (
        <button
          type="button"
          class="ol-button ol-text-button"
          data-testid="rewrites-all"
          disabled={!app.client.editable || busy}
          onClick={() => void apply([])}
        >
          Apply all: {found.nodes[0]} to {found.nodes[1]} nodes
        </button>
      )}
      {said && (
        <p class="ol-dim" role="status" data-testid="rewrites-said">
          {said}
        </p>
      )}
    </Section>
  );
}

interface RuleProps {
  rule: RewriteInfo;
  shown: boolean;
  able: boolean;
  show: () => void;
  apply: () => void;
}

function Rule({ rule, shown, able, show, apply }: RuleProps) {
  return (
    <div class="ol-row" data-testid={`rewrite-${rule.rule}`}>
      <button
        type="button"
        class="ol-link"
        aria-pressed={shown}
        title={`${rule.doc} Shows faint what goes or is changed.`}
        disabled={rule.nodes.length === 0}
        onClick={show}
      >
        {rule.count} × {rule.rule}
      </button>
      {rule.alone && (
        <button type="button" class="ol-link" aria-label={`Apply ${rule.rule}`} disabled={!able} onClick={apply}>
          apply
        </button>
      )}
    </div>
  );
}

/** Rules that apply at a node or almost do, with what is in their way. */
export function RulesNear({ app, node }: { app: App; node: number }) {
  const [found, setFound] = useState<NearMisses | null>(null);
  const [said, setSaid] = useState("");
  useEffect(() => setFound(null), [node]);
  const ask = () =>
    app.client.request("near_misses", { node }).then(setFound, (error) => setSaid(asRequestError(error).message));
  return (
    <Section title="Rules">
      {!found && (
        <button type="button" class="ol-link" data-testid="near-misses" onClick={() => void ask()}>
          rules that almost fit
        </button>
      )}
      {said && <p class="ol-empty">{said}</p>}
      {found?.rules.length === 0 && <p class="ol-empty">none</p>}
      {found && found.rules.length > 0 && <p class="ol-dim">{plural(found.rules.length, "rule")}, the nearest first</p>}
      {found?.rules.map((each) => (
        <div key={each.rule} class="ol-row" title={each.doc} data-testid="near-miss">
          <Elided text={each.rule} class="ol-mono" />
          <span class="ol-dim">{each.why || "applies"}</span>
        </div>
      ))}
    </Section>
  );
}
