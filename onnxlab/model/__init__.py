"""`Model`: what users hold. One ModelGraph with its inference, values, journal and views; facades without logic.

Files:
    commit          `Commit`: what one edit did, as followers of a Model hear of it.
    comparing       Changes of a Model since another state of its history, the effect of a difference, and values that
                    went wrong.
    copying         A Model copied, or sent to another process: with its files, without the session around it.
    datasets        `statistics` and `evaluate`: values of a model, and errors of one against another, over whole data
                    sets.
    differences     `diff` and `compare`: the structural difference of two models, and their values pair by pair.
    fact_queries    Knowledge of a Model without running it: facts, their reasons, and problems.
    files           Files of a Model: reports before it is saved, weights, and edits that were never saved.
    graph_members   The graph of a Model: nodes and values as handles, its inputs and outputs, and networkx.
    matching        Matching in a Model: patterns of nodes, where rules match, and why they do not.
    measuring       Measures of a Model: the memory of a run over its schedule, what its nodes cost, and how long they
                    take.
    model           `Model`: a graph with its inference, values and journal, kept in step by one stream of commits.
    opening         `load`, `save`, `run` and `explain_error`: functions of the package's front door that deal with
                    whole models.
    renamed         Names that a Model had before: they still work, and a DeprecationWarning says what stands in their
                    place.
    rewriting       Rewriting a Model: rules that leave it computing the same, tried before they stay.
    running         Runs of a Model: the whole, a selection, by which providers, and the arrays that stay.
    saving          Saving a Model, and recovery of edits that were not saved.
    showing         Showing a Model: by the layers above it that draw, which are asked for by name at that moment.
    training        Training with the artifacts of onnxruntime-training: a training graph, an optimizer graph and a
                    checkpoint.
    training_info   Steps of the training that a model describes itself by a TrainingInfoProto: two graphs and their
                    bindings.
    viewable_diffs  Differences and comparisons of two Models, which can be looked at: both graphs side by side.
    weights         Weights of a Model, taken from files and written to them.
"""

from onnxlab.formats.source import ModelSource
from onnxlab.model.commit import Commit
from onnxlab.model.datasets import evaluate, statistics
from onnxlab.model.differences import compare, diff
from onnxlab.model.model import Model
from onnxlab.model.opening import explain_error, load, run, save
from onnxlab.model.running import Subgraph, Values

__all__ = [
    "Commit",
    "Model",
    "ModelSource",
    "Subgraph",
    "Values",
    "compare",
    "diff",
    "evaluate",
    "explain_error",
    "load",
    "run",
    "save",
    "statistics",
]
