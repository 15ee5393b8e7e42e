import threading

import numpy as np
import onnx
import pytest

from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.ort import provider
from onnxlab.execution.ort.provider import OnnxRuntimeProvider
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.limits import Limits
from tests.execution.support.models import runner


def mixed(text_or_graph):
    providers = (OnnxRuntimeProvider(), NumpyProvider())
    if isinstance(text_or_graph, str):
        return runner(text_or_graph, providers=providers)
    return Runner(text_or_graph, Inference(text_or_graph).fact, providers)


def test_it_takes_what_it_can_and_says_why_not():
    run = mixed(
        """
    g (float[n] x) => (float[n] y) {
        a = Relu (x)
        b = Mul (a, w)
        c = local.Own (b)
        d = Neg (c)
        y = Exp (d)
    }
    <domain: "local", opset_import: ["" : 20]>
    Own (p) => (q) { q = Abs (p) }
    """.replace("=> (float[n] y) {", "=> (float[n] y) <float[1] w = {-2}> {", 1)
    )
    partition = run.partition()
    assert [(part.provider, len(part.nodes)) for part in partition.parts] == [
        ("onnxruntime", 2),
        ("numpy", 1),
        ("onnxruntime", 2),
    ]
    assert [refusal.reason for refusal in partition.refusals] == ["it calls a function of the model"]
    x = np.array([-1, 0.5], np.float32)
    for keep in (False, True):
        np.testing.assert_allclose(run.run({"x": x}, keep=keep)["y"], np.exp([-0.0, -1.0]), rtol=1e-6)


def test_it_takes_what_an_inlined_call_computes():
    run = mixed(
        """
    g (float[n] x) => (float[n] y) { c = local.Own (x) y = Exp (c) }
    <domain: "local", opset_import: ["" : 21]>
    Own (p) => (q) { q = Abs (p) }
    """
    )
    partition = run.partition()
    assert [(part.provider, len(part.nodes)) for part in partition.parts] == [("onnxruntime", 2)]
    assert not partition.refusals


def test_an_operator_without_kernel_is_left():
    run = mixed("g (uint8[n] x) => (uint8[n] y) { y = BitwiseXor (x, x) z = Erf (x) }")
    refused = {refusal.label: refusal.reason for refusal in run.partition(["y", "z"]).refusals}
    assert list(refused) == ["Erf#1"]
    assert refused["Erf#1"]


@pytest.mark.parametrize("name", ["resnet50", "gpt2_kv", "rapidocr_cls", "silero_vad_op18_ifless"])
def test_models_through_both_providers(name, corpus, feeds, ort_run):
    graph = ModelGraph(onnx.load(corpus[name]), corpus[name].parent)
    run = mixed(graph)
    assert "onnxruntime" in {part.provider for part in run.partition().parts}
    expected = ort_run(corpus[name], feeds(name))
    for output, array in run.run(feeds(name), keep=False).items():
        np.testing.assert_allclose(array, expected[output], atol=2e-4 * np.abs(expected[output]).max(), rtol=0)


def test_a_part_that_does_not_compile_falls_to_the_last_provider(monkeypatch):
    first_session = provider._session

    def broken(model, *options):
        if len(model.graph.node) > 1:
            raise RuntimeError("no room")
        return first_session(model, *options)

    monkeypatch.setattr(provider, "_session", broken)
    providers = (OnnxRuntimeProvider(), NumpyProvider())
    run = runner("g (float[n] x) => (float[n] y) { a = Relu (x) y = Neg (a) }", providers=providers)
    with pytest.warns(UserWarning, match="onnxruntime claimed a part and failed to compile it: .*no room"):
        assert run.run({"x": [1.0, -2.0]})["y"].tolist() == [-1, 0]


def test_it_is_told_to_terminate():
    """Forty products of three quarters of a second in all, of which the call makes a few."""
    products = " ".join(f"v{i + 1} = MatMul (v{i}, v0)" for i in range(40))
    run = mixed(f"g (float[n, n] v0) => (float[n, n] v40) {{ {products} }}")
    (part,) = run.partition().parts
    view = Compiler(run.graph.snapshot(), run.programs.providers, run._fact).main.view(["v0"], ["v40"])
    session = run.programs.providers[0].compile(part, view).call
    x = np.zeros((1200, 1200), np.float32)
    limits = Limits().begin()
    threading.Timer(0.1, limits.end).start()
    with pytest.raises(Exception, match=r"[Tt]erminate"):
        session(limits, x)  # of the context it asks for `listening`
    run.run({"v0": x[:4, :4]}, keep=False)
