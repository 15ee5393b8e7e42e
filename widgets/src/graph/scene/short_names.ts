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

/** What a node's box says under its operator: nothing where the name only repeats it. */
export function nodeSubtitle(name: string, op: string): string {
  const step = lastStep(name);
  return step === opTitle(op) ? "" : step;
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
  return rest || name;
}
