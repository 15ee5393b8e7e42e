/** A synthetic convolutional network with live shapes, edits and undo: what the fake kernel serves. */

import {
  type AttributeType,
  type AttributeValue,
  type Diagnostic,
  FORMAL,
  GRAPH_INPUT,
  GRAPH_OUTPUT,
  type GroupRecord,
  INITIALIZER,
  type NodeRecord,
  type ScopeRecord,
  type ValueRecord,
} from "../src/kernel/protocol.ts";

export interface FakeNode extends NodeRecord {
  attributes: Map<string, AttributeValue>;
}

export interface FakeValue extends ValueRecord {
  shape: number[] | null;
}

export interface FakeAttribute {
  name: string;
  type: AttributeType;
  default: AttributeValue;
  required?: boolean;
  choices?: string[];
  doc: string;
}

const KERNEL_DOC = "The shape of the convolution kernel. If not present, should be inferred from input W.";
export const SCHEMAS: Record<string, FakeAttribute[]> = {
  Conv: [
    {
      name: "auto_pad",
      type: "string",
      default: "NOTSET",
      choices: ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"],
      doc: "How padding is found.",
    },
    { name: "dilations", type: "ints", default: null, doc: "Dilation along each spatial axis." },
    {
      name: "group",
      type: "int",
      default: 1,
      doc: "Number of groups input channels and output channels are divided into.",
    },
    { name: "kernel_shape", type: "ints", default: null, doc: KERNEL_DOC },
    { name: "pads", type: "ints", default: null, doc: "Padding for the beginning and ending along each spatial axis." },
    { name: "strides", type: "ints", default: null, doc: "Stride along each spatial axis." },
  ],
  BatchNormalization: [
    { name: "epsilon", type: "float", default: 1e-5, doc: "The epsilon value to use to avoid division by zero." },
    { name: "momentum", type: "float", default: 0.9, doc: "Factor used in computing the running mean and variance." },
    { name: "training_mode", type: "int", default: 0, doc: "If set to true, outputs 1, 2, 3, 4 would be populated." },
  ],
  Gemm: [
    { name: "alpha", type: "float", default: 1, doc: "Scalar multiplier for A * B." },
    { name: "transB", type: "int", default: 0, doc: "Whether B should be transposed." },
  ],
  Softmax: [{ name: "axis", type: "int", default: -1, doc: "The dimension Softmax is performed on." }],
  Flatten: [
    { name: "axis", type: "int", default: 1, doc: "Axes up to this one are flattened to the outer dimension." },
  ],
  Constant: [{ name: "value", type: "tensor", default: null, doc: "The value for the elements of the output tensor." }],
};

const CATEGORIES: Record<string, string> = {
  Conv: "convolution",
  Gemm: "matrix",
  BatchNormalization: "normalization",
  Relu: "activation",
  Softmax: "activation",
  MaxPool: "pooling",
  GlobalAveragePool: "pooling",
  Add: "elementwise",
  Flatten: "shape",
  Constant: "constant",
  If: "control",
  Mul: "elementwise",
};

/** Sizes: stages of residual blocks; `hostile` gives names that are markup. */
export interface FakeOptions {
  blocks?: number[];
  hostile?: boolean;
  control?: boolean;
}

export class FakeModel {
  nodes = new Map<number, FakeNode>();
  values = new Map<number, FakeValue>();
  groups = new Map<number, GroupRecord>();
  scopes = new Map<number, ScopeRecord>();
  diagnostics: Diagnostic[] = [];
  #next = 1;
  #main: ScopeRecord;

