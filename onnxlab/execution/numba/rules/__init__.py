"""How nodes become records, by operator: a table of rules, one file per family.

Files:
    attribute_checks  What attributes have to be: a node with others is left to NumPy, which does what is meant, or
                      says what is wrong.
    patterns          Patterns of nodes: terms over operators, as text, found among the nodes of a part.
    registry          The table of rules: which nodes a region takes, and what makes records of them.
    fusion/           Patterns of nodes that become one step of a plan.
    microsoft/        Rules for the operators of com.microsoft.
    onnx/             Rules for the operators of ai.onnx and ai.onnx.ml.
"""
