/** Patterns of selected nodes, to find or replace all that are like them; and rules that a node almost fits. */

import { useEffect, useState } from "preact/hooks";
import type { App } from "../../app.ts";
import type { NearMisses, PatternPlaces } from "../../kernel/protocol.ts";
import { asRequestError } from "../../kernel/request_error.ts";
import { count, plural } from "../../model/names.ts";
import { useCell } from "../../state.ts";
import { Elided, Section, ToolButton } from "../parts/controls.tsx";

/** The pattern of selected nodes; every place that is like it, and its replacement. */
export function LikeThese({ app, nodes }: { app: App; nodes: number[] }) {
  const likesShown = useCell(app.rewriting.likes);
  const [pattern, setPattern] = useState("");
  const [numbers, setNumbers] = useState(true);
  const [refused, setRefused] = useState("");
  const key = nodes.join();
  const ask = (exact: boolean) => {
    setNumbers(exact);
    app.client.request("pattern", { nodes, numbers: exact }).then(
      (answer) => {
        setPattern(answer.pattern);
        setRefused("");
      },
      (error) => setRefused(asRequestError(error).sentence),
    );
  };
  useEffect(() => {
    setPattern("");
    setRefused("");
    if (likesShown) {
      app.rewriting.likes.value = false;
      ask(numbers);
    }
  }, [key, likesShown]);
  return (
    <Section title="Like this">
      {!pattern && (
        <button type="button" class="ol-link" data-testid="pattern-ask" onClick={() => ask(numbers)}>
          find or replace all like this
        </button>
      )}
      {refused && (
        <p class="ol-field-error" role="alert" data-testid="pattern-refused">
          {refused}
        </p>
      )}
      {pattern && (
        <>
          <Text label="Pattern" testid="pattern-text" text={pattern} setText={setPattern} />
          <label class="ol-form-check">
            <input
              type="checkbox"
              checked={numbers}
              data-testid="pattern-numbers"
              onChange={(event) => ask(event.currentTarget.checked)}
            />
            <span>numbers as they are</span>
          </label>
          <Places app={app} pattern={pattern} />
          {app.client.editable && <Replacement app={app} pattern={pattern} />}
        </>
      )}
    </Section>
  );
}

interface TextProps {
  label: string;
  testid: string;
  text: string;
  setText: (text: string) => void;
  placeholder?: string;
}

function Text({ label, testid, text, setText, placeholder }: TextProps) {
  return (
    <textarea
      class="ol-input ol-mono ol-pattern"
      aria-label={label}
      data-testid={testid}
      rows={Math.min(8, 1 + Math.floor(text.length / 36))}
      spellcheck={false}
      placeholder={placeholder}
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
    />
  );
}

/** The matches of a pattern: marked like the hits of a search, and gone through one by one. */
function Places({ app, pattern }: { app: App; pattern: string }) {
  const [places, setPlaces] = useState<PatternPlaces | null>(null);
  const [at, setAt] = useState(-1);
  const [refused, setRefused] = useState("");
  useEffect(() => () => app.picture?.mark({ highlights: [] }), [app]);
  useEffect(() => setPlaces(null), [pattern]);
  const find = () =>
    app.client.request("pattern_places", { pattern }).then(
      (answer) => {
        setPlaces(answer);
        setAt(-1);
        setRefused("");
        app.picture?.mark({ highlights: answer.places.flat() });
      },
      (error) => setRefused(asRequestError(error).sentence),
    );
  const step = (by: number) => {
    const { length } = places!.places,
      next = at < 0 ? (by > 0 ? 0 : length - 1) : (at + by + length) % length;
    setAt(next);
    app.picture?.reveal(places!.places[next]![0]!);
  };
  return (
    <div class="ol-rewrite-steps">
      <button type="button" class="ol-link" data-testid="pattern-find" onClick={() => void find()}>
        find all
      </button>
      {refused && <p class="ol-field-error">{refused}</p>}
      {places && (
        <span class="ol-dim" data-testid="pattern-count">
          {at >= 0 ? `${count(at + 1)} of ` : ""}
          {plural(places.count, "place")}
        </span>
      )}
      {places && places.places.length > 0 && (
        <>
          <ToolButton icon="up" title="The place before" onClick={() => step(-1)} />
          <ToolButton icon="down" title="The next place" testid="pattern-next" onClick={() => step(1)} />
          <button
            type="button"
            class="ol-link"
            data-testid="pattern-select"
            onClick={() => app.picked.show(places.places.flat())}
          >
            select
          </button>
        </>
      )}
    </div>
  );
}

/** The replacement of a pattern, and a look at the changes that it would make. */
function Replacement({ app, pattern }: { app: App; pattern: string }) {
  const [text, setText] = useState("");
  return (
    <>
      <Text
        label="Replacement"
        testid="pattern-replacement"
        text={text}
        setText={setText}
        placeholder="what takes its place, such as Gelu(x)"
      />
      <button
        type="button"
        class="ol-link"
        data-testid="pattern-preview"
        disabled={!text.trim()}
        onClick={() => void app.rewriting.ask({ rules: [`${pattern} => ${text.trim()}`] })}
      >
        show what replacing all would change
      </button>
    </>
  );
}

/** Rules that apply at a node or almost do, with what is in their way. */
export function RulesNear({ app, node }: { app: App; node: number }) {
  const [misses, setMisses] = useState<NearMisses | null>(null);
  const [refusal, setRefusal] = useState("");
  useEffect(() => setMisses(null), [node]);
  const ask = () =>
    app.client.request("near_misses", { node }).then(setMisses, (error) => setRefusal(asRequestError(error).message));
  return (
    <Section title="Rules">
      {!misses && (
        <button type="button" class="ol-link" data-testid="near-misses" onClick={() => void ask()}>
          rules that almost fit
        </button>
      )}
      {refusal && <p class="ol-empty">{refusal}</p>}
      {misses?.rules.length === 0 && <p class="ol-empty">none</p>}
      {misses && misses.rules.length > 0 && (
        <p class="ol-dim">{plural(misses.rules.length, "rule")}, the nearest first</p>
      )}
      {misses?.rules.map((rule) => (
        <div key={rule.rule} class="ol-row" title={rule.doc} data-testid="near-miss">
          <Elided text={rule.rule} class="ol-mono" />
          <span class="ol-dim">{rule.why || "applies"}</span>
        </div>
      ))}
    </Section>
  );
}
