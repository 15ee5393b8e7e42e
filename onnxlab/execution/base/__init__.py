"""Foundations of execution: providers, the value store, BLAS threads, background work.

Files:
    array_memory      Arrays that are kept: whether two are equal, what memory is behind them, and that nothing writes
                      to them.
    background        The one background thread: what is to be done beside runs, one job after the other.
    blas              BLAS threads during runs.
    border            The border of a part that a provider from outside compiled: read-only inputs, checked outputs.
    dependents        Dependents of a value of the main graph, remembered from edit to edit while no node reads
                      anything else.
    diagnosis         Diagnosis of a failed kernel's inputs: signatures and shape rules are asked about them.
    last_run          The last run that kept no more than its inputs and what crossed between the parts of its
                      program.
    lru               The cache that execution uses: a few entries by key, of which the one that was kept longest ago
                      goes first.
    node_models       Parts of models as models: a node, graph or function alone, so that it can be run like
                      onnx.reference runs it.
    output_sizes      Bytes of a node's outputs, computed from the real inputs before the kernel is called.
    provider          Execution providers, in ONNX Runtime's words: they claim nodes and compile the parts they are
                      given.
    schema_functions  Functions that operator schemas carry, as scopes that can be compiled.
    synthetic_inputs  Arrays made up from facts, for running a part of a model without its inputs.
    tier              The one way of having made what takes a while: in the foreground, or in the background while a
                      fallback answers.
    value_store       Values that stay: the arrays of the last run, and which of them an edit or other inputs made
                      stale.
    watching          Values inside bodies, on request: what a value of a branch or a loop's body was, each time the
                      body ran.
    worker            Calls in threads of their own: one, so that Ctrl-C and Stop are answered while NumPy is busy, or
                      several at once.
"""
