/** Answers of the fake kernel to questions about its model: nodes, values, documentation, made-up statistics. */

import {
  type AttributeInfo,
  type AttributeType,
  type Endpoint,
  INITIALIZER,
  type NodeInfo,
  type Statistics,
  type ValueInfo,
} from "../src/kernel/protocol.ts";
import { type FakeModel, type FakeNode, SCHEMAS } from "./fake_model.ts";

export interface Refusal {
  code: string;
  message: string;
  hint?: string;
  node?: number;
}

export function refuse(code: string, message: string, hint?: string, node?: number): Refusal & Error {
  return Object.assign(new Error(message), { code, hint, node });
}

export class FakeAnswers {
  readonly #model: FakeModel;

  constructor(model: FakeModel) {
    this.#model = model;
  }

  node(id: number): FakeNode {
    const node = this.#model.nodes.get(id);
    if (!node) throw refuse("conflict", `node ${id} is not in the model any more`);
    return node;
  }

  #end(node: FakeNode): Endpoint {
    return { id: node.id, label: node.name || `${node.op}_${node.id}`, op: node.op };
  }

  inspect(id: number): NodeInfo {
    const node = this.node(id);
    const value = (valueAt: number) => this.#model.values.get(valueAt);
    const formals: Record<string, string[]> = {
      Conv: ["X", "W", "B"],
      BatchNormalization: ["X", "scale", "B"],
      Gemm: ["A", "B", "C"],
      Add: ["A", "B"],
    };
    return {
      id,
      name: node.name,
      label: this.#end(node).label,
      op_type: node.op,
      domain: "",
      since_version: 11,
      path: node.name,
      summary: SUMMARIES[node.op] ?? "",
      attributes: (SCHEMAS[node.op] ?? []).map((schema) => attributeInfo(node, schema)),
      inputs: node.inputs.map((input, slot) => {
        const producer = this.#model.producer(input);
        return {
          slot,
          formal: formals[node.op]?.[slot] ?? "X",
          value: input,
          name: value(input)?.name ?? "",
          label: value(input)?.label ?? "",
          initializer: ((value(input)?.flags ?? 0) & INITIALIZER) !== 0,
          producer: producer ? this.#end(producer) : null,
        };
      }),
      outputs: node.outputs.map((output, slot) => ({
        slot,
        formal: "Y",
        value: output,
        name: value(output)?.name ?? "",
        label: value(output)?.label ?? "",
        uses: this.#model.uses(output).map((use) => ({ ...this.#end(use.node), slot: use.slot })),
      })),
      bodies: [...this.#model.scopes.values()]
        .filter((scope) => scope.owner === id)
        .map((scope) => ({ attribute: scope.attribute, scope: scope.id })),
      metadata: node.op === "Conv" ? { "pkg.torch.onnx.stack_trace": 'File "resnet.py", line 92, in forward' } : {},
      doc_string: "",
      notes: {},
      diagnostics: this.#model.diagnostics.filter((diagnostic) => diagnostic.node === id),
    };
  }

  doc(id: number): object {
    const node = this.node(id);
    const text =
      `${SUMMARIES[node.op] ?? node.op}\n\nMathematical formulation:\n  Y = W * X + B\n\n<b>This is text</b>, and ` +
      "so is **this**.\n\nInputs\n  X  Input data tensor from previous layer; has size (N x C x H x W).\n  W  The weight tensor.";
    return { title: node.op, text, since_version: 11, deprecated: false };
  }

  value(id: number): ValueInfo {
    const value = this.#model.values.get(id);
    if (!value) throw refuse("conflict", `value ${id} is not in the model any more`);
    const producer = this.#model.producer(id);
    const stored = (value.flags & INITIALIZER) !== 0;
    return {
      id,
      name: value.name,
      label: `float32[${value.shape?.join(",") ?? "?"}]`,
      kind: stored ? "initializer" : "value",
      producer: producer ? this.#end(producer) : null,
      notes: {},
      uses: this.#model.uses(id).map((use) => ({ ...this.#end(use.node), slot: use.slot })),
      initializer: stored
        ? {
            dtype: "float32",
            shape: value.shape ?? [],
            preview: "[[-0.0132, 0.0247, 0.0089, …],\n [0.0311, -0.0274, 0.0018, …],\n …]",
          }
        : null,
      statistics: stored ? statistics(id, value.name, value.shape, id) : null,
    };
  }

  /** Statistics of the outputs of nodes. */
  results(nodes: readonly number[]): Statistics[] {
    return nodes
      .flatMap((node) => this.#model.nodes.get(node)?.outputs ?? [])
      .flatMap((value) => {
        const record = this.#model.values.get(value);
        return record ? [statistics(value, record.name, record.shape, value)] : [];
      });
  }
}

function attributeInfo(node: FakeNode, schema: (typeof SCHEMAS)[string][number]): AttributeInfo {
  const set = node.attributes.has(schema.name);
  return {
    name: schema.name,
    type: schema.type as AttributeType,
    value: set ? (node.attributes.get(schema.name) ?? null) : schema.default,
    set,
    required: schema.required ?? false,
    default: schema.default,
    doc: schema.doc,
    choices: schema.choices ?? null,
    editable: schema.type !== "tensor",
    reference: null,
  };
}

const SUMMARIES: Record<string, string> = {
  Conv: "The convolution operator consumes an input tensor and a filter, and computes the output.",
  BatchNormalization: "Carries out batch normalization as described in the paper https://arxiv.org/abs/1502.03167.",
  Relu: "Relu takes one input data (Tensor<T>) and produces one output data (Tensor<T>) where the rectified linear function, y = max(0, x), is applied to the tensor elementwise.",
  Add: "Performs element-wise binary addition (with Numpy-style broadcasting support).",
  If: "If conditional.",
};

/** Bell-shaped, rectified or with NaNs, depending on the seed. */
function statistics(id: number, name: string, shape: number[] | null, seed: number): Statistics {
  const count = shape?.reduce((a, b) => a * b, 1) ?? 1;
  const broken = seed % 41 === 0;
  const width = 3 + (seed % 5),
    center = 10 + (seed % 11);
  const counts = Array.from({ length: 32 }, (_, i) =>
    Math.round((count / 8) * Math.exp(-(((i - center) / width) ** 2))),
  );
  return {
    id,
    name,
    dtype: "float32",
    shape,
    count,
    min: broken ? "-inf" : -1.27 - (seed % 7) / 3,
    max: broken ? "nan" : 2.51 + (seed % 13),
    mean: 0.0312 * (seed % 5),
    std: 0.98,
    nan: broken ? 1204 : 0,
    inf: broken ? 3 : 0,
    zeros: seed % 3 === 0 ? Math.round(count * 0.43) : 0,
    histogram: { counts, low: -1.27 - (seed % 7) / 3, high: 2.51 + (seed % 13) },
  };
}
