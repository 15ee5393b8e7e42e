"""From scopes to programs: inlining, partition, order, and compiling in the background.

Files:
    background_compile  Background compilation: programs that others stand in for, until a thread has compiled them.
    block_size          The size of the blocks of channels that a model was saved with: ONNX Runtime writes it down
                        nowhere.
    cached_partition    Steps, partitions and programs of earlier snapshots: after an edit only what it touched is
                        compiled and judged again.
    carried_programs    Programs after an edit: of an earlier program, only the steps and parts that the edit touched
                        are compiled anew.
    carry               The difference of two snapshots, by which what was made of the first is carried over to the
                        second.
    compiler            Scopes to programs: the nodes that a run needs, partitioned, compiled by their providers,
                        assembled.
    decided_branches    Branches that the shapes of the feeds decide: they are compiled as if they stood outside.
    inlining            Inline calls of functions, Ifs whose condition is known or whose branches are short, and
                        Constant nodes.
    loop_carried        Loop-carried values that no iteration changes, such as a recurrent layer's weights, or to
                        which each appends an item.
    partition           The partition of nodes among providers: maximal convex parts, in the caller's order of
                        preference.
    programs            The compiler of a graph as it is now, and the programs that it has made.
    scope_names         Scopes as compilers read them: names, constants and facts, and what outputs need of the nodes.
    stored_weights      Weights that are left in their file during runs: those of a model that is too large to be held
                        in memory.
    passes/             Passes: what is done to a run's nodes before they are partitioned.
"""
