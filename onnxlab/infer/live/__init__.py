"""Facts that follow every commit, and what an edit did to them.

Files:
    declarations        Declarations that follow what is inferred: changed in the very edit that makes them wrong.
    declared_conflicts  Problems of values: declared types that contradict what inference finds, and values that
                        nothing makes.
    impact              The impact of an edit in words: changed facts, and nodes that cannot accept theirs.
    invalidation        The effects of a commit: facts and operators that are forgotten, and the nodes to infer again.
    live_inference      Live inference: facts beside the graph that follow every commit.
    new_errors          New errors of an edit: the first node that it made invalid.
    size_trials         Whether a model works with other sizes: tried in the background where an edit made a dim of an
                        input dynamic.
"""
