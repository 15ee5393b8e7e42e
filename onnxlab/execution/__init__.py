"""Running any part of a model, in place.

provider.py              what a provider is: it claims nodes and compiles parts
partition.py             which provider gets which nodes: maximal convex parts, as a plan for people
numpy_provider.py        the reference provider: one kernel, function or body per node
numba_provider.py        regions as plans of compiled kernels, NumPy until they are ready; `compiled/` is how
providers.py             the providers by name
onnxruntime_provider.py  onnxruntime (extra `ort`) for whatever it has kernels for
functions.py             functions of the model and of operator schemas, as bodies to run
compiler.py              scopes to programs, through the providers
drafts.py                partitions taken over after edits that leave all nodes where they are
likeness.py              what two snapshots have in common
program.py               slots, steps and lifetimes: what is run
executor.py              the loop that runs a program, and what kernels may ask of it
folding.py               what constants alone make: run once, kept across runs and edits
keeping.py               runs that keep values: of a program that outlives edits, only what is not there runs
call.py                  one run: limits, progress, and the thread it runs in
sizes.py                 how large an output will be, where it can dwarf the inputs
feeds.py                 the caller's arrays checked against what the model declares
blas.py                  how many threads BLAS uses meanwhile
worker.py                runs in a thread of their own, so that Ctrl-C and Stop answer
recording.py             watching a run: values to keep, steps to skip, how far it is
reporting.py             errors for people: node, operator, inputs, the rule broken
store.py                 values that stay, and which of them an edit made stale
dependents.py            what depends on a value, remembered while no node is rewired
synthetic.py             arrays made up from facts
runner.py                all of it for one ModelGraph: run, run_nodes, partition
"""
