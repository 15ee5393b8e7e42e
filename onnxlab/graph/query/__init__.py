"""Questions about the graph: finding nodes and values, cones, repeated blocks, groups that fold.

Files:
    block_copies       Repeated blocks: other sets of nodes that do the same as a given one, verified wire by wire.
    cones              Reachability: ancestors, descendants, paths, convexity and the boundary of a selection.
    equal_groups       Groups that are equal, node by node and wire by wire: the twelve layers of a transformer.
    group_cycles       Circles that a group of nodes would close among the boxes of a level.
    groups             Groups of nodes; one that an edit leaves mostly as it was keeps its id, whatever node it begins
                       with.
    hierarchy          Groups of nodes that fold to one box each, so that at most about 300 boxes stand side by side
                       anywhere.
    hierarchy_by_hand  Groups made by hand, put into the boxes of a scope: what `onnxlab.group` in the metadata of
                       nodes says.
    hierarchy_cuts     Cuts of a long row of boxes into parts, where few values are live. Pure functions of positions.
    hierarchy_levels   The nodes of one scope sorted into boxes within boxes: what `hierarchy.py` publishes, without
                       ids.
    node_roles         Roles of the nodes of a scope in its picture: the trunk that carries data, or arithmetic beside
                       it.
    node_search        Finding nodes and values by what they are: `find(graph, op_type="Conv", name="*/attn/*",
                       shape=(…, 768))`.
    parameter_scopes   Paths from the names of parameters, for models whose nodes have no scopes in their names.
    protected_names    Names of nodes, values and graphs that edits are to leave as they are.
    sources            The readers of each node of a scope, and which nodes read nothing but initializers and each
                       other: sources.
    unit_cuts          Borders between units of a model: pure functions of positions and operators.
    unit_families      Groups side by side that are called alike but for a number, "up_blocks.0" to "up_blocks.3", as
                       one group.
    unit_repeats       Units in a row that are alike and follow one another: the blocks of one stage.
    unit_words         Words of the field for a set of nodes: "attention", "residual block", "conv·bn·relu".
    units              Units of a model where names tell none: layers, blocks and stages, found in how nodes are
                       wired.
    wires              Readers of each node of a scope, and nodes that depend on weights alone: arrays by topological
                       position.
    patterns/          Patterns of nodes as text: the language of rewriting and of what the Numba provider fuses.
"""
