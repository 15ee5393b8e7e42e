"""Gradients, losses and optimizers.

Files:
    loss        Losses: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
    optimizers  Optimizer steps of ai.onnx.preview.training: Adagrad, Adam, Momentum. Gradient:
                execution/numpy/gradient.py.
"""
