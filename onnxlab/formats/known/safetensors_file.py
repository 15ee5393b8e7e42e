"""Weights as safetensors: a model of initializers alone, read in place. `model.files.save_weights` writes them."""

import io

import onnx

from onnxlab.formats.base.format import Content, Format, OpenedFile
from onnxlab.formats.weights import safetensors

_INSTEAD = "save it as .onnx, or its weights with model.files.save_weights(path)"


def _recognizes(content: Content) -> bool:
    return safetensors.begins_like_one(content.head)


def _read(content: Content) -> OpenedFile:
    if content.path is not None:
        stored, metadata = safetensors.read(content.path, "it")
    else:
        header = safetensors.read_header(io.BytesIO(content.data), content.size, "it")
        stored, metadata = safetensors.held(header, content.data), header.metadata
    model = onnx.ModelProto(ir_version=10, producer_name="safetensors")
    model.opset_import.add(version=21)
    model.graph.name = content.path.stem if content.path else "weights"
    model.graph.initializer.extend(stored.values())
    for key, value in metadata.items():
        model.metadata_props.add(key=key, value=value)
    return OpenedFile(model)


FORMAT = Format("safetensors", "safetensors", (), _recognizes, _read, instead=_INSTEAD, rank=30, weights=True)
