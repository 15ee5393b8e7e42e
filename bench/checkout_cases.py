"""Cases by which two checkouts are timed: `python -P bench/checkout_cases.py MODELS`, with one of them on PYTHONPATH.

Only names that both know are used, so nothing of the package `bench` is imported, which each checkout has for itself.
Requests are lines of standard input, answers lines of standard output: see `serve`.
"""

import gc
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, cycle
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import onnxlab
from onnxlab.infer import Inference

Action = Callable[[], Any]
Case = tuple[str, Action]
BURST = 0.02
"""Processor seconds that calls are timed together for, as many as fit."""
WARM = 0.3
"""Processor seconds of calls that are not timed."""


def loading(files: dict[str, Path]) -> Iterator[Case]:
    """Files into models with all facts."""
    for name in ("nodes_100000", "swin_s", "bert_base", "resnet50", "gpt2_kv", "silero_vad_if", "digits", "external"):
        yield f"load {name}", partial(onnxlab.load, files[name])


def opened(path: Path) -> onnxlab.Model:
    """A model without a file behind it, so that its edits leave no journal."""
    return onnxlab.Model(onnx.load(path, load_external_data=False))


def undeclared(path: Path) -> onnxlab.Model:
    """A model that declares nothing of inner values: an old checkout may leave them stale."""
    proto = onnx.load(path, load_external_data=False)
    del proto.graph.value_info[:]
    return onnxlab.Model(proto)


def inference(files: dict[str, Path]) -> Iterator[Case]:
    """All facts of a loaded model, what nodes say remembered; and the drop-in for onnx's function."""
    for name in ("swin_s", "bert_base", "resnet50", "gpt2_kv", "rapidocr_rec", "whisper_encoder", "deep_chain_12k"):
        model = opened(files[name])
        yield f"infer {name}", partial(Inference, model.graph)
    for name in ("bert_base", "gpt2_kv"):
        yield f"infer_shapes {name}", partial(onnxlab.infer_shapes, onnx.load(files[name], load_external_data=False))


def editing(files: dict[str, Path]) -> Iterator[Case]:
    """One edit with every fact up to date, and with its undo; without a journal, then with one."""
    model = onnxlab.load(files["nodes_100000"])
    yield "100,000 nodes: set perm", with_next(attribute_of(model.nodes["turn_12500"], "perm"), [0, 2, 1], [1, 0, 2])
    model = undeclared(files["resnet50"])
    conv = next(node for node in model.nodes if node.op_type == "Conv")
    yield "resnet50: set strides", with_next(attribute_of(conv, "strides"), [1, 1], [2, 2])
    for name in ("resnet50", "bert_base"):
        for label, edit in edits(opened(files[name])):
            yield f"{name}: {label}", edit
    for label, edit in edits(onnxlab.load(files["digits"])):
        yield f"digits, journal: {label}", edit


def edits(model: onnxlab.Model) -> Iterator[Case]:
    """One of each kind, and its undo; an undo is judged with what it takes back."""
    node = next(node for node in list(model.nodes)[len(model.nodes) // 2 :] if node.inputs and node.outputs)
    value, graph = node.outputs[0], model.graph
    assert value is not None
    number = count()
    weight = next(value for value in graph.values.values() if value.initializer is not None)
    array = np.array(model.value(weight.name).array)
    holder, name = next((node, name) for node in model.nodes if node.op_type != "Constant" for name in node.attributes)
    relu = next((node for node in model.nodes if node.op_type in ("Relu", "Gelu", "Erf")), node)
    unary = cycle(("Sigmoid", "Tanh"))

    def undone(edit: Action) -> Action:
        def action() -> None:
            edit()
            model.undo()

        return action

    def together() -> None:
        with model.edit("several"):
            node.name = f"several {next(number)}"
            node.doc_string = f"step {next(number)}"

    yield "set an attribute", undone(with_next(attribute_of(holder, name), holder.attributes[name]))
    yield "rename a node", undone(lambda: setattr(node, "name", f"node {next(number)}"))
    yield "rename a value", undone(lambda: setattr(value, "name", f"value {next(number)}"))
    yield "change op_type", undone(lambda: setattr(relu, "op_type", next(unary)))
    yield "add a node", undone(lambda: model.add_node("Relu", [value]))
    yield "insert after", undone(lambda: value.insert_after("Relu"))
    yield "remove a node", undone(lambda: relu.remove(bypass=True))
    yield "connect an input", undone(lambda: relu.set_input(0, relu.inputs[0]))
    yield "set an initializer", undone(lambda: setattr(model.value(weight.name), "array", array + next(number)))
    yield "set metadata", undone(lambda: node.metadata.__setitem__("key", str(next(number))))
    yield "two in one step", undone(together)


def attribute_of(node: Any, name: str) -> Callable[[Any], None]:
    """The setter of an attribute of a node."""
    return partial(node.attributes.__setitem__, name)


def with_next(call: Callable[[Any], Any], *arguments: Any) -> Action:
    """Calls with one argument after the other."""
    turns = cycle(arguments)
    return lambda: call(next(turns))


def running(files: dict[str, Path]) -> Iterator[Case]:
    """Whole runs on NumPy, with other inputs than the last: those that keep values and those that do not."""
    for name in ("resnet50", "minilm_int8", "digits", "bert_base", "gpt2_kv"):
        model = onnxlab.load(files[name])
        feeds = [model.sample_inputs(seed=seed) for seed in (0, 1)]
        yield f"run {name}", with_next(partial(model.run, providers=["numpy"]), *feeds)
        yield f"run {name}, values kept", with_next(model.run, *feeds)
    yield "run digits, the same inputs", partial(model.run, feeds[0])


def saving(files: dict[str, Path]) -> Iterator[Case]:
    """Saving after an edit."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("nodes_100000", "swin_s", "digits"):
            model = onnxlab.load(files[name])
            model.nodes[0].name = "renamed"
            yield f"save {name}", partial(model.save, Path(folder) / "saved.onnx")


GROUPS = {"loading": loading, "inference": inference, "editing": editing, "running": running, "saving": saving}


def serve(files: dict[str, Path]) -> None:
    """Answer requests: the name of a group begins with its first case, "next" takes another, a number times the case.

    The answer to the first two is the name of the case and how many calls fit into a burst, null where none is left;
    that to a number is the processor's seconds of one call, of so many in a row.
    """
    cases: Iterator[Case] = iter(())
    action: Action | None = None
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = line.strip()
        if request.isdecimal():
            assert action is not None
            reply: Any = timed(action, int(request))
        else:
            cases, action = cases if request == "next" else GROUPS[request](files), None
            gc.collect()
            name, action = next(cases, (None, None))
            reply = None if action is None else [name, calls_in_a_burst(action)]
        print(json.dumps(reply), file=replies, flush=True)


def calls_in_a_burst(action: Action) -> int:
    """The number of calls that take BURST, at least one; earlier calls do the work that is done once."""
    until = time.process_time() + WARM
    while time.process_time() < until:
        action()
    action()
    took = timed(action, 1)
    return max(1, min(1000, round(BURST / max(took, 1e-6))))


def timed(action: Action, calls: int) -> float:
    """Seconds of the processor for one call."""
    gc.collect()
    start = time.process_time()
    for _ in range(calls):
        action()
    return (time.process_time() - start) / calls


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):  # both sides on one processor: they take turns
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    serve({name: Path(path) for name, path in json.loads(sys.argv[1]).items()})
