"""onnxruntime as a provider (extra `ort`).

Files:
    provider  onnxruntime as a provider (extra `ort`): it takes every node that it has a CPU kernel for, and compiles
              whole parts.
"""
