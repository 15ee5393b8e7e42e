"""The index over the protos: producers and readers of values, the meaning of names by scope, the order of nodes.

Files:
    bindings            Name resolution: values are found by name from their scope outwards, and readers follow their
                        definition.
    build               A graph or function read into the index at once: the loops over 100,000 nodes that opening a
                        model consists of.
    columns             Names and inputs of nodes as columns of numbers: noted while a model is read, searched for all
                        at once.
    deferred_interrupt  Ctrl-C waits while a change is half made.
    edges               Uses of values, the edges that they make between nodes, and the followers of edges.
    file_order          The nodes of a scope in file order, in blocks: one goes in or out without 100,000 others being
                        shifted for it.
    index               The index over the protos: producers and readers of values, and the meaning of names by scope.
    name_scopes         Places of nodes in the exporter's hierarchy: the path of scopes in a name or in metadata.
    named_entries       Positions of the messages of a repeated field by their names, while others come and go around
                        them.
    networkx_view       The graph as networkx sees it, kept in step with the index from the first time it is asked
                        for.
    order               The order of nodes in each scope: positions in the file, and a topological order where the
                        file has none.
    order_labels        Labels that order things for life: numbers with gaps, so that something fits between two
                        neighbors.
    readonly_index      An index read in one pass from the bytes of a model: what only edits and people ask for is
                        made when asked for.
    records             Records of nodes, values and scopes. Only the index and the primitive changes write here.
    rows                Inputs and outputs of the nodes of one scope as arrays, for questions about all wires of very
                        many nodes.
    tables              The tables that every part of the index reads: records by id, the nesting of scopes, the
                        nodes' neighbors.
    topology            Orders of small integers by their dependencies. Pure functions without recursion; they know
                        nothing of ONNX.
"""
