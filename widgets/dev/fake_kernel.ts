/** The kernel's side of the protocol over a FakeModel, in the page: for development, screenshots and the client's tests. */

import type {
  AttributeValue,
  CommitEvent,
  History,
  Methods,
  NodeRecord,
  Section,
  Snapshot,
} from "../src/kernel/protocol.ts";
import { PROTOCOL } from "../src/kernel/protocol.ts";
import type { Message, Transport } from "../src/kernel/transport.ts";
import { FakeAnswers, type Refusal, refuse } from "./fake_answers.ts";
import { type FakeModel, type FakeNode, SCHEMAS } from "./fake_model.ts";

interface Step {
  label: string;
  apply: () => Touched;
  revert: () => Touched;
}

interface Touched {
  nodes?: number[];
  removed?: number[];
  values?: number[];
}

type Params = Record<string, unknown>;

/** The conditions of transport: `delay` milliseconds each way; `mangle` may drop, repeat or hold back. */
export interface Weather {
  delay?: number;
  mangle?: (message: Message, deliver: (message: Message) => void) => void;
  binary?: boolean;
}

export class FakeKernel {
  version = 1;
  dirty = false;
  /** A kernel that runs a cell: requests wait until it is false again. */
  busy = false;
  seq = 0;
  /** The number of times that another model was shown. */
  shown = 0;
  model: FakeModel;
  weather: Weather;
  readonly #answers: FakeAnswers;
  #steps: Step[] = [];
  #position = 0;
  #listeners = new Set<(message: Message) => void>();
  #stateListeners = new Set<(state: "closed" | "doubt") => void>();
  #waiting: (() => void)[] = [];
  #stopped = new Set<number>();
  #binary = true;

  constructor(model: FakeModel, weather: Weather = {}) {
    this.model = model;
    this.#answers = new FakeAnswers(model);
    this.weather = weather;
  }

  get transport(): Transport {
    return {
      send: (content) => this.#travel({ content, buffers: [] }, (message) => this.#arrive(message.content)),
      onMessage: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
      onState: (listener) => {
        this.#stateListeners.add(listener);
        return () => this.#stateListeners.delete(listener);
      },
    };
  }

  /** Ends the channel, as a kernel that is shut down does. */
  die(): void {
    for (const listener of this.#stateListeners) listener("closed");
  }

  /** Shows another model, as a file that is opened does; where the event is lost, only snapshots tell. */
  showAnother(lost = false): void {
    this.shown++;
    this.seq++;
    if (!lost) this.#emit({ event: "opened", seq: this.seq, title: "other", former: "resnet34" });
  }

  setBusy(busy: boolean): void {
    this.busy = busy;
    if (!busy) for (const resume of this.#waiting.splice(0)) resume();
  }

  #travel(message: Message, deliver: (message: Message) => void): void {
    const send = (delivered: Message) => setTimeout(() => deliver(delivered), this.weather.delay ?? 0);
    if (this.weather.mangle) this.weather.mangle(message, send);
    else send(message);
  }

  #emit(content: Record<string, unknown>, buffers: DataView[] = []): void {
    const message = this.#binary && this.weather.binary !== false ? { content, buffers } : { content, buffers: [] };
    this.#travel(structuredClone(message), (delivered) => {
      for (const listener of [...this.#listeners]) listener(delivered);
    });
  }

