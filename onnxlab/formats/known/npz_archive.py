"""NumPy's .npz archives: a model of initializers alone, read in place. `model.files.save_weights` writes them."""

import onnx

from onnxlab.formats.base.format import Content, Format, OpenedFile
from onnxlab.formats.weights import npz

_INSTEAD = "save it as .onnx, or its weights with model.files.save_weights(path)"


def _recognizes(content: Content) -> bool:
    return content.head.startswith(b"PK\x03\x04") and npz.begins_with_array(content.head)


def _read(content: Content) -> OpenedFile:
    archive = npz.held(content.data, "it") if content.path is None else npz.read(content.path, "it")
    model = onnx.ModelProto(ir_version=10, producer_name="numpy")
    model.opset_import.add(version=21)
    model.graph.name = content.path.stem if content.path else "weights"
    model.graph.initializer.extend(archive.tensors.values())
    return OpenedFile(model)


FORMAT = Format("npz", "an .npz archive", (), _recognizes, _read, instead=_INSTEAD, rank=31, weights=True)
