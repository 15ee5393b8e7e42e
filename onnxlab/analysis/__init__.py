"""Questions about models and values that change neither.

Files:
    check          `check`: every problem of a model at once, each pinned to its node or value, with what would mend
                   it.
    check_ge       What must hold in a dump of GE, whose references are not ONNX's: see `graph.protos.ge_dump`.
    check_model    What `check` asks of a model as a whole: versions, opset imports, metadata, and its functions among
                   each other.
    check_nodes    What `check` asks of a node: its operator and attributes against the schema, its names against each
                   other.
    check_scopes   What `check` asks of graphs, functions and their values: names, order, single assignment, declared
                   types.
    check_tensors  What `check` asks of tensors: one field of data that fits type and shape, or a data file that may
                   be read.
    costs          What every node costs by facts alone, without running anything: floating-point operations.
    findings       Collecting diagnostics: what the rules of `check` write into.
    judge          Which nodes `run` refuses: those with an error for which ONNX Runtime refuses to load the whole
                   model too.
    profile        Where a run's time goes: seconds, bytes and floating-point operations of every node.
    statistics     What a value looks like at a glance: range, mean, NaN count and a histogram, for arrays of every
                   ONNX type.
"""
