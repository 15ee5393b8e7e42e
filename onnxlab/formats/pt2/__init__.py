"""Archives of torch.export (.pt2), read without torch.

Files:
    archive      A .pt2 archive: the program as JSON, and its weights, which are read in place.
    converting   Conversion of torch's files by torch itself, in a process of its own: loading them runs code that is
                 in them.
    graph        The graph of a torch.export archive as a GraphProto: one node for each call, dims and dtypes as
                 declared types.
    symbols      Sizes of torch.export as dims of ONNX: numbers, symbols, and expressions of them as text.
    torch_child  Convert a file of torch to ONNX: a script for an interpreter that has torch, which imports nothing of
                 onnxlab.
"""
