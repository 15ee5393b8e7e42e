/** Short forms of the model's names, for boxes. The full names are in the tooltip and the inspector. */

/** "Conv" of "com.microsoft::Conv". */
export function opTitle(op: string): string {
  const domain = op.lastIndexOf("::");
  return domain < 0 ? op : op.slice(domain + 2);
}

/** Last step of a path with slashes: "MatMul_1" of "/encoder/layer.0/MatMul_1". */
export function lastStep(name: string): string {
  const trimmed = name.replace(/\/+$/, "");
  return trimmed.slice(trimmed.lastIndexOf("/") + 1);
}

/** A step that says no more than the operator: "Conv", "Conv_6". */
function repeats(step: string, op: string): boolean {
  return step === op || (step.startsWith(op) && /^_\d+$/.test(step.slice(op.length)));
}

/**
 * The text of a node's box under its operator: nothing where the name only repeats it. A node that is all of its scope is
 * called after it, "conv_in" of "/conv_in/Conv"; `around`: the name of the group that it stands in; `calls`: the functions
 * that it is made of.
 */
export function nodeSubtitle(name: string, op: string, around = "", calls = ""): string {
  const step = lastStep(name),
    title = opTitle(op);
  if (!repeats(step, title)) return step;
  const scope = name.includes("/") ? lastStep(name.slice(0, name.lastIndexOf("/"))) : "";
  if (scope && scope !== lastStep(around)) return scope;
  return calls || (step === title ? "" : step);
}

/** A name that stands beside its operator, without a last step that only repeats it: "/stem/bn" of "/stem/bn/Relu". */
export function withoutOperator(name: string, op: string): string {
  const step = lastStep(name);
  const rest = name.slice(0, Math.max(0, name.lastIndexOf("/")));
  return rest && repeats(step, opTitle(op)) ? rest : name;
}

/** "weight" of "layer1.0.conv1.weight"; "" for names that exporters count up, such as "onnx::Conv_193" or "1045". */
export function parameterName(name: string): string {
  const step = lastStep(name);
  if (step.includes("::") || /^[\d_]*$/.test(step)) return "";
  const part = step.slice(step.lastIndexOf(".") + 1);
  const short = part.length > 12 ? part.slice(part.lastIndexOf("_") + 1) : part;
  return /^\d*$/.test(short) || short.length > 16 ? "" : short;
}

/** The name of a group without its parent's: "attention" of "encoder/attention" in "encoder". */
export function relativeName(name: string, parent: string): string {
  if (!parent || !name.startsWith(parent)) return name;
  const rest = name.slice(parent.length).replace(/^[/.]+/, "");
  return /[^\d._]/.test(rest) ? rest : name;
}
