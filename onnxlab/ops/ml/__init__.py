"""Operators of ai.onnx.ml.

Files:
    features  ai.onnx.ml: scalers, imputers, encoders and maps (see also linear.py, trees.py, svm.py).
    forest    A forest: all trees of an ensemble of ai.onnx.ml as arrays with one entry per node.
    linear    ai.onnx.ml: linear models.
    svm       Support vector machines of ai.onnx.ml: SVMRegressor, SVMClassifier.
    trees     Tree ensembles of ai.onnx.ml: TreeEnsembleClassifier, TreeEnsembleRegressor, TreeEnsemble.
"""
