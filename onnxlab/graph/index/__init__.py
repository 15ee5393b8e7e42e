"""The index over the protos: who makes and reads what, what a name means where, in which order.

Files:
    bindings            What a name means where: values are found by name from their scope outwards, and readers
                        follow their definition.
    build               A graph or function read into the index at once: the loops over 100,000 nodes that opening a
                        model consists of.
    deferred_interrupt  Ctrl-C waits while a change is half made.
    edges               Who reads what: uses of values, the edges that they make between nodes, and those who want to
                        hear of them.
    file_order          The nodes of a scope in file order, in blocks: one goes in or out without 100,000 others being
                        shifted for it.
    index               The index over the protos: who makes, who reads, what a name means where.
    name_scopes         Where a node says it belongs: the path of scopes in its name or in the exporter's metadata.
    name_search         Names of nodes looked for in the bytes of a model as it was read: quicker than a table of all
                        for a few lookups.
    named_entries       Where the messages of a repeated field stand, found by the names in them while others come and
                        go around them.
    networkx_view       The graph as networkx sees it, kept in step with the index from the moment somebody first asks
                        for it.
    order               The order of nodes in each scope: positions in the file, and a topological order where the
                        file has none.
    order_labels        Labels that order things for life: numbers with gaps, so that something fits between two
                        neighbors.
    readonly_index      An index read in one pass from the bytes of a model: what only edits and people ask for is
                        made when asked for.
    records             What the index knows of each node, value and scope. Only the index and the primitive changes
                        write here.
    tables              The tables that every part of the index reads: records by id, the nesting of scopes, the
                        nodes' neighbors.
    topology            Orders of small integers by their dependencies. Pure functions without recursion; they know
                        nothing of ONNX.
    uses                Who reads which value of a model as it was read: sorted arrays; the readers of one value are
                        made when asked for.
"""
