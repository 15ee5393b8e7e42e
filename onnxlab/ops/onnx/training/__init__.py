"""Gradients, losses and optimizers.

Files:
    gradient    Reverse-mode rules: from the gradients of an operator's outputs to those of its inputs.
    loss        Losses: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
    optimizers  Optimizer steps of ai.onnx.preview.training: Adagrad, Adam, Momentum. Gradient:
                execution/numpy/gradient.py.
"""
