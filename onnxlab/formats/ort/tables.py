"""The tables of ONNX Runtime's FlatBuffers files: their fields in the order of their ids, and of which type each is.

A type is a scalar ("i64"), "string", the name of a table, or a vector of one of these ("[i64]", "[Node]"). Structs are
in `STRUCTS`. A field without a type is deprecated: its id stays reserved, and it is neither read nor written.
"""

from typing import Final

Fields = tuple[tuple[str, str], ...]


def _fields(text: str) -> Fields:
    pairs = (entry.partition(":") for entry in text.split())
    return tuple((name, kind) for name, _, kind in pairs)


TABLES: Final[dict[str, Fields]] = {
    name: _fields(text)
    for name, text in {
        # models
        "InferenceSession": "ort_version:string model:Model session_state: "
        "kernel_type_str_resolver:KernelTypeStrResolver",
        "Model": "ir_version:i64 opset_import:[OperatorSetId] producer_name:string producer_version:string "
        "domain:string model_version:i64 doc_string:string graph:Graph graph_doc_string:string "
        "metadata_props:[StringStringEntry]",
        "OperatorSetId": "domain:string version:i64",
        "StringStringEntry": "key:string value:string",
        "Graph": "initializers:[Tensor] node_args:[ValueInfo] nodes:[Node] max_node_index:u32 node_edges:[NodeEdge] "
        "inputs:[string] outputs:[string] sparse_initializers:[SparseTensor] "
        "runtime_optimizations:RuntimeOptimizations",
        "Node": "name:string doc_string:string domain:string since_version:i32 index:u32 op_type:string type:i32 "
        "execution_provider_type:string inputs:[string] outputs:[string] attributes:[Attribute] "
        "input_arg_counts:[i32] implicit_inputs:[string]",
        "NodeEdge": "node_index:u32 input_edges:[EdgeEnd] output_edges:[EdgeEnd]",
        "Attribute": "name:string doc_string:string type:i32 f:f32 i:i64 s:string t:Tensor g:Graph floats:[f32] "
        "ints:[i64] strings:[string] tensors:[Tensor] graphs:[Graph]",
        "Tensor": "name:string doc_string:string dims:[i64] data_type:i32 raw_data:[u8] string_data:[string] "
        "external_data_offset:i64",
        "SparseTensor": "values:Tensor indices:Tensor dims:[i64]",
        "ValueInfo": "name:string doc_string:string type:TypeInfo",
        "TypeInfo": "denotation:string value_type:u8 value:TypeInfoValue",
        "TensorTypeAndShape": "elem_type:i32 shape:Shape",
        "Shape": "dim:[Dimension]",
        "Dimension": "value:DimensionValue denotation:string",
        "DimensionValue": "dim_type:i8 dim_value:i64 dim_param:string",
        "MapType": "key_type:i32 value_type:TypeInfo",
        "SequenceType": "elem_type:TypeInfo",
        "KernelTypeStrResolver": "op_kernel_type_str_args:[OpIdKernelTypeStrArgsEntry]",
        "OpIdKernelTypeStrArgsEntry": "op_id:string kernel_type_str_args:[KernelTypeStrArgsEntry]",
        "KernelTypeStrArgsEntry": "kernel_type_str:string args:[ArgTypeAndIndex]",
        "ArgTypeAndIndex": "arg_type:i8 index:u32",
        "RuntimeOptimizations": "records:[RuntimeOptimizationRecordContainerEntry]",
        "RuntimeOptimizationRecordContainerEntry": "optimizer_name:string "
        "runtime_optimization_records:[RuntimeOptimizationRecord]",
        "RuntimeOptimizationRecord": "action_id:string nodes_to_optimize_indices:NodesToOptimizeIndices "
        "produced_nodes: produced_op_ids:[string]",
        "NodesToOptimizeIndices": "node_indices:[u32] num_inputs:u32 num_outputs:u32 has_variadic_input:bool "
        "has_variadic_output:bool num_variadic_inputs:u32 num_variadic_outputs:u32",
        # training checkpoints
        "Checkpoint": "version:i32 module_state:ModuleState optimizer_groups:[OptimizerGroup] property_bag:PropertyBag",
        "ModuleState": "requires_grad_params:[Tensor] frozen_params:[Tensor] is_nominal_state:bool "
        "has_external_data:bool",
        "OptimizerGroup": "group_name:string step:i64 initial_learning_rate:f32 "
        "optimizer_states:[ParameterOptimizerState]",
        "ParameterOptimizerState": "param_name:string momentums:[Tensor]",
        "PropertyBag": "ints:[IntProperty] floats:[FloatProperty] strings:[StringProperty]",
        "IntProperty": "name:string value:i64",
        "FloatProperty": "name:string value:f32",
        "StringProperty": "name:string value:string",
    }.items()
}

IDS: Final = {table: {name: (place, kind) for place, (name, kind) in enumerate(fields) if kind}
              for table, fields in TABLES.items()}  # fmt: skip
"""{table: {field: (its id, its type)}}."""

UNIONS: Final = {"TypeInfoValue": ("", "TensorTypeAndShape", "SequenceType", "MapType")}
"""{union: tables by the number in the field before it}."""

STRUCTS: Final = {"EdgeEnd": "<Iii"}
"""{struct: its layout, in the notation of `struct`}: node_index, src_arg_index, dst_arg_index."""

SCALARS: Final = {"i64": "<q", "i32": "<i", "u32": "<I", "i8": "<b", "u8": "<B", "f32": "<f", "bool": "<?"}

DEFAULTS: Final = {("Tensor", "external_data_offset"): -1}
"""Defaults of scalars, apart from 0."""
