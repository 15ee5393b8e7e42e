"""Facts that follow every commit, and what an edit did to them.

Files:
    declarations        Declarations that follow what is inferred: changed in the very edit that makes them wrong.
    declared_conflicts  Problems of values: declared types that contradict what inference finds, and values that
                        nothing makes.
    engine              Live inference: facts beside the graph that follow every commit.
    impact              The blast radius of an edit in words: which facts changed, how, and who cannot accept it.
    new_errors          What refuses after an edit what it took before: the first node that cannot live with the
                        change.
    size_trials         Whether a model works with other sizes: tried in the background where an edit made a dim of an
                        input dynamic.
"""
