"""Rules for the operators of ai.onnx.ml.

Files:
    svm    Support vector machines of ai.onnx.ml with support vectors; those in primal form are left to NumPy.
    texts  Counts of n-grams in texts, which the kernel splits into words itself.
    trees  ai.onnx.ml: tree ensembles, linear models, features. Labels that are strings are left to NumPy.
"""
