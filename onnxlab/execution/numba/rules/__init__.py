"""Lowering rules of nodes to records, by operator: a table, one file per family.

Files:
    attribute_checks  Checks of attributes: a node with values that no kernel is for is left to NumPy, which runs or
                      refuses it.
    loading           Loading of all compiled rules: a file of rules enters them in the registry when it is imported.
    part_matcher      Matches of patterns of nodes in a part that is compiled; `graph.query.patterns` says how they
                      are written.
    registry          The table of rules: which nodes a region takes, and what makes records of them.
    fusion/           Patterns of nodes that become one step of a plan.
    microsoft/        Rules for the operators of com.microsoft.
    ml/               Rules for the operators of ai.onnx.ml.
    onnx/             Rules for the operators of ai.onnx.
"""
