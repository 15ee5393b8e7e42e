"""Questions about models and values that change neither.

Files:
    block_sizes        The doubt about models whose images lie in blocks of channels of a size that nothing in the
                       model tells.
    check              `check`: every problem of a model at once, each pinned to its node or value, with what would
                       mend it.
    check_by_onnx      Findings of onnx's own checker on a model as a whole, where nothing else is wrong with it.
    check_ge           Rules of dumps of GE, whose references are not ONNX's: see `graph.protos.ge_dump`.
    check_model        Checks of a model as a whole: versions, opset imports, metadata, and its functions among each
                       other.
    check_nodes        Checks of a node: operator and attributes against the schema, names against each other.
    check_scopes       Checks of graphs, functions and their values: names, order, single assignment, declared types.
    check_tensors      Checks of tensors: one field of data that fits type and shape, or a data file that may be read.
    check_trees        Checks of tree ensembles: whether the lists of a node are trees.
    computable_values  Values of the last run, computed as far as they can be: where a node fails, those that do not
                       depend on it.
    findings           Collecting diagnostics: what the rules of `check` write into.
    flops              Floating-point operations (FLOPs) of a node: of one call by its arrays, of every node by facts
                       alone.
    profile            Profiles of a run: seconds, bytes and floating-point operations of every node.
    run_refusals       The nodes that `run` refuses: those with an error for which ONNX Runtime refuses to load the
                       whole model too.
    sizes              Sizes for the symbols of a model's inputs, where questions about memory and cost need numbers.
    statistics         Statistics of a value: range, mean, NaN count and a histogram, for arrays of every ONNX type.
    tree_ensembles     A look into tree ensembles of ai.onnx.ml: trees with their sizes, splits, and which features
                       they use.
    compare/           Values of two models, of two providers, or of a model and a recording, compared pair by pair.
    cost/              The cost of nodes and groups, against what the machine can do.
    datasets/          Whole data sets: statistics of values and errors between models over many samples, on one
                       machine or a cluster.
    diff/              The structural difference of two models.
    hunt/              Values that went wrong in a run: NaN, infinities, what half precision cannot hold, dead
                       channels, saturation.
    memory/            The memory of a run over its schedule: by facts alone, nothing is run.
    messages/          The commonest error messages of onnx, onnxruntime and torch: what they mean, and what to do.
    watches/           Watches: expressions on values that are checked after runs and edits.
"""
