/** A command: an edit by hand that needs more than a field, with its title, when it makes sense, and what it asks for. */

import type { App } from "../../app.ts";
import type { EditName, Edits, Subject } from "../edits.ts";
import type { Field } from "../fields.ts";
import { formFields, parametersOf } from "../forms.ts";

/** The subject of a command: nodes, or a value, or else the model (the scope in view). */
export interface Target {
  nodes: number[];
  value: number;
}

export interface Command {
  /** The edit, or a name of its own. */
  id: string;
  on: Subject;
  title: string;
  keys?: string;
  /** Stands in the context menu too, not only in the list of all edits. */
  menu?: boolean;
  fits?: (app: App, target: Target) => boolean;
  act: (app: App, target: Target) => void;
}

type Fields = (app: App, target: Target) => Field[] | Promise<Field[]>;

/** An edit that needs nothing else. */
export function direct<E extends EditName>(
  on: Command["on"],
  id: E,
  title: string,
  more: Partial<Command>,
  parameters: Edits[E],
): Command {
  return {
    id,
    on,
    title,
    act: (app, target) => void app.edits.attempt(id, on, subject(on, target), parameters),
    ...more,
  };
}

/** An edit that asks first; `known` is sent besides what the fields hold, or instead of it. */
export function asking<E extends EditName>(
  on: Command["on"],
  id: E,
  title: string,
  fields: Fields = () => formFields(id),
  more: Partial<Command> = {},
  known: (app: App, target: Target, answers: Record<string, unknown>) => Partial<Edits[E]> = () => ({}),
): Command {
  const act = (app: App, target: Target) =>
    void app.dialogs.open(title, fields(app, target), (answers) =>
      app.edits.make(id, on, subject(on, target), { ...parametersOf(id, answers), ...known(app, target, answers) }),
    );
  return { id, on, title: `${title}…`, act, ...more };
}

function subject(on: Command["on"], target: Target): number[] {
  return on === "model" || on === "graph" ? [] : on === "value" ? [target.value] : target.nodes;
}

/** The first node of a target, 0: none. */
export const firstNode = (target: Target): number => target.nodes[0] ?? 0;

/** Asks for metadata. */
export const metadata = (on: "model" | "node" | "value", title: string): Command =>
  asking(on, "set_metadata", title, undefined, {}, (_app, _target, { text }) => (text === "" ? { text: null } : {}));

/** Asks for a documentation string. */
export const doc = (on: "model" | "graph" | "node" | "value", title: string): Command =>
  asking(on, "set_doc_string", title, async (app, target) => {
    const about = await app.client.request(
      "about",
      on === "node" ? { node: firstNode(target) } : on === "value" ? { value: target.value } : {},
    );
    return formFields("set_doc_string", { text: (on === "graph" ? about.graph_doc_string : about.doc_string) ?? "" });
  });
