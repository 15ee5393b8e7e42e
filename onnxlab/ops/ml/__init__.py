"""Operators of ai.onnx.ml.

Files:
    features       ai.onnx.ml: scalers, imputers, encoders and maps (see also linear.py, trees.py, svm.py).
    forest         A forest: all trees of an ensemble of ai.onnx.ml as arrays with one entry per node.
    labels         Labels of classifiers of ai.onnx.ml that are strings: numbers, and the strings behind them.
    linear         ai.onnx.ml: linear models.
    svm            Support vector machines of ai.onnx.ml: SVMRegressor, SVMClassifier.
    tree_nodes     Nodes of tree ensembles: which leads where, and what keeps the lists of an ensemble from being
                   trees.
    tree_settings  Settings of tree ensembles for which ONNX Runtime refuses a model: for shape rules, which tell of
                   them at once.
    trees          Tree ensembles of ai.onnx.ml: TreeEnsembleClassifier, TreeEnsembleRegressor, TreeEnsemble.
"""
