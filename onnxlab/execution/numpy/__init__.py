"""The reference provider: every node by its NumPy kernel, a function's body, or a schema's.

Files:
    gradient        Gradient of ai.onnx.preview.training: the nodes between `xs` and `y` run forwards, then their
                    rules backwards.
    half_precision  float16 and bfloat16 values held as float32 between nodes, in runs that keep nothing.
    provider        The reference provider: every node by itself, through a kernel of `ops/`, a function's body, or a
                    schema's.
    stored_inputs   Steps that read weights from their file when they run, and let them go after it.
"""
