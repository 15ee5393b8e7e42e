"""Files to protos and back.

- `onnx`: model files, with their external data
- `identify`: what a file is that is no model
- `atomic`: files replaced as a whole or not at all
"""
