"""The table of messages: those that users of onnx, onnxruntime and torch meet most."""

from onnxlab.analysis.messages.message import Message

_NODE = r"node name: (?P<node>[^)]*?)\)"
_STATUS = r"running (?P<op>\w+) node\. Name:'(?P<node>[^']*)'"
_CONTEXT = r"(?:\s*==> Context:.*?Name: (?P<node>.*?) OpType)?"
_ORT_NODE = r"In Node, \(\"(?P<node>[^\"]*)\", .{0,2000}?"

TABLE = (
    Message(
        "E01", "inputs of a node have different element types",
        (
            r"Optype \((?P<op>\w+)\) bound to different types \((?P<got>tensor\(\w+\)) and (?P<expected>tensor\(\w+\)) "
            r"in node \((?P<node>[^)]*)\)",
            r"\(op_type:(?P<op>\w+), " + _NODE + r": (?P<value>\w+) has inconsistent type (?P<got>tensor\(\w+\))",
        ),
        "{op} wants the same element type for these inputs, and {node} gets {got} beside {expected}. onnx's checker "
        "passes it without full_check=True.",
        "Cast the input of the wrong type, `model.value(name).insert_after(\"Cast\", to=onnx.TensorProto.FLOAT)`, or "
        "give the constant that it reads another type: exporters make an int64 constant of a Python number.",
        ("type-mismatch",),
    ),
    Message(
        "E02", "a shape that the model declares is not the one that follows",
        (
            r"(?:" + _NODE + r".{0,200}?)?Inferred (?:shape and existing shape differ in (?:dimension|rank)|elem type "
            r"differs)[^:]*: \((?P<got>[^)]*)\) vs \((?P<expected>[^)]*)\)",
        ),
        "The value behind {node} is declared with {expected} where {got} follows from its inputs. Either the "
        "declaration is old, from before an edit, or something upstream is not what it was meant to be. ONNX Runtime "
        "runs such a model.",
        "`model.explain(value)` tells why the size is what it is. If the declaration is old: "
        "`model.declarations(\"refresh\")`, or `onnxlab edit m.onnx -e 'model.declarations(\"refresh\")' -o new.onnx`.",
        ("declared-dim", "declared-rank", "declared-type"),
    ),
    Message(
        "E03", "shapes that cannot be broadcast",
        (
            r"(?:op_type:(?P<op>\w+), " + _NODE + r".{0,200}?)?Incompatible dimensions",
            _STATUS + r".{0,400}?Attempting to broadcast an axis by a dimension other than 1\. (?P<got>\d+) by "
            r"(?P<expected>\d+)",
        ),
        "Two inputs of {node} have sizes that differ in an axis where neither is 1.",
        "Look at both inputs: `onnxlab shapes m.onnx`. An Unsqueeze puts an axis where one is missing, a Transpose "
        "orders them; often an axis was lost by Squeeze, or Reshape has a size of another batch in it.",
        ("shape-mismatch",),
    ),
    Message(
        "E04", "no such operator in this opset version",
        (
            _ORT_NODE + r"No Op registered for (?P<op>\w+) with domain_version of (?P<version>\d+)",
            r"No Op registered for (?P<op>\w+) with domain_version of (?P<version>\d+)" + _CONTEXT,
        ),
        "{op} is no operator of this domain at version {version}: the name is misspelt, it came in a later version, or "
        "it belongs to another domain.",
        "{near}",
        ("unknown-operator", "unknown-to-onnx", "operator"),
    ),
    Message(
        "E05", "a custom operator that ONNX Runtime has no implementation of",
        (r"Fatal error: (?P<domain>[\w.]*):(?P<op>\w+)\(-?\d+\) is not a registered function/op",),
        "{domain}::{op} is neither an operator of ONNX Runtime, nor a function in the model.",
        "Register the library that has it: `options.register_custom_ops_library(path)`. Else write it out: "
        "put a function of that name into the model, or replace it by rules (`onnxlab rewrite`). onnxlab shows and "
        "edits the rest of the model meanwhile.",
        ("unknown-operator", "unknown-to-onnx"),
    ),
    Message(
        "E06", "the domain of an operator is not imported",
        (r"No opset import for domain '?(?P<domain>[\w.]*)'?" + _CONTEXT,),
        "{node} is of the domain {domain}, and the model does not say in which version.",
        "`model.opsets[\"{domain}\"] = 1`, or `onnxlab edit m.onnx -e 'model.opsets[\"{domain}\"] = 1' -o new.onnx`.",
        ("missing-opset",),
    ),
    Message(
        "E07", "an opset version that this ONNX Runtime does not know",
        (r"guarantees\*? support for models stamped with.{0,200}?Opset (?P<version>\d+) is under development",),
        "The model is of opset {version}, which came after this ONNX Runtime.",
        "Update onnxruntime, or convert the model down: `onnxlab edit m.onnx --opset 21 -o new.onnx` (which names the "
        "nodes that cannot be said in it), or export with a lower opset_version.",
        ("opset", "opset-newer", "runtime-opset"),
    ),
    Message(
        "E08", "an IR version that the tool does not know",
        (
            r"Unsupported model IR version: (?P<got>\d+), max supported IR version: (?P<expected>\d+)",
            r"Your model ir_version (?P<got>\d+) is higher than the checker's \((?P<expected>\d+)\)",
        ),
        "The file is of IR version {got}, and the tool reads up to {expected}. The onnx package writes its newest "
        "unless it is told another.",
        "Nothing but the number has to change for most models: `onnxlab edit m.onnx -e "
        "'model.set_field(\"ir_version\", {expected})' -o new.onnx`; or update the tool.",
        ("ir-version", "runtime-ir-version"),
    ),
    Message(
        "E09", "an operator that is no more in this opset version",
        (
            _ORT_NODE + r"Op registered for (?P<op>\w+) is deprecated in domain_version of (?P<version>\d+)",
            r"Op registered for (?P<op>\w+) is deprecated in domain_version of (?P<version>\d+)" + _CONTEXT,
        ),
        "{op} was replaced before opset {version}; {node} is of an older version than the model says.",
        "Take the operator that came for it (Upsample: Resize, Scatter: ScatterElements), or declare the version that "
        "the node was written for and convert: `model.opsets[\"\"] = 9; model.convert_opset({version})`.",
        ("deprecated",),
    ),
    Message(
        "E10", "an attribute that the operator does not have",
        (
            _ORT_NODE + r"Unrecognized attribute: (?P<attribute>\w+) for operator (?P<op>\w+)",
            r"Unrecognized attribute: (?P<attribute>\w+) for operator (?P<op>\w+)" + _CONTEXT,
        ),
        "{op} has no attribute {attribute} in this opset version: it is misspelt, or belongs to another version.",
        "{near}",
        ("attribute-unknown",),
    ),
    Message(
        "E11", "a node reads a value that nothing makes",
        (
            r"Node input '(?P<value>[^']*)' is not a graph input, initializer, or output of a previous node",
            r"must be topologically sorted, however input '(?P<value>[^']*)' of node:\s*name: (?P<node>.*?) OpType",
        ),
        "Nothing makes {value}, or the node that does comes later in the list; onnx's checker says the same of both, "
        "ONNX Runtime sorts nodes by itself.",
        "`onnxlab check m.onnx` says which of the two it is. Unsorted: `onnxlab edit m.onnx -e 'model.sort_nodes()' -o "
        "new.onnx`. Dangling: connect the input to what it should read, or declare {value} as an input.",
        ("undefined-value", "order"),
    ),
    Message(
        "E12", "two nodes make a value of one name",
        (
            r"Duplicate definition of name \((?P<value>[^)]*)\)",
            r"single static assignment \(SSA\) form, however '(?P<value>[^']*)' has been used",
        ),
        "A name stands for one value in a graph, and {value} is made twice: models were joined without a prefix, or a "
        "node was copied with its outputs.",
        "Rename one of them, and what reads it. Models are joined without clashes by `model.insert(other, "
        "prefix=\"b/\")`.",
        ("single-assignment",),
    ),
    Message(
        "E13", "the arrays that are given do not fit the inputs",
        (
            r"Invalid rank for input: (?P<value>\S+) Got: (?P<got>\d+) Expected: (?P<expected>\d+)",
            r"Got invalid dimensions for input: (?P<value>\S+) for the following indices.{0,40}?Got: (?P<got>\d+) "
            r"Expected: (?P<expected>\d+)",
            r"Unexpected input data type\. Actual: \((?P<got>.+?)\) ?, expected: \((?P<expected>.+?)\)(?: |$)",
            r"Required inputs \((?P<expected>\[[^\]]*\])\) are missing from input feed \((?P<got>\[[^\]]*\])\)",
            r"Invalid (?:output|input|feed input) name: ?(?P<value>\S+)",
        ),
        "The model takes {expected}, and was given {got}.",
        "`onnxlab info m.onnx` lists inputs with names, element types and shapes. NumPy makes float64 where nothing is "
        "said: `array.astype(np.float32)`. A missing batch axis: `array[None]`. A fixed size that should be free: "
        "`onnxlab edit m.onnx --dim 'input[0]=batch' -o new.onnx`.",
    ),
    Message(
        "E14", "channels of a convolution do not fit its weights",
        (
            r"(?:" + _STATUS + r".{0,400}?)?Input channels C is not equal to kernel channels \* group\. "
            r"C: (?P<got>\d+) kernel channels: (?P<expected>\d+)",
        ),
        "{node} gets {got} channels, and its weights are for {expected} for each group. ONNX Runtime says it only when "
        "it runs, and may call the node by an output of its own.",
        "Images come as NCHW: `array.transpose(0, 3, 1, 2)` from NHWC. In the model: look at what makes the first "
        "input (`model.explain`), and at `group`.",
        ("channel-mismatch",),
    ),
    Message(
        "E15", "a Reshape to another number of elements",
        (
            r"(?:" + _STATUS + r".{0,600}?)?input tensor cannot be reshaped to the requested shape\. Input "
            r"shape: ?(?P<got>\{[^}]*\}), requested shape: ?(?P<expected>\{[^}]*\})",
        ),
        "{node} gets {got} and shall make {expected}, which has another number of elements: often a batch size was "
        "written into the target when the model was exported.",
        "Let the size that varies be -1 in the target, or 0, which takes it from the input; export with dynamic axes.",
        ("element-count",),
    ),
    Message(
        "E16", "an element type that the operator does not take",
        (
            r"Type '(?P<got>[\w()]+)' of input parameter \((?P<value>[^)]*)\) of operator \((?P<op>\w+)\) in node "
            r"\((?P<node>[^)]*)\) is invalid",
            r"\(op_type:(?P<op>\w+), " + _NODE + r": (?P<value>\w+) typestr: \w+, has unsupported type: "
            r"(?P<got>[\w()]+)",
        ),
        "{op} takes no {got} in the opset version of the model.",
        "{near}",
        ("type-mismatch",),
    ),
    Message(
        "E17", "no implementation for this operator and type in ONNX Runtime",
        (r"Could not find an implementation for (?P<op>\w+)\((?P<version>\d+)\) node with name '(?P<node>[^']*)'",),
        "The model is valid, but this build of ONNX Runtime has no kernel for {op} of version {version} with the types "
        "at {node}: 8- and 16-bit types are often missing.",
        "Cast around the node, or convert to another opset. Quantized models: take QDQ format instead of integer "
        "operators, unsigned weights, or leave the node out of quantization. A reduced build: `onnxlab check m.onnx "
        "--build required_operators.config`. onnxlab runs it: `model.run(...)`.",
    ),
    Message(
        "E18", "an output without a declared shape",
        (r"Field '(?:shape|type|elem_type)' of '\w+' is required but missing",),
        "onnx's checker wants a type and shape declared for every input and output, and stops here, whatever else "
        "there is. ONNX Runtime runs the model.",
        "Write what follows into the declarations: `onnxlab edit m.onnx -e 'model.declarations(\"refresh\")' -o "
        "new.onnx`.",
        ("value-type",),
    ),
    Message(
        "E19", "a model of 2 GiB or more",
        (
            r"Failed to serialize proto",
            r"exceed(?:s|ed) maximum protobuf size of 2GB",
            r"proto size is larger than the 2 GB limit",
            r"model is larger than 2GB",
        ),
        "protobuf cannot write a message of 2 GiB or more: the weights have to be in files beside the model. Saving, "
        "checking and shape inference of the onnx package all serialize, and all fail.",
        "`onnxlab.save(proto, path)` and `model.save(path)` put weights beside the model when they must. With the onnx "
        "package: `onnx.save(..., save_as_external_data=True)`, and check and infer by path.",
    ),
    Message(
        "E20", "the file is no ONNX model, or cut off",
        (
            r"Error parsing message(?: with type 'onnx.ModelProto')?",
            r"Wire format was corrupt",
            r"protobuf parsing failed",
        ),
        "The bytes are no protobuf message of a model. The text is the same for a file that was cut off, a git-lfs "
        "pointer, a web page, a zip archive, or a model of another tool.",
        "`onnxlab info m.onnx` says which of these it is, and what to do: `git lfs pull`, download it again, or "
        "convert.",
    ),
    Message(
        "E21", "the file with the weights is missing",
        (
            r"Data of TensorProto \( ?tensor name: (?P<value>[^)]*?)\) should be stored in (?P<file>\S+),? but it",
            r"External data path (?P<file>\S+ )?does not exist",
            r"External data path.{0,20}?does not exist: (?P<file>\S+)",
            r"model_path must not be empty.{0,80}?external",
            r"(?P<file>\S{1,300})\" not under model directory",
            r"External data path .{0,300}? (?:escapes|outside|not found)",
        ),
        "The weights of {value} are in {file}, beside the model, and that is not there: the model was moved or "
        "downloaded without it, or loaded from bytes.",
        "Put the file beside the model under the name that the model says; load by path. One file instead: "
        "`model.save(\"one.onnx\", external_data=False)`. onnxlab opens the structure without the weights.",
        ("external-data",),
    ),
    Message(
        "E22", "an operator that an older opset does not have",
        (r"adapt: Assertion .?false.? failed: No Previous Version of (?P<op>\w+) exists",),
        "onnx's version converter cannot say {op} in the older opset: the operator came later.",
        "`onnxlab edit m.onnx --opset N -o new.onnx` writes such operators out by their definitions where they have "
        "any, and names the nodes that block the way otherwise.",
    ),
    Message(
        "E23", "results differ from those of the framework",
        (r"Mismatched elements: (?P<got>\d+ / \d+)", r"Max (?:absolute|relative) difference"),
        "Some elements differ by more than the tolerance. A few of millions with a large relative difference are "
        "numbers near zero; many are another computation: training mode, another preprocessing, a folded constant, "
        "or a range that float16 has not.",
        "`onnxlab compare a.onnx b.onnx` says where two models diverge first, and by how much in roundings; against "
        "another framework, give a folder of .npy files named by values. `model.eval()` before the export.",
    ),
    Message(
        "E24", "the exporter cannot express an operator",
        (r"Exporting the operator '?(?P<op>[\w:]+)'? to ONNX opset version (?P<version>\d+) is not supported",),
        "It is torch.onnx that stops: it has no translation of {op} for opset {version}. There is no model yet.",
        "Export with a higher opset_version, with `dynamo=True`, or replace {op} in the module by what the exporter "
        "knows; or register a translation (`torch.onnx.register_custom_op_symbolic`).",
    ),
    Message(
        "E25", "two nodes with one name",
        (r"two nodes with same node name \((?P<node>[^)]*)\)",),
        "ONNX Runtime wants a name of its own for each node of a graph, or none; {node} is there more than once. "
        "onnx's checker passes it.",
        "Rename one of them: `model.nodes[position].name = \"other\"`, by its position in `model.nodes`; or `onnxlab "
        "edit m.onnx -e 'model.nodes[position].name = \"\"' -o new.onnx`.",
        ("node-name",),
    ),
    Message(
        "E26", "an input that a node must have is left out",
        (
            _ORT_NODE + r"Error Node \([^)]*\)'s input (?P<got>\d+) is marked single but has an empty string",
            r"Error Node \((?P<node>[^)]*)\)'s input (?P<got>\d+) is marked single but has an empty string",
            r"Node \((?P<node>[^)]*)\)'s input (?P<got>\d+) is marked single but has an empty string",
        ),
        "The name of input {got} of {node} is empty, which leaves an input out; the operator needs this one. Often a "
        "conversion to another opset left out what was optional there.",
        "Let the node read a value: `model.nodes[name].set_input(slot, value)`.",
        ("arity",),
    ),
)  # fmt: skip
