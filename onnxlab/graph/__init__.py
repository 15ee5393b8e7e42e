"""The mutable graph model: protos as storage, an index beside them, edits as transactions.

Files:
    edit/     Edits: primitive changes with exact inverses, transactions of them, commits, history, snapshots.
    edits/    Edits as lists of primitive changes. Each is one undo step, or part of the open one.
    handles/  Handles, which users hold: nodes, values and live mappings, each a name for (ModelGraph, id).
    index/    The index over the protos: producers and readers of values, the meaning of names by scope, the order of
              nodes.
    protos/   Protos to Python values and back: attributes, tensors, external data. Works on messages alone.
    query/    Questions about the graph: finding nodes and values, cones, repeated blocks, groups that fold.
    state/    The state that changes act on: protos, index, names, caches, and what a change touches of them.
"""
