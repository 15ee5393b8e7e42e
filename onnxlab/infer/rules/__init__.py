"""Operators apart from the names of values, and the rules that infer them.

Files:
    budget          What one inference may take: processor time, and parts of expressions and elements that are kept.
    fact_frame      Where facts are kept while a graph is walked: one frame for the model, one for each distinct call
                    of a function.
    native          onnx's own C++ inference of one node, for every operator that has no rule here.
    operator_cache  Operators that any graph of this process may meet, with what was inferred by them.
    operators       What a node does, apart from the names of its values: operator, version, attributes, and how to
                    infer it.
    schema_checks   What schemas alone say about a node: arity, element types in and out; and what a model declares
                    about a value.
"""
