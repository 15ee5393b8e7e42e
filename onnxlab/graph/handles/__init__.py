"""Handles, which users hold: nodes, values and live mappings, each a name for (ModelGraph, id).

Files:
    glow_properties  The properties that Glow's dialect keeps in a value's doc string, as a live mapping.
    groups           The groups that a picture of a model folds, by path, and their edits by hand.
    handle_base      The base of handles: a name for (ModelGraph, id) that looks everything up when asked.
    handles          Handles of nodes and values: names for (ModelGraph, id) that look everything up when asked.
    model_edits      The edits that a Model offers, by names and handles: each a thin call of `graph.edits`.
    model_lookup     Look-up of the keys and handles that a Model's methods are given.
    model_queries    Questions that a Model answers about its structure, by names and handles: thin calls of
                     `node_search`, `cones`.
    model_values     Edits of a Model's inputs, outputs and initializers, by names and handles: thin calls of
                     `graph.edits`.
    model_whole      Edits of a Model as a whole: its opsets, metadata and documentation, conversion, and cleaning.
    node_fields      Fields and attributes of a node, read and set, and the edits that concern no other handle.
    properties       Live mappings of what a model says about itself: metadata_props and opset imports; writing into
                     one is an edit.
    structure        Reachability in a model, by names and handles: thin calls of `cones` and `block_copies`.
    value_fields     Fields of a value, read and set, and the edits that concern no other handle.
"""