  constructor({ blocks = [3, 4, 6, 3], hostile = false, control = true }: FakeOptions = {}) {
    this.#main = { id: this.#next++, kind: "graph", owner: 0, attribute: "", name: "main", inputs: [], outputs: [] };
    this.scopes.set(this.#main.id, this.#main);
    const input = this.value(hostile ? "<img src=x onerror=alert(1)>" : "input", GRAPH_INPUT, [1, 3, 224, 224]);
    this.#main.inputs.push(input.id);
    let x = this.#stem(input.id);
    blocks.forEach((count, stage) => {
      for (let block = 0; block < count; block++) x = this.#block(x, stage, block);
    });
    x = this.#head(x, hostile, control);
    this.values.get(x)!.flags |= GRAPH_OUTPUT;
    this.#main.outputs.push(x);
    this.infer();
  }

  value(name: string, flags = 0, shape: number[] | null = null, scope = this.#main.id): FakeValue {
    const value = { id: this.#next++, name, label: shape?.join("×") ?? "", flags, scope, shape };
    this.values.set(value.id, value);
    return value;
  }

  node(
    op: string,
    name: string,
    inputs: number[],
    group = 0,
    attributes: [string, AttributeValue][] = [],
    scope = this.#main.id,
  ): number {
    const id = this.#next++;
    const output = this.value(`${name || op}_output_0`, 0, null, scope);
    const node = {
      id,
      name,
      op,
      category: CATEGORIES[op] ?? "custom",
      group,
      scope,
      inputs,
      outputs: [output.id],
      attributes: new Map(attributes),
    };
    this.nodes.set(id, node);
    return output.id;
  }

  #group(name: string, parent = 0): number {
    const id = this.#next++;
    this.groups.set(id, { id, parent, name, kind: "scope", scope: this.#main.id });
    return id;
  }

  #convolution(x: number, name: string, channels: number, kernel: number, stride: number, group: number): number {
    const from = this.values.get(x)!.shape?.[1] ?? 64;
    const weight = this.value(`${name}.weight`, INITIALIZER, [channels, from, kernel, kernel]).id;
    const pad = (kernel - 1) / 2;
    const output = this.node("Conv", name, [x, weight], group, [
      ["kernel_shape", [kernel, kernel]],
      ["pads", [pad, pad, pad, pad]],
      ["strides", [stride, stride]],
    ]);
    this.values.get(output)!.shape = [1, channels, 0, 0];
    const bn = name.replace(/conv/, "bn");
    const scale = this.value(`${bn}.scale`, INITIALIZER, [channels]).id,
      bias = this.value(`${bn}.bias`, INITIALIZER, [channels]).id;
    const normal = this.node("BatchNormalization", bn, [output, scale, bias], group, [["epsilon", Math.fround(1e-5)]]);
    this.values.get(normal)!.shape = [1, channels, 0, 0];
    return normal;
  }

  #stem(x: number): number {
    const group = this.#group("stem");
    const normal = this.#convolution(x, "/stem/conv1", 64, 7, 2, group);
    const relu = this.node("Relu", "/stem/relu", [normal], group);
    this.values.get(relu)!.shape = [1, 64, 0, 0];
    const pool = this.node("MaxPool", "/stem/maxpool", [relu], group);
    this.values.get(pool)!.shape = [1, 64, 0, 0];
    return pool;
  }

  #stages = new Map<number, number>();

  #block(x: number, stage: number, block: number): number {
    const channels = 64 * 2 ** stage;
    if (!this.#stages.has(stage)) this.#stages.set(stage, this.#group(`layer${stage + 1}`));
    const group = this.#group(`block${block}`, this.#stages.get(stage));
    const base = `/layer${stage + 1}/block${block}`;
    const stride = block === 0 && stage > 0 ? 2 : 1;
    let y = this.#convolution(x, `${base}/conv1`, channels, 3, stride, group);
    y = this.node("Relu", `${base}/relu1`, [y], group);
    this.values.get(y)!.shape = [1, channels, 0, 0];
    y = this.#convolution(y, `${base}/conv2`, channels, 3, 1, group);
    const side = stride === 2 ? this.#convolution(x, `${base}/downsample/conv`, channels, 1, 2, group) : x;
    y = this.node("Add", `${base}/add`, [y, side], group);
    y = this.node("Relu", "", [y], group);
    this.values.get(y)!.shape = [1, channels, 0, 0];
    return y;
  }

  #head(x: number, hostile: boolean, control: boolean): number {
    const channels = this.values.get(x)!.shape?.[1] ?? 512;
    let y = this.node("GlobalAveragePool", hostile ? "</script><b>bold</b>" : "/pool", [x]);
    y = this.node("Flatten", "/flatten", [y]);
    const weight = this.value("fc.weight", INITIALIZER, [1000, channels]).id,
      bias = this.value("fc.bias", INITIALIZER, [1000]).id;
    y = this.node("Gemm", "/fc", [y, weight, bias], 0, [["transB", 1]]);
    if (control) y = this.#control(y);
    return this.node("Softmax", hostile ? "javascript:alert(1)" : "/softmax", [y], 0, [["axis", 1]]);
  }

