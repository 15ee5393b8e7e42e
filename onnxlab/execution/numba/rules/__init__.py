"""Lowering rules of nodes to records, by operator: a table, one file per family.

Files:
    attribute_checks  Checks of attributes: a node with values that no kernel is for is left to NumPy, which runs or
                      refuses it.
    patterns          Patterns of nodes: terms over operators, as text, found among the nodes of a part.
    registry          The table of rules: which nodes a region takes, and what makes records of them.
    fusion/           Patterns of nodes that become one step of a plan.
    microsoft/        Rules for the operators of com.microsoft.
    onnx/             Rules for the operators of ai.onnx and ai.onnx.ml.
"""
