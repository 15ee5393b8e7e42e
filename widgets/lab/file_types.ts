/** Files that open in a tab: those that are ours by their ending, and those that may be models among much else. */

export const FACTORY = "ONNX model";

export interface FileType {
  name: string;
  displayName: string;
  extensions: string[];
}

export const TYPES: FileType[] = [
  { name: "onnxlab-onnx", displayName: "ONNX model", extensions: [".onnx"] },
  { name: "onnxlab-ort", displayName: "ORT model", extensions: [".ort"] },
  {
    name: "onnxlab-text",
    displayName: "ONNX model as text",
    extensions: [".textproto", ".pbtxt", ".txtpb", ".onnxtxt"],
  },
  { name: "onnxlab-safetensors", displayName: "Weights", extensions: [".safetensors"] },
];

/** Dumps of GE and graphs of Glow are texts with any ending: "Open With" offers them a tab. */
export const OFFERED = ["text", "json"];

export const EXTENSIONS = [...TYPES.flatMap(({ extensions }) => extensions), ".txt", ".json"];
