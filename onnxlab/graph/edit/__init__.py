"""Edits: primitive changes with exact inverses, transactions of them, commits, history, snapshots.

Files:
    changes          The primitive changes: everything that can happen to a model is a list of these.
    commits          Commits: immutable descriptions of committed edits for their followers, and protocols to take
                     part before that.
    graph_changes    Primitive changes of graphs and functions: their inputs and outputs, initializers and other
                     entries.
    history          Undo and redo: the committed edits, each as the changes that take it back, within a budget of
                     bytes.
    ir_versions      The IR version that an edit needs: raised as a part of it.
    merging          Agreement of two models before nodes of one may stand in the other: opset versions and functions.
    model_graph      The mutable graph model: protos as storage, an index beside them, edits as transactions.
    name_references  Every place of the protos that mentions a value by nothing but its name, and how a new name is
                     written there.
    node_changes     Primitive changes of nodes: in and out, their place, what they read and make, their attributes.
    orphans          Take along what is left without a value: declarations, annotations and bindings of values that an
                     edit removed.
    readonly_graph   A graph for a single look, such as inference from scratch.
    reordering       Keep a sorted file sorted: the fewest moves that put producers before consumers again after a
                     rewire.
    script           The history as a Python script that makes the same edits on another copy of the model.
    snapshot         An immutable picture of a model, undisturbed by edits: for a run, a partition, an export.
    statements       Changes of declarations and stored tensors as the statements that people write for them.
    transaction      A graph with its history, journal and followers, and an edit of it in progress.
    validation       Rules of ONNX's IR that an edit must not break, checked where the edit touched the graph.
"""
