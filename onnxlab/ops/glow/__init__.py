"""Operators of Glow's own dialect of ONNX, as its serialization without loss writes them.

Files:
    operators  Glow's operators: what its dialect calls Glow_*, with the types of their results in attributes.
"""
