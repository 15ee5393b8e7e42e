"""Protos to Python values and back: attributes, tensors, external data. Works on messages alone.

Files:
    attributes       AttributeProto to Python value and back, typed by the operator's schema.
    external_data    Tensor data that lies in files beside the model: where it may lie, and reading it.
    ge_dump          Graphs of MindSpore's and Ascend's graph engine (GE), written as ONNX messages:
                     `ge_onnx_*.pbtxt`.
    glow_dialect     Glow's dialect of ONNX: content without a field in ONNX is in doc strings, attributes and
                     metadata.
    lazy_tensor      A stored tensor that is read where it is touched: shape and type at once, elements when they are
                     asked for.
    long_lists       Long lists in attributes as arrays: a forest has ten million entries, which as Python objects
                     take gigabytes.
    name_bytes       Writing names that need not be UTF-8: files have them, protobuf reads them as bytes and does not
                     take them back.
    nesting          The message for models that protobuf cannot read: those made in memory may be nested too deep for
                     it.
    renaming         Copies of nodes under other names: what it takes to put them into another graph. Works on
                     messages alone.
    repeated_fields  Messages in the repeated fields of others.
    tensors          TensorProto and SparseTensorProto to read-only NumPy arrays, and back.
    value_info       ValueInfoProtos from what people write: a dtype and a shape. Works on messages alone.
    wire_format      Serialized messages, read where they stand: what inference asks of every node, without a message
                     object for each.
"""
