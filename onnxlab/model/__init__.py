"""`Model`: what users hold. One ModelGraph with its inference, values, journal and views; facades without logic."""

from onnxlab.model.commit import Commit
from onnxlab.model.model import Model
from onnxlab.model.opening import load, run, save
from onnxlab.model.running import Subgraph, Values
from onnxlab.model.source import ModelSource

__all__ = ["Commit", "Model", "ModelSource", "Subgraph", "Values", "load", "run", "save"]
