"""Formats of files, one module each; `registry.py` finds them here.

Files:
    json_text      Protobuf's JSON of a model. It holds every field that onnx.proto has; unknown fields are lost.
    onnx_file      ONNX's own format: a ModelProto in protobuf's binary encoding. It holds everything.
    onnx_text      The language of onnx.parser, made for people: it has no place for much of a model.
    protobuf_text  Protobuf's text format of a model. It holds every field that onnx.proto has; unknown fields are
                   lost.
"""
