"""Classifiers with labels that are strings run compiled, and choose what ONNX Runtime and NumPy choose."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab.execution.numba.provider import NumbaProvider
from tests.ops.support.random_ml import TRANSFORMS, Trees, floats, node_model
from tests.support.oracle import new_session

ML = "ai.onnx.ml"
TEXTS = ["b", "a", "zwölf", "a"]  # not in order, one of them twice
COMPILED = [NumbaProvider(background=False, least=0), "numpy"]


def linear(rng, classes, transform):
    rows = 1 if classes == 2 and rng.integers(2) else classes
    coefficients, intercepts = (np.round(floats(rng, count)).tolist() for count in (rows * 3, rows))
    return "LinearClassifier", {"coefficients": coefficients, "intercepts": intercepts, "post_transform": transform}


def machines(rng, classes, transform):
    counts = rng.integers(1, 4, classes).tolist()
    total, pairs = sum(counts), classes * (classes - 1) // 2
    return "SVMClassifier", {
        "coefficients": floats(rng, (classes - 1) * total).tolist(), "vectors_per_class": counts,
        "support_vectors": floats(rng, total * 3).tolist(), "rho": floats(rng, pairs).tolist(),
        "kernel_type": "RBF", "kernel_params": [0.3, 0.2, 2.0], "post_transform": transform,
    }  # fmt: skip


def trees(rng, classes, transform):
    forest = Trees(rng, 3)
    votes = forest.votes("class", classes, 1 if classes == 2 else "all")
    return "TreeEnsembleClassifier", forest.nodes | votes | {"post_transform": transform}


@pytest.mark.parametrize("transform", TRANSFORMS[:3])
@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("make", [linear, machines, trees])
def test_labels_are_those_of_onnxruntime_and_numpy(make, classes, transform):
    rng = np.random.default_rng(classes * 10 + len(transform))
    for rows in (1, 40, 300):
        op_type, attributes = make(rng, classes, transform)
        x = np.round(floats(rng, rows, 3) * 2) / 2  # ties
        model = node_model(op_type, x, attributes | {"classlabels_strings": TEXTS[:classes]}, 2, 3)
        expected, scores = new_session(model, None).run(None, {"x": x})
        ours = onnxlab.load(model)
        for providers in (["numpy"], COMPILED, COMPILED):
            labels, values = ours.run({"x": x}, providers=providers).values()
            assert labels.dtype == object
            assert labels.tolist() == expected.tolist()
            np.testing.assert_allclose(values, scores, 1e-5, 1e-6)
        counts = {part.provider: len(part.nodes) for part in ours.partition(providers=COMPILED).parts}
        assert counts == {"numba": 1, "numpy": 1}
        if make is not linear:  # NaN is a score that wins or not by the order of comparisons
            x[::3, 1] = np.nan
        expected, _ = new_session(model, None).run(None, {"x": x})
        assert ours.run({"x": x}, providers=COMPILED)["y0"].tolist() == expected.tolist()


FUNCTION = """
<domain: "ai.onnx.ml", opset_import: ["" : 18]>
LinearClassifier (x) => (label, scores) { scores = Identity (x)  label = Constant <value_strings = ["own"]> () }
"""


def classifier(**attributes):
    labels = {"coefficients": [1.0, 0, 0, 0, 1, 0, 0, 0, 1], "intercepts": [0.0] * 3,
              "classlabels_strings": ["one", "two", "three"]}  # fmt: skip
    return helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain=ML, **labels | attributes)


def graph_model(nodes, outputs, functions=(), inputs=()):
    """A model on x [n, 3] whose outputs are (name, element type)."""
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])]
    infos += [helper.make_tensor_value_info(name, TensorProto.FLOAT16, ["n"]) for name in inputs]
    results = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs]
    graph = helper.make_graph(nodes, "g", infos, results)
    imports = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9, functions=functions).SerializeToString()


X = np.float32([[0, 2, 1], [3, 0, 1], [0, 1, 5], [1, 1, 1]])
CHOSEN = ["two", "one", "three", "one"]
BOTH = [("label", TensorProto.STRING), ("scores", TensorProto.FLOAT)]


def test_labels_that_other_nodes_read():
    nodes = [classifier(), helper.make_node("Identity", ["label"], ["same"]),
             helper.make_node("LabelEncoder", ["label"], ["number"], domain=ML, keys_strings=["one", "two", "three"],
                              values_int64s=[1, 2, 3])]  # fmt: skip
    data = graph_model(nodes, [("same", TensorProto.STRING), ("number", TensorProto.INT64)])
    model = onnxlab.load(data)
    for _ in range(3):
        results = model.run({"x": X}, providers=COMPILED)
        assert results["same"].tolist() == CHOSEN
        assert results["number"].tolist() == [2, 1, 3, 1]
    assert model.values["label"].tolist() == CHOSEN, "a look sees strings"
    assert model.run({"label": np.array(["three"], object)}, ["number"], providers=COMPILED)["number"].tolist() == [3]
    model.nodes[0].attributes["classlabels_strings"] = ["three", "two", "one"]
    results = model.run({"x": X}, providers=COMPILED)
    assert results["number"].tolist() == [2, 3, 1, 3], "after an edit"
    model.undo()
    assert model.run({"x": X}, providers=COMPILED)["number"].tolist() == [2, 1, 3, 1]


def test_maps_of_strings_behind():
    zipped = helper.make_node("ZipMap", ["scores"], ["maps"], domain=ML, classlabels_strings=["one", "two", "three"])
    data = graph_model([classifier(), zipped], [BOTH[0]])
    proto = onnx.load_from_string(data)
    kind = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    proto.graph.output.append(helper.make_value_info("maps", helper.make_sequence_type_proto(kind)))
    data = proto.SerializeToString()
    expected, model = new_session(data, None).run(None, {"x": X}), onnxlab.load(data)
    for _ in range(3):
        results = model.run({"x": X}, providers=COMPILED)
        assert results["label"].tolist() == expected[0].tolist()
        assert results["maps"] == expected[1]


def test_names_that_the_place_would_have():
    """Of values that nothing reads, too."""
    nodes = [classifier(), helper.make_node("Neg", ["x"], ["place of label 1"])]
    model = onnxlab.load(graph_model(nodes, [*BOTH, ("place of label 1", TensorProto.FLOAT)],
                                     inputs=["place of label"]))  # fmt: skip
    feeds = {"x": X, "place of label": np.float16([7, 7, 7, 7])}
    for _ in range(3):
        results = model.run(feeds, providers=COMPILED)
        assert results["label"].tolist() == CHOSEN
        np.testing.assert_array_equal(results["place of label 1"], -X)


def test_a_function_of_the_classifiers_name_is_called():
    function = onnx.parser.parse_function(FUNCTION)
    call = helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain=ML, classlabels_strings=["a", "b"],
                            coefficients=[1.0] * 6, intercepts=[0.0, 1.0])  # fmt: skip
    model = onnxlab.load(graph_model([call], BOTH, [function]))
    assert model.run({"x": X}, providers=COMPILED)["label"].tolist() == ["own"]


@pytest.mark.parametrize("texts", [["one", "two", "three"], ["one"]])
def test_one_score_for_other_than_two_labels(texts):
    """The labels are "0" and "1"; ONNX Runtime, which had these once, refuses such models now."""
    data = graph_model([classifier(classlabels_strings=texts, coefficients=[1.0, -1, 0], intercepts=[0.0])], BOTH)
    for providers in (["numpy"], COMPILED):
        results = onnxlab.load(data).run({"x": X}, providers=providers)
        assert results["label"].tolist() == ["0", "1", "0", "0"]


def test_labels_in_bodies_and_functions():
    """A reference to an attribute of the function has strings only where the function is called."""
    inner = helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain=ML,
                             coefficients=[1.0, 0, 0, 0, 1, 0], intercepts=[0.0, 0.0])  # fmt: skip
    inner.attribute.append(onnx.AttributeProto(name="classlabels_strings", ref_attr_name="names",
                                               type=onnx.AttributeProto.STRINGS))  # fmt: skip
    function = helper.make_function("own", "Choose", ["x"], ["label", "scores"], [inner],
                                    [helper.make_opsetid(ML, 3)], ["names"])  # fmt: skip
    call = helper.make_node("Choose", ["x"], ["label", "scores"], domain="own", names=["left", "right"])
    proto = onnx.load_from_string(graph_model([call], BOTH, [function]))
    proto.opset_import.append(helper.make_opsetid("own", 1))
    model = onnxlab.load(proto.SerializeToString())
    expected = new_session(proto.SerializeToString(), None).run(None, {"x": X})[0].tolist()
    for providers in (["numpy"], COMPILED, COMPILED):
        assert (
            model.run({"x": X}, providers=providers)["label"].tolist() == expected == ["right", "left", "right", "left"]
        )


def test_onnxruntime_takes_the_table_too():
    model = onnxlab.load(graph_model([classifier()], BOTH))
    (part,) = model.partition(providers=["onnxruntime", "numpy"]).parts
    assert part.provider == "onnxruntime"
    assert model.run({"x": X}, providers=["onnxruntime", "numpy"])["label"].tolist() == CHOSEN
