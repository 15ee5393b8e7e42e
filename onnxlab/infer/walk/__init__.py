"""Inference of nodes, scopes, bodies and function calls: from facts of inputs to facts of outputs.

Files:
    body_walker         Bodies of nodes, and what rules, calls and schema bodies ask of the walker: `walker.py` has
                        it.
    function_calls      Model-local functions: each distinct call (function, attributes, input facts) is walked once.
    input_masks         Facts before and after a rule: which elements it reads, and which of its answers a tensor can
                        have.
    node_facts          Output facts of one node, from the first source that knows them.
    operator_catalogue  The `Operator` of each node of a graph: found once, shared by the nodes that do the same.
    rule_context        The context of a shape rule: the InferContext of row 1, and bodies as opaque things to infer.
    schema_bodies       Inference of an operator by the function body of its schema: the body is walked in a graph of
                        its own.
    walker              Inference of one node, one scope, one call: from the facts of inputs to the facts of outputs.
"""
