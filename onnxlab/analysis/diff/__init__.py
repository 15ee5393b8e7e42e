"""The structural difference of two models.

Files:
    becoming      The changes that turn one model into another, message by message, and keep what both have in common
                  where it is.
    borders       Matches of values by who reads them: what is left where nodes were fused, split or became others.
    bridging      Matches across a node that only one of two models has, or that became another operator.
    change        A single difference of two models.
    contents      Contents of nodes and stored tensors as numbers: equal where these are equal, whatever anything is
                  called.
    difference    The structural difference of two models: what is matched, what changed, what came and went.
    fingerprints  Fingerprints of values by a run of both models, to tell apart what structure cannot.
    growing       Growth of a matching along wires: what a matched node reads and makes, what reads a matched value.
    identical     Whether two models are equal to the byte, found out without matching anything, and the fields that
                  are not.
    listing       The differences of two models as a list, read off the pairs that were found.
    matching      Pairs of nodes, values and scopes of two models that are the same one, found by structure.
    node_listing  Differences of the nodes of two scopes: who came and went, and what changed of those that stayed.
    orders        Two orders of the same things: what has to move for one to become the other.
    outline       A model as lines of text that a line-by-line comparison makes sense of: `git diff` with `onnxlab
                  text`.
    patching      Applying the difference of two models to a model, as one edit.
    refinement    Weisfeiler-Lehman refinement of the vertices of two scopes, anchored at the pairs that are known.
    regions       Regions of nodes of one model that others of the other model stand for: "these five became that
                  one".
    texts         Short texts of attributes, types and stored tensors, and how far two tensors are apart.
    transfer      The changes that a difference makes to a third model: what changed is changed there, what differs
                  besides stays.
    versions      A model as it was at another state of its history.
    vertices      The nodes and values of a scope of each model as one set of numbered vertices, with the wires
                  between them.
"""
