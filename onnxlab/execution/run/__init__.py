"""Runs of one ModelGraph: general, incremental and fast ones, and what they are given and asked for.

Files:
    compiled_parts     The parts that run a model by now: those of the last run, by which provider, and what is being
                       compiled.
    fast_path          Programs specialized for runs of one `RunKey`: the checks of an earlier run, and what shapes
                       decide, hold again.
    incremental_runs   Runs of the main graph that keep all values: what is not there or not fresh runs, the rest
                       comes from the store.
    node_selection     Selections of nodes to run: the values that they make, and those that they read from the rest
                       of the graph.
    noted_runs         Runs that keep no more than their inputs and the borders of parts: noted for the store.
    progress_bar       A progress bar in the terminal, for runs of more than a second: tqdm's, where that is
                       installed.
    provider_names     Providers by the names that users give them: "numpy", "numba", "onnxruntime".
    refused_nodes      Nodes that are refused before a run begins: those for which onnxruntime would refuse the model.
    requests           Requests of runs: what is fed, asked for and kept, checked against the graph as it is now.
    runner             Running one ModelGraph: all of it, up to some values, from some values, or a selection of
                       nodes.
    trial_runs         Runs on made-up inputs that no call asked for: within limits, since a loop may not end on them.
    value_computation  Values that a run left unkept, computed when they are looked at.
    values_on_demand   Values of the last run that it left unkept: which there are, and what computes them when they
                       are looked at.
"""
