"""Foundations of execution: providers, the value store, BLAS threads, background work.

Files:
    background        The one background thread: what is to be done beside runs, one job after the other.
    blas              BLAS threads during runs.
    border            The border of a part that a provider from outside compiled: read-only inputs, checked outputs.
    dependents        What depends on a value of the main graph, remembered from edit to edit while no node reads
                      anything else.
    diagnosis         What is wrong with the inputs of a node whose kernel failed: signatures and inference are asked
                      about them.
    node_models       Parts of models as models: a node, graph or function alone, so that it can be run like
                      onnx.reference runs it.
    output_sizes      How many bytes a node's outputs will take, asked with the real inputs before the kernel is
                      called.
    provider          What an execution provider is, in ONNX Runtime's words: it claims nodes and compiles what it was
                      given.
    schema_functions  Functions that operator schemas carry, as scopes that can be compiled.
    store             Values that stay: the arrays of the last run, and which of them an edit or other inputs made
                      stale.
    synthetic_inputs  Arrays made up from facts, for running a part of a model without its inputs.
    watching          Values inside bodies, on request: what a value of a branch or a loop's body was, each time the
                      body ran.
    worker            Calls in a thread of their own, so that Ctrl-C and Stop are answered while NumPy is busy.
"""
