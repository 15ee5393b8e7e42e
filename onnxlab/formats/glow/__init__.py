"""Models of Glow, written by the specification of ONNX.

Files:
    standard  Glow's dialect by ONNX's specification: each Glow_* node as nodes of ai.onnx, quantized values rounded
              between.
"""
