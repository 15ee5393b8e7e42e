"""Questions about facts: why a dim is what it is, what if a symbol had a size, how much memory.

Files:
    dim_explanation  Explanations of dims: the way from a value back to a declaration, or to the operator that lost
                     the dim.
    memory           Bytes of values and the most that live at once, by facts alone: nothing is run.
    provenance       Provenance: the parts of a node's inputs that decide a part of its output, found by asking the
                     rule again.
    unknown_dims     Reasons why a dim is unknown: in words, and with the inputs that lack something.
    what_if          Shapes and memory for given sizes of the symbols, without touching the model.
    wire_types       Whether a value's type fits an input slot: what inference has to say of a wire before it is
                     drawn.
"""
