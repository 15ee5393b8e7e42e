"""The state that changes act on: protos, index, names, caches, and what a change touches of them.

Files:
    change          The protocol of primitive changes: `graph/edit/changes.py` has those that there are.
    change_tracker  Changes as they touch caches of the protos and the index, and their report in a commit.
    deferred_nodes  Node messages on their way into the main graph's message and out of it.
    graph_state     The state that changes act on: the protos, the index over them, names, and what is cached of
                    these.
    names           Look-up by the names that users use: nodes by name, position or output, values by name, scopes by
                    path.
"""