  #arrive(content: Record<string, unknown>): void {
    if (this.busy) this.#waiting.push(() => this.#arrive(content));
    else void this.#answer(content.id as number, content.method as string, content.params as Params);
  }

  async #answer(id: number, method: string, params: Params): Promise<void> {
    try {
      const [result, buffers] = await this.#perform(id, method, params);
      const b64 = this.#binary ? undefined : buffers.map(toBase64);
      this.#emit({ id, result: result as object, b64 }, buffers);
    } catch (error) {
      const refusal = error as Refusal;
      this.#emit({
        id,
        error: { code: refusal.code ?? "internal", message: refusal.message, hint: refusal.hint, node: refusal.node },
      });
    }
  }

  async #perform(id: number, method: string, params: Params): Promise<[unknown, DataView[]]> {
    switch (method) {
      case "hello":
        return [
          { protocol: PROTOCOL, session: "fake", can: { run: true }, probe: 8, version: this.version },
          [new DataView(new ArrayBuffer(8))],
        ];
      case "probe":
        this.#binary = params.ok === true;
        return [{}, []];
      case "check": // nothing that its models are made of breaks a rule
        return [{}, []];
      case "snapshot":
        return this.#snapshot();
      case "inspect":
        return [this.#answers.inspect(params.node as number), []];
      case "doc":
        return [this.#answers.doc(params.node as number), []];
      case "value":
        return [this.#answers.value(params.value as number), []];
      case "edit":
        return [this.#edit(params as unknown as Methods["edit"][0]), []];
      case "undo":
        return [this.#walk(-1), []];
      case "redo":
        return [this.#walk(1), []];
      case "save":
        this.dirty = false;
        this.#emit({ event: "history", seq: ++this.seq, history: this.#history(), dirty: false });
        return [{ path: "/home/me/models/resnet34.onnx", bytes: 87_322_114 }, []];
      case "run":
        return [await this.#run(id, params.nodes as number[] | null), []];
      case "stop":
        this.#stopped.add(params.run as number);
        return [{ stopped: true }, []];
      default:
        throw refuse("unknown_method", `no method ${method}`);
    }
  }

  // ---------------------------------------------------------------------------------------------------- the model

  #snapshot(): [Snapshot, DataView[]] {
    const nodes = [...this.model.nodes.values()],
      values = [...this.model.values.values()];
    const ops = [...new Set(nodes.map((node) => node.op))];
    const columns: Partial<Record<Section, number[]>> = {
      node_id: nodes.map((node) => node.id),
      node_op: nodes.map((node) => ops.indexOf(node.op)),
      node_group: nodes.map((node) => node.group),
      node_scope: nodes.map((node) => node.scope),
      in_ptr: pointers(nodes.map((node) => node.inputs.length)),
      in_val: nodes.flatMap((node) => node.inputs),
      out_ptr: pointers(nodes.map((node) => node.outputs.length)),
      out_val: nodes.flatMap((node) => node.outputs),
      value_id: values.map((value) => value.id),
      value_flags: values.map((value) => value.flags),
      value_scope: values.map((value) => value.scope),
    };
    const sections = {} as Snapshot["sections"];
    const data: number[] = [];
    for (const [name, column] of Object.entries(columns)) {
      sections[name as Section] = [data.length, column.length];
      for (const number of column) data.push(number);
    }
    const snapshot: Snapshot = {
      version: this.version,
      seq: this.seq,
      title: "resnet34",
      path: "/home/me/models/resnet34.onnx",
      dirty: this.dirty,
      ops,
      categories: ops.map((op) => nodes.find((node) => node.op === op)!.category),
      n: nodes.length,
      m: values.length,
      names: nodes.map((node) => node.name),
      value_names: values.map((value) => value.name),
      labels: values.map((value) => value.label),
      groups: [...this.model.groups.values()],
      scopes: [...this.model.scopes.values()],
      diagnostics: this.model.diagnostics,
      history: this.#history(),
      shown: this.shown,
      former: this.shown ? "resnet34" : "",
      sections,
      opsets: { "": 17 },
    };
    return [snapshot, [new DataView(Int32Array.from(data).buffer)]];
  }

  #history(): History {
    const undo = this.#steps[this.#position - 1]?.label ?? null,
      redo = this.#steps[this.#position]?.label ?? null;
    return { undo, redo, length: this.#steps.length, position: this.#position };
  }

  /** Makes a step as if Python had made it. */
  edit(step: Step): { version: number } {
    this.#steps.splice(this.#position);
    this.#steps.push(step);
    this.#position++;
    return this.#commit(step.label, "edit", step.apply());
  }

  #walk(direction: 1 | -1): { version: number } {
    const step = this.#steps[direction < 0 ? this.#position - 1 : this.#position];
    if (!step) throw refuse("nothing", direction < 0 ? "there is nothing to undo" : "there is nothing to redo");
    this.#position += direction;
    return this.#commit(step.label, direction < 0 ? "undo" : "redo", direction < 0 ? step.revert() : step.apply());
  }

  #commit(label: string, kind: CommitEvent["kind"], touched: Touched): { version: number } {
    this.version++;
    this.dirty = true;
    const changed = this.model.infer();
    const event: CommitEvent = {
      event: "commit",
      seq: ++this.seq,
      version: this.version,
      label,
      kind,
      nodes: (touched.nodes ?? []).map((id) => record(this.model.nodes.get(id)!)),
      removed_nodes: touched.removed ?? [],
      values: (touched.values ?? []).map((id) => this.model.values.get(id)!),
      removed_values: [],
      facts: [changed, changed.map((id) => this.model.values.get(id)!.label), changed.map(() => "float32")],
      groups: null,
      scopes: null,
      diagnostics: this.model.diagnostics,
      history: this.#history(),
      dirty: true,
      origin: "fake",
    };
    this.#emit(event as unknown as Record<string, unknown>);
    return { version: this.version };
  }

  #edit({ edit, subject, parameters }: Methods["edit"][0]): { version: number } {
    const [id = 0] = subject,
      { name, value, bypass } = parameters;
    switch (edit) {
      case "set_attribute":
        return this.#setAttribute(id, name as string, (value as { value: AttributeValue }).value);
      case "clear_attribute":
        return this.#setAttribute(id, name as string, null);
      case "rename_node":
        return this.#rename("nodes", id, name as string);
      case "rename_value":
        return this.#rename("values", id, name as string);
      case "remove_nodes":
        return this.#remove(subject, bypass === true);
      default:
        throw refuse("unknown_method", `no edit ${edit}`);
    }
  }

  #setAttribute(id: number, key: string, value: AttributeValue): { version: number } {
    const node = this.#answers.node(id);
    const schema = SCHEMAS[node.op]?.find((attribute) => attribute.name === key);
    if (key === "group" && value === 0)
      throw refuse(
        "edit",
        "group is 0; it divides the channels, so it must be at least 1",
        "Use 1 for an ordinary convolution.",
      );
    const before = node.attributes.get(key);
    const put = (to: AttributeValue | undefined) => {
      if (to === undefined || to === null) node.attributes.delete(key);
      else node.attributes.set(key, to);
      return { nodes: [node.id] };
    };
    return this.edit({ label: `set ${schema?.name ?? key}`, apply: () => put(value), revert: () => put(before) });
  }

  #rename(kind: "nodes" | "values", id: number, name: string): { version: number } {
    const renamed = this.model[kind].get(id);
    if (!renamed) throw refuse("conflict", "it was removed in the meantime");
    if (kind === "values" && [...this.model.values.values()].some((other) => other.name === name)) {
      throw refuse("edit", `a value named “${name}” exists already`, "Choose another name.");
    }
    const before = renamed.name;
    const put = (to: string) => {
      renamed.name = to;
      return kind === "nodes" ? { nodes: [id] } : { values: [id] };
    };
    return this.edit({ label: `rename ${before}`, apply: () => put(name), revert: () => put(before) });
  }

  #remove(ids: number[], bypass: boolean): { version: number } {
    const removed = ids.map((id) => this.#answers.node(id));
    const order = new Map(this.model.nodes);
    const rewired = new Map<FakeNode, number[]>();
    const apply = () => {
      for (const node of removed) {
        for (const use of this.model.uses(node.outputs[0]!)) {
          rewired.set(use.node, rewired.get(use.node) ?? use.node.inputs);
          use.node.inputs = use.node.inputs.map((value) =>
            value === node.outputs[0] ? (bypass ? node.inputs[0]! : 0) : value,
          );
        }
        this.model.nodes.delete(node.id);
      }
      return {
        nodes: [...rewired.keys()].map((node) => node.id).filter((id) => this.model.nodes.has(id)),
        removed: ids,
      };
    };
    const revert = () => {
      for (const [node, inputs] of rewired) node.inputs = inputs;
      this.model.nodes = new Map(order);
      return { nodes: [...ids, ...[...rewired.keys()].map((node) => node.id)] };
    };
    return this.edit({
      label: removed.length === 1 ? `delete ${removed[0]!.name}` : `delete ${ids.length} nodes`,
      apply,
      revert,
    });
  }

  async #run(id: number, nodes: number[] | null): Promise<object> {
    const ids = nodes ?? [...this.model.nodes.keys()];
    const started = Date.now();
    for (const [done, node] of ids.entries()) {
      if (done % 4 === 0) {
        await new Promise((resolve) => setTimeout(resolve, 24));
        this.#emit({
          event: "progress",
          seq: ++this.seq,
          run: id,
          done,
          total: ids.length,
          node: this.model.nodes.get(node)?.name ?? "",
        });
      }
      if (this.#stopped.has(id)) throw refuse("stopped", "the run was stopped");
    }
    return { run: id, seconds: (Date.now() - started) / 1000, values: this.#answers.results(ids) };
  }
}

function record(node: FakeNode): NodeRecord {
  const { attributes: _, ...plain } = node;
  return plain;
}

function pointers(lengths: number[]): number[] {
  let at = 0;
  return [0, ...lengths.map((length) => (at += length))];
}

function toBase64(view: DataView): string {
  let text = "";
  for (let i = 0; i < view.byteLength; i++) text += String.fromCharCode(view.getUint8(i));
  return btoa(text);
}