  /** An If with two bodies that capture the outer value. */
  #control(x: number): number {
    const tensor = { dtype: "bool", shape: [], preview: "True" };
    const condition = this.node("Constant", "training", [], 0, [["value", tensor]]);
    const out = this.node("If", "maybe_scale", [condition]);
    const owner = this.values.get(out)!.id - 1;
    for (const attribute of ["then_branch", "else_branch"]) {
      const scope: ScopeRecord = {
        id: this.#next++,
        kind: "subgraph",
        owner,
        attribute,
        name: attribute,
        inputs: [],
        outputs: [],
      };
      this.scopes.set(scope.id, scope);
      const factor = this.value(`${attribute}.factor`, INITIALIZER, [1], scope.id).id;
      const y = this.node("Mul", `${attribute}/mul`, [x, factor], 0, [], scope.id);
      this.values.get(y)!.flags |= FORMAL;
      scope.outputs.push(y);
    }
    return out;
  }

  producer(value: number): FakeNode | undefined {
    for (const node of this.nodes.values()) if (node.outputs.includes(value)) return node;
    return undefined;
  }

  uses(value: number): { node: FakeNode; slot: number }[] {
    return [...this.nodes.values()].flatMap((node) =>
      node.inputs.flatMap((id, slot) => (id === value ? [{ node, slot }] : [])),
    );
  }

  /** Recomputes every shape; returns the values whose label changed. */
  infer(): number[] {
    this.diagnostics = [];
    const changed: number[] = [];
    for (const node of this.nodes.values()) {
      const shape = this.#shape(node);
      for (const id of node.outputs) {
        const value = this.values.get(id)!;
        const label = shape?.join("×") ?? "";
        value.shape = shape;
        if (value.label !== label) changed.push(id);
        value.label = label;
      }
    }
    return changed;
  }

  #shape(node: FakeNode): number[] | null {
    const x = this.values.get(node.inputs[0] ?? 0)?.shape ?? null;
    switch (node.op) {
      case "Conv":
        return this.#convolutionShape(node, x);
      case "MaxPool":
        return x && [x[0]!, x[1]!, Math.ceil(x[2]! / 2), Math.ceil(x[3]! / 2)];
      case "GlobalAveragePool":
        return x && [x[0]!, x[1]!, 1, 1];
      case "Flatten":
        return x && [x[0]!, x.slice(1).reduce((a, b) => a * b, 1)];
      case "Gemm":
        return x && [x[0]!, 1000];
      case "Constant":
        return [];
      case "If":
        return (
          this.values.get([...this.scopes.values()].find((scope) => scope.owner === node.id)?.outputs[0] ?? 0)
            ?.shape ?? [1, 1000]
        );
      case "Add":
        return this.#addShape(node, x);
      default:
        return x;
    }
  }

  #convolutionShape(node: FakeNode, x: number[] | null): number[] | null {
    const weight = this.values.get(node.inputs[1]!)?.shape;
    const strides = (node.attributes.get("strides") as number[] | undefined) ?? [1, 1];
    const pads = (node.attributes.get("pads") as number[] | undefined) ?? [0, 0, 0, 0];
    if (strides.length !== 2) {
      this.#problem(
        node,
        `strides has ${strides.length} items for 2 spatial axes`,
        "2 items",
        `[${strides.join(", ")}]`,
        "Give one stride per spatial axis.",
      );
      return null;
    }
    if (!x || !weight) return null;
    const out = [0, 1].map(
      (axis) => Math.floor((x[2 + axis]! + pads[axis]! + pads[axis + 2]! - weight[2 + axis]!) / strides[axis]!) + 1,
    );
    return [x[0]!, weight[0]!, ...out];
  }

  #addShape(node: FakeNode, x: number[] | null): number[] | null {
    const y = this.values.get(node.inputs[1]!)?.shape ?? null;
    if (x && y && x.join() !== y.join()) {
      this.#problem(
        node,
        "the inputs cannot be broadcast together",
        x.join("×"),
        y.join("×"),
        "Give both branches the same strides.",
      );
      return null;
    }
    return x;
  }

  #problem(node: FakeNode, message: string, expected: string, actual: string, hint: string): void {
    this.diagnostics.push({
      severity: "error",
      code: "shape",
      message: `${node.op}: ${message}`,
      node: node.id,
      value: 0,
      expected,
      found: actual,
      hint,
    });
  }
}
