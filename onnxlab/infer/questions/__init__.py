"""Questions about facts: why a dim is what it is, what if a symbol had a size, how much memory.

Files:
    explain       Why a dim is what it is: the way from a value back to what was declared, or to the operator that
                  lost it.
    memory        Bytes of values and the most that live at once, by facts alone: nothing is run.
    provenance    Which parts of a node's inputs decide a part of its output: found out by asking the rule again.
    unknown_dims  Why an operator could not tell a dim: in words, and which of its inputs are to blame.
    what_if       What if the symbols had these sizes: every shape and the memory of every value, without touching the
                  model.
    wire_types    Whether a value's type fits an input slot: what inference has to say of a wire before it is drawn.
"""
