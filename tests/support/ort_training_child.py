"""Trains with onnxruntime-training, in the interpreter that has it; needs nothing of onnxlab.

    python ort_training_child.py FOLDER

FOLDER has training_model.onnx, eval_model.onnx, optimizer_model.onnx, checkpoint and batches.npz with x and y; the
losses are printed as a JSON list of hexadecimal numbers.
"""

import json
import sys
from pathlib import Path

import numpy as np
from onnxruntime.training.api import CheckpointState, Module, Optimizer

folder = Path(sys.argv[1])
state = CheckpointState.load_checkpoint(str(folder / "checkpoint"))
module = Module(str(folder / "training_model.onnx"), state, str(folder / "eval_model.onnx"))
optimizer = Optimizer(str(folder / "optimizer_model.onnx"), module)
losses = []
with np.load(folder / "batches.npz") as batches:
    for x, y in zip(batches["x"], batches["y"], strict=True):
        module.train()
        losses.append(float(module(x, y)).hex())
        optimizer.step()
        module.lazy_reset_grad()
print(json.dumps(losses))
