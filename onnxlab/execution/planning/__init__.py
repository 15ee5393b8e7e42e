"""From scopes to programs: inlining, partition, order, and compiling in the background.

Files:
    background_compile  Background compilation: programs that others stand in for, until a thread has compiled them.
    cached_partition    Partitions again after an edit that leaves all nodes where they are: only what it touched is
                        judged again.
    compiler            Scopes to programs: the nodes that a run needs, partitioned, compiled by their providers,
                        assembled.
    decided_branches    Branches that the shapes of the feeds decide: they are compiled as if they stood outside.
    inlining            Inline calls of functions, Ifs whose condition is known, and Constant nodes.
    loop_invariants     Loop-carried values that no iteration changes, such as a recurrent layer's weights in exported
                        while loops.
    nchwc_to_nchw       Networks with channels in blocks (NCHWc), as ONNX Runtime's optimizer saves them, written
                        without blocks for a plan.
    ordering            The order of a run that keeps nothing: the file's, or one in which less is alive at once where
                        that saves much.
    partition           The partition of nodes among providers: maximal convex parts, in the caller's order of
                        preference.
    programs            The compiler of a graph as it is now, and the programs that it has made.
    scope_names         Scopes as compilers read them: names, constants and facts, and what outputs need of the nodes.
    scope_reader        The protocol by which partitions and inlining read a compiler's scope: `compiler.py` has it.
    snapshot_diff       Differences of two snapshots of a model: whether an edit left all nodes and names where they
                        were.
    step_cache          Steps of nodes and partitions of earlier snapshots, so that a plan after an edit costs little.
    stored_weights      Weights that are left in their file during runs: those of a model that is too large to be held
                        in memory.
"""
