"""Sources that a model can be loaded from."""

from os import PathLike

import onnx

ModelSource = str | PathLike[str] | bytes | onnx.ModelProto
