/** The wires between this model and one that is inserted, the prefix of its names, and what comes of both. */

import type { App } from "../../app.ts";
import type { Wires } from "../../edit/file_transfer.ts";
import { formFields } from "../../edit/forms.ts";
import type { FileOffer, OfferedValue } from "../../kernel/protocol.ts";
import { mainScope, plural, valueLabel } from "../../model/names.ts";
import { Elided } from "../parts/controls.tsx";
import { FieldRow } from "./form.tsx";

/** The chosen wires; values are told by their names, "" for none. */
export interface Wiring {
  connect: string[];
  feed: string[];
  prefix: string;
  outputs: boolean;
}

/** Inputs and outputs that can be wired here, and names of values that are offered. */
const ROWS = 12,
  OFFERED = 500;

export function firstWiring(app: App, { connect, feed }: Wires): Wiring {
  const names = (value: number) => (value ? [valueLabel(app.store, value)] : []);
  return { connect: names(connect), feed: names(feed), prefix: "", outputs: !feed };
}

/** The wiring as the edit takes it. Throws for a name that no value of the main graph has. */
export function asParameters(app: App, { connect, feed, ...rest }: Wiring) {
  const byName = new Map([...mainValues(app)].map(({ name, id }) => [name, id]));
  const ids = (names: string[]) =>
    names.map((name) => {
      const id = name ? byName.get(name) : 0;
      if (id === undefined) throw new Error(`No value of the main graph is called ${name}: choose another, or none.`);
      return id;
    });
  return { connect: ids(connect), feed: ids(feed), ...rest };
}

function* mainValues(app: App) {
  const main = mainScope(app.store);
  for (const value of app.store.values.values()) if (value.scope === main && value.name) yield value;
}

interface InsertionProps {
  app: App;
  offer: FileOffer;
  wiring: Wiring;
  change: (wiring: Wiring) => void;
}

export function Insertion({ app, offer, wiring, change }: InsertionProps) {
  const list = `ol-values-${app.client.session}`;
  const wires = (side: "connect" | "feed", values: OfferedValue[], words: string) =>
    values.slice(0, ROWS).map(({ name, label }, place) => (
      <label key={`${side} ${place}`} class="ol-wire-row">
        <span>
          <Elided class="ol-mono" text={name} middle />
          <Elided class="ol-dim" text={label} />
        </span>
        <span class="ol-dim">{words}</span>
        <input
          class="ol-input ol-mono"
          list={list}
          spellcheck={false}
          placeholder={side === "connect" ? "none: becomes an input" : "nothing"}
          value={wiring[side][place] ?? ""}
          data-testid={`insert-${side}-${place}`}
          onInput={(event) => {
            const names = values.slice(0, ROWS).map((_, i) => wiring[side][i] ?? "");
            names[place] = event.currentTarget.value;
            change({ ...wiring, [side]: names });
          }}
        />
      </label>
    ));
  return (
    <>
      <datalist id={list}>
        {[...mainValues(app)].slice(0, OFFERED).map(({ id, name, label }) => (
          <option key={id} value={name} label={`${name} ${label}`} />
        ))}
      </datalist>
      {wires("connect", offer.inputs, "reads")}
      {wires("feed", offer.outputs, "replaces")}
      {formFields("insert_model", { outputs: wiring.outputs }, ["file"]).map((field) => (
        <FieldRow
          key={field.name}
          app={app}
          field={field}
          entry={field.name === "outputs" ? wiring.outputs : wiring.prefix}
          entries={{}}
          change={(entry) => change({ ...wiring, [field.name]: entry })}
        />
      ))}
      <p class="ol-hint" data-testid="insert-effect">
        {effect(offer, wiring)}
      </p>
    </>
  );
}

/** The effect of the insertion, in words. */
function effect(
  { nodes, initializers, inputs, outputs }: FileOffer,
  { connect, feed, prefix, ...rest }: Wiring,
): string {
  const named = (values: OfferedValue[], wired: string[]) => {
    const names = values.filter((_, place) => !wired[place]).map(({ name }) => prefix + name);
    return names.length > 4
      ? `${names.slice(0, 4).join(", ")} and ${names.length - 4} more`
      : names.join(", ") || "none";
  };
  return [
    `Adds ${plural(nodes, "node")} and ${plural(initializers, "initializer")}`,
    `new inputs: ${named(inputs, connect)}`,
    `new outputs: ${rest.outputs ? named(outputs, feed) : "none"}`,
    "names that are taken get a number; undo takes it all back.",
  ].join("; ");
}
