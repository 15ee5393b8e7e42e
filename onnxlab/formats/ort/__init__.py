"""ONNX Runtime's own formats on FlatBuffers: models (.ort), training checkpoints, and lists of required operators.

Files:
    checkpoint             Checkpoints of ONNX Runtime's training on a device: parameters, state of optimizers and
                           properties in one file.
    decoding               Models in ORT format to ModelProto: nodes sorted, opset imports back to what is used, the
                           rest kept beside it.
    encoding               ModelProto to ORT format: a prepared model, whose values all have types, as tables.
    operators              Operators in ORT format: their version, the inputs of formal ones, the types that choose a
                           kernel.
    preparing              A model as ONNX Runtime stores it: functions inlined, constants as initializers, defaults
                           and types filled in.
    reader                 Reading FlatBuffers of the tables of `tables.py`: every offset, length and depth is checked
                           before it is followed.
    required_operators     Lists of the operators that a build of ONNX Runtime has: required_operators.config, read,
                           written and compared.
    runtime_optimizations  Runtime optimizations of a file in ORT format: what ONNX Runtime may do with some nodes
                           when it loads it.
    saving                 Writing models in ORT format, by ourselves where that suffices, else by onnxruntime where
                           it is installed.
    tables                 The tables of ONNX Runtime's FlatBuffers files: their fields in the order of their ids, and
                           of which type each is.
    writer                 Writing FlatBuffers of the tables of `tables.py`, from nested dicts {field: value}, by the
                           builder of `flatbuffers`.
"""
