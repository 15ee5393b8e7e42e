"""Rules for the operators of ai.onnx.ml.

Files:
    svm    Support vector machines of ai.onnx.ml with support vectors; those in primal form are left to NumPy.
    trees  ai.onnx.ml: tree ensembles, linear models, features. Labels that are strings are left to NumPy.
"""
