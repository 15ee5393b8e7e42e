"""Schemas, training, and the dialects that are text: what their tests hold, as figures."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx

import onnxlab
from bench.measure import Figure, Line
from onnxlab.errors import LoadError
from onnxlab.formats.ort.checkpoint import decode
from onnxlab.graph.protos import tensors
from onnxlab.model.training_info import TrainingInfo
from tests.formats.caffe2 import test_caffe2
from tests.formats.ge import test_ge
from tests.formats.glow import test_dialect
from tests.formats.training import test_training, test_training_info
from tests.formats.weights import test_weights
from tests.ops.microsoft import test_runtime_schemas

CASES = ("adamw", "sgd", "resumed")


def rows() -> Iterator[Line]:
    """Every measure."""
    judged, different = test_runtime_schemas.planted()
    yield Figure("schemas: planted faults judged as onnxruntime does", judged - len(different), at_least=200,
                 note=f"of {judged}")  # fmt: skip
    yield from training()
    with tempfile.TemporaryDirectory() as name:
        yield from ge(Path(name))
        yield from glow(Path(name))
        yield from shards(Path(name))
    nets = test_caffe2.nets()
    equal = sum(stated == read for stated, read in map(test_caffe2.said_and_read, nets.values()))
    yield Figure("caffe2: nets with the operators, edges and fills of their text", equal, at_least=len(nets))


def training() -> Iterator[Line]:
    """Checkpoints and steps of training."""
    files = test_training.FILES
    for case in CASES:
        yield Figure(f"training: losses against onnxruntime-training, {case}", test_training.farthest(case),
                     at_most=2e-6, note="relative, five stored batches")  # fmt: skip
    if os.environ.get(test_training.VARIABLE):
        originals = {case: files[test_training.CASES[case][2]] for case in CASES}
        equal = sum(
            test_training.losses_there(case, decode(data).to_bytes()) == test_training.losses_there(case, data)
            for case, data in originals.items()
        )
        yield Figure("training: checkpoints written anew, with which it has the same losses", equal, at_least=3)
    else:
        yield Figure("training: checkpoints written anew", 0, note=f"not measured: {test_training.VARIABLE} is not set")
    model = onnxlab.load(files["mlp.onnx"])
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "trained.ckpt"
        path.write_bytes(files["checkpoint_opt.ckpt"])
        model.files.load_weights(path)
    exported = {tensor.name: tensor for tensor in onnx.load_from_string(files["inference.onnx"]).graph.initializer}
    equal = sum(
        tensors.to_array(tensor).tobytes() == tensors.to_array(exported[tensor.name]).tobytes()
        for tensor in model.proto.graph.initializer
    )
    yield Figure("training: parameters applied that equal the exported ones to the bit", equal, at_least=len(exported))
    try:
        onnxlab.load(files["nom_nominal_checkpoint"])
        refusal = ""
    except LoadError as error:
        refusal = str(error)
    yield Figure("training: nominal checkpoints refused by name", int("fc1.weight" in refusal), at_least=1)
    info = TrainingInfo(onnxlab.load(test_training_info.described()))
    loss = float(np.asarray(info.step(test_training_info.FEEDS)["loss"]))
    yield Figure("training: a step of TrainingInfoProto, from its loss and weight by hand",
                 abs(loss - 36) + abs(float(np.asarray(info.variables["w"])) - 5.6), at_most=1e-6)  # fmt: skip


def ge(folder: Path) -> Iterator[Line]:
    """Dumps of MindSpore's graph engine."""
    expected = test_ge.COUNTS
    equal = sum(test_ge.counts(onnxlab.load(path)) == counts for path, counts in expected.items())
    yield Figure("ge: dumps with the nodes, data edges, control edges and ends of the table", equal,
                 at_least=len(expected))  # fmt: skip
    equal = sum(onnxlab.load(path).save(folder / path.name).read_bytes() == path.read_bytes() for path in expected)
    yield Figure("ge: texts that come back to the byte", equal, at_least=len(expected))


def glow(folder: Path) -> Iterator[Line]:
    """Glow's dialect."""
    texts = test_dialect.texts()
    docs = [doc for data in texts.values() for doc in test_dialect.docs(data)]
    yield Figure("glow: doc strings printed as they were read", sum(map(test_dialect.reprinted, docs)),
                 at_least=len(docs))  # fmt: skip
    equal = 0
    for name, data in texts.items():
        (folder / name).write_bytes(data)
        equal += onnxlab.load(folder / name).save(folder / "same.onnxtxt").read_bytes() == data
    yield Figure("glow: texts that come back to the byte", equal, at_least=len(texts))
    edited = [test_dialect.changed_lines(data, folder) for data in texts.values()]
    yield Figure("glow: texts in which an edit changes its own line alone", sum(len(lines) == 1 for lines in edited),
                 at_least=len(texts))  # fmt: skip


def shards(folder: Path) -> Iterator[Line]:
    """Weights in several files, by their index."""
    model = onnxlab.load(test_weights.model_of(a=np.zeros(4, np.int64), b=np.zeros((2, 3), np.float32)))
    replaced = model.files.load_weights(test_weights.shards(folder)).replaced
    yield Figure("weights: tensors found by the index of shards", len(replaced), at_least=2)
