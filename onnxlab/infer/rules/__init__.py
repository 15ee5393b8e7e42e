"""Operators apart from the names of values, and the rules that infer them.

Files:
    budget          The budget of one inference: processor time, and parts of expressions and elements that are kept.
    fact_frame      Frames of facts while a graph is walked: one for the model, one for each distinct call of a
                    function.
    native          onnx's own C++ inference of one node, for every operator that has no rule here.
    operator_cache  Operators that any graph of this process may meet, with what was inferred by them.
    operators       Operators: nodes apart from the names of their values, with version, attributes, and how to infer
                    them.
    schema_checks   Checks by schemas alone: arity, element types in and out; and conflicts with declared types.
"""
