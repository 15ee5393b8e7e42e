"""The state that changes act on: protos, index, names, caches, and what a change touches of them.

Files:
    caches          What is derived from the protos and the index, and dropped where a change makes it stale.
    change          What a primitive change is: those that there are stand in `graph/edit/changes.py`.
    change_tracker  What the changes of one edit touch: collected while they are applied, and summed up for who
                    follows the commits.
    deferred_nodes  Node messages on their way into the main graph's message and out of it.
    graph_state     The state that changes act on: the protos, the index over them, names, and what is cached of
                    these.
    names           What users call things: nodes by name, position or output, values by name, scopes by path.
"""
