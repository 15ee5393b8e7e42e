"""Rewriting: rules and passes that leave a model with fewer nodes that compute the same, tried before they stay.

Files:
    edit_verification  Whether an edit by hand changed what a model computes: the model as it was, and as it is, on
                       inputs of every kind.
    foreign            Optimizers of others, run in a process of their own; what they make is brought back as one
                       application.
    live_matches       Matches of rules, kept up to date over edits: only what is near an edit is matched again.
    measured_loss      Loss of a model in fewer bits: how far its outputs are off on normal inputs, and whether they
                       are finite still.
    metadata_transfer  Documentation and metadata of a model: carried over to what replaces a node, or listed as lost.
    near_misses        Reasons why rules do not apply at a node: for each of them the deepest point at which it
                       failed, in words.
    occurrences        Matches of a pattern in text form in a model, as handles.
    optimizer_results  Results of other optimizers, brought back by the structural difference; parts that need no
                       change stay.
    pipeline           Pipelines of `simplify`, `optimize` and `rewrite`: rules and passes over a model, inside of an
                       edit that is open.
    receipt            The record of rewriting: each application of a rule or pass, lost notes, and the verdict of
                       running both models.
    regions            Regions: the nodes of one application before and after, run apart from the model on inputs of
                       their own.
    rewriting          The graph as passes see it: facts, constants, and the few edits that rewriting is made of.
    rounding           Runs in which everything that is computed is off by a rounding: how far a model amplifies the
                       order of its sums.
    shrinking          Inputs that show a difference, made smaller: fewer elements in an axis, fewer numbers that are
                       not zero.
    suggestions        Suggestions for a model: each rule alone, where it applies, its measured gain, and the verdict
                       of running both.
    traces             Nodes that each application takes out of a graph and brings, read from the changes of the edit
                       it is part of.
    verification       Proof by execution: a model before and after a rewrite, run on inputs of several kinds and
                       compared.
    verification_runs  The model that is verified: how it is run, on which inputs, and whether these say anything.
    verified_rewrites  Rewrites that are tried before they stay: run before and after, taken back where an output
                       differs, and noted.
    zero_signs         Places where the sign of a zero matters: divisors, Sign and the like, unknown operators, and
                       all before them.
    passes/            Passes, one file each: what they look for and what they put there.
    patterns/          Patterns of nodes as text, and where they match.
    quantization/      Models in fewer bits: weights in int8 or half precision, and nodes that compute in half
                       precision.
    rules/             Rules: patterns of nodes with what takes their place.
"""
