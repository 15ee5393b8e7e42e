"""Measurements against onnx, onnx-ir and onnxruntime: `python -m bench`; the method is in bench/README.md."""
