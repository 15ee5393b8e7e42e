"""What a model can be made of."""

from os import PathLike

import onnx

ModelSource = str | PathLike[str] | bytes | onnx.ModelProto
