"""Models in fewer bits: weights in int8 or half precision, and nodes that compute in half precision.

Files:
    forms           Forms of a model in fewer bits, by name: what each does, which version of ai.onnx it needs, and
                    its pipeline.
    half_precision  Nodes that compute in half precision: weights and values between them are of half the bytes, with
                    Casts around.
    stored_weights  Weights stored in fewer bits: int8 with a scale for each channel, or half precision; nodes compute
                    as before.
"""
