"""Archives of torch.export (.pt2), read without torch.

Files:
    archive  A .pt2 archive: the program as JSON, and its weights, which are read in place.
    graph    The graph of a torch.export archive as a GraphProto: one node for each call, dims and dtypes as declared
             types.
    symbols  Sizes of torch.export as dims of ONNX: numbers, symbols, and expressions of them as text.
"""
