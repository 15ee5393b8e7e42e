"""Units and stages: found in how nodes are wired and in the names of parameters, in the order of the model."""

from collections import defaultdict

import pytest
from onnx import helper

import onnxlab
from bench.made.diffusion import unet
from onnxlab.graph.index.index import Index
from onnxlab.graph.query.groups import Group
from onnxlab.graph.query.hierarchy import Hierarchy
from onnxlab.graph.query.parameter_scopes import parts_of
from onnxlab.graph.query.unit_cuts import joined, narrow_places, repeated
from onnxlab.graph.query.unit_words import describe, summed_up
from onnxlab.model import Model
from tests.support.corpus import Corpus

STAGES = {
    "resnet50": [3, 4, 6, 3],
    "light_resnet50": [3, 4, 6, 3],
    "resnet101_qdq": [3, 4, 23, 3],
    "light_densenet121": [6, 12, 24, 16],
    "light_shufflenet": [4, 8, 4],
}
LAYERS = {"bert_base": [12], "minilm_int8": [6], "gpt2_kv": [12], "llama12_dyn_ext": [12], "swin_s": [2, 2, 18, 2],
          "whisper_encoder": [4]}  # fmt: skip


def groups_of(model: Model) -> list[Group]:
    """The groups of the main graph, by their last node: sources come first wherever they are read."""
    hierarchy = Hierarchy()
    hierarchy.refresh(model.graph.index)
    place = {node: number for number, node in enumerate(model.graph.index.topological(model.graph.main))}
    last: dict[int, int] = defaultdict(int)
    for group in hierarchy.groups.values():  # inner ones first
        for node in group.nodes:
            last[group.id] = max(last[group.id], place.get(node, -1))
        last[group.parent] = max(last[group.parent], last[group.id])
    main = model.graph.main.id
    return sorted(
        (group for group in hierarchy.groups.values() if group.scope == main), key=lambda group: last[group.id]
    )


@pytest.mark.parametrize("name", STAGES)
def test_units_at_one_resolution_are_a_stage(name: str, corpus: Corpus) -> None:
    groups = groups_of(onnxlab.load(corpus[name]))
    assert [group.units for group in groups if group.units] == STAGES[name]


@pytest.mark.parametrize("name", LAYERS)
def test_each_layer_of_a_transformer_is_one_group(name: str, corpus: Corpus) -> None:
    layers: dict[int, int] = {}
    for group in groups_of(onnxlab.load(corpus[name])):
        if group.about == "transformer layer":
            layers[group.parent] = layers.get(group.parent, 0) + 1
    assert list(layers.values()) == LAYERS[name]


def test_layers_without_names_hold_attention_and_mlp(corpus: Corpus) -> None:
    """Two are too few to take turns; their normalizations are in single operators."""
    names = [group.name for group in groups_of(onnxlab.load(corpus["rapidocr_rec"]))]
    assert names.count("transformer layer") == 2
    assert not {"attention", "MLP", "mean", "RMS norm"} & set(names)


def test_fire_modules_are_called_after_their_parameters(corpus: Corpus) -> None:
    names = [group.name for group in groups_of(onnxlab.load(corpus["light_squeezenet"])) if group.about == "branches"]
    assert names == [f"fire{number}" for number in range(2, 10)]


def test_what_only_makes_a_mask_is_one_group(corpus: Corpus) -> None:
    masks = [group for group in groups_of(onnxlab.load(corpus["minilm_int8"])) if group.name == "mask"]
    assert [group.size for group in masks] == [26]


def test_a_row_is_cut_where_one_value_is_live() -> None:
    # 0 -> 1 -> 2, 0 -> 2: a residual; 2 -> 3 alone
    assert narrow_places([[1, 2], [2], [3], []]) == [0, 1, 3]


def test_an_input_read_twice_is_live_between_its_readers() -> None:
    assert narrow_places([[1], [2], []]) == [0, 1, 2]
    assert narrow_places([[1], [2], []], [[0, 2]]) == [0]


def test_what_takes_turns_is_one_unit_each_time() -> None:
    kinds = ["stem", *["attention", "mlp"] * 4, "pool", "attention", "mlp"]
    pattern = repeated(kinds)
    assert pattern is not None
    assert pattern.kinds == ("attention", "mlp")
    assert joined(kinds, pattern) == [0, 1, 3, 5, 7, 9, 10]
    assert repeated(["a"] * 10) is None


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("encoder.layer.5.attention.query.weight", ("encoder", "layer.5", "attention", "query")),
        ("gpu_0/conv1_w_0", ("gpu_0",)),
        ("conv1_w_0", ("conv1",)),
        ("weight", ()),
    ],
)
def test_parameters_say_where_they_belong(name: str, parts: tuple[str, ...]) -> None:
    assert parts_of(name) == parts


@pytest.mark.parametrize(
    ("ops", "words"),
    [
        ({"MatMul": 2, "Softmax": 1}, "attention"),
        ({"MatMul": 6, "Softmax": 1, "Gelu": 1, "Add": 2}, "transformer layer"),
        ({"MatMul": 14, "Softmax": 2, "Gelu": 1, "Add": 3}, "transformer layer"),
        ({"MatMul": 16, "Softmax": 2, "Gelu": 2, "Add": 4}, "2 transformer layers"),
        ({"Conv": 3, "Relu": 3, "Add": 1}, "residual block"),
        ({"Conv": 1, "BatchNormalization": 1, "Relu": 1}, "conv · bn · relu"),
        ({"MatMul": 2, "Gelu": 1}, "MLP"),
        ({"Sigmoid": 1, "Mul": 1}, "silu"),
        ({"ReduceMean": 2, "Sub": 1, "Pow": 1, "Sqrt": 1, "Div": 1}, "layer norm"),
        ({"LSTM": 2}, "LSTM ×2"),
        ({"Gather": 3, "Add": 2, "LayerNormalization": 1}, "embedding"),
        ({"Conv": 5, "Resize": 3, "Concat": 1, "Add": 2}, "feature pyramid"),
        ({"Gather": 1, "DequantizeLinear": 1}, "embedding"),
        ({"DequantizeLinear": 2}, "dequantize"),
        ({"ReduceMax": 1, "Sub": 1, "Exp": 1, "ReduceSum": 1, "Div": 1}, "softmax"),
        ({"NonMaxSuppression": 1, "Gather": 3}, "NMS"),
        ({"Neg": 1}, ""),
    ],
)
def test_units_are_called_by_what_they_do(ops: dict[str, int], words: str) -> None:
    assert describe(ops) == words


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (["residual block", "attention ×2", "residual block", "attention ×2", "conv"],
         "residual block ×2 + attention ×2"),
        (["residual block", "transformer layer", "residual block"], "residual block ×2 + attention"),
        (["conv", "silu", ""], ""),
        (["a", "a", "b", "b", "c", "c"], ""),
    ],
)  # fmt: skip
def test_groups_are_called_after_their_parts(parts: list[str], words: str) -> None:
    assert summed_up(parts) == words


def test_groups_that_are_counted_are_one_where_many_stand_side_by_side() -> None:
    model = onnxlab.load(unet())
    families = {group.name: group for group in groups_of(model) if group.units and group.kind == "scope"}
    assert {name: group.units for name, group in families.items()} == {"down_blocks": 4, "up_blocks": 4}
    inner = [group for group in groups_of(model) if group.parent == families["up_blocks"].id]
    assert sorted(group.name for group in inner) == [f"up_blocks.{level}" for level in range(4)]


def test_families_stay_when_fewer_boxes_are_beside_them() -> None:
    model = onnxlab.load(unet())
    hierarchy = Hierarchy()
    hierarchy.refresh(model.graph.index)
    before = {group.name: group.id for group in hierarchy.groups.values() if group.units}
    for name in ("conv_act", "conv_norm_out"):
        for node in [node for node in model.nodes if node.name.startswith(f"/{name}/")]:
            node.remove(bypass=True)
    hierarchy.refresh(model.graph.index)
    assert {group.name: group.id for group in hierarchy.groups.values() if group.units} == before
    fresh = Hierarchy()
    fresh.refresh(model.graph.index)
    assert not [group for group in fresh.groups.values() if group.units], "few boxes are seen as they are"


def test_stages_stay_when_one_unit_is_edited(corpus: Corpus) -> None:
    model = onnxlab.load(corpus["light_resnet50"])
    relu = next(node for node in model.nodes if [value.name for value in node.outputs] == ["r60"])
    before = [group.units for group in groups_of(model) if group.units]
    relu.remove(bypass=True)
    assert [group.units for group in groups_of(model) if group.units] == before


def test_the_side_of_a_row_makes_no_circle() -> None:
    """A shape that is measured behind one block and used in the next does not become part of what comes before both."""
    nodes = [
        *(helper.make_node("Conv", [f"x{i}", "w"], [f"x{i + 1}"], f"conv_{i}") for i in range(12)),
        helper.make_node("Shape", ["x3"], ["s"], "measure"),
        helper.make_node("Reshape", ["x12", "s"], ["y"], "reshape"),
        helper.make_node("Shape", ["x12"], ["unread"], "measure again"),
    ]
    x, y = helper.make_tensor_value_info("x0", 1, ["n", 3, 8, 8]), helper.make_tensor_value_info("y", 1, None)
    graph = helper.make_graph(nodes, "g", [x], [y])
    graph.initializer.append(helper.make_tensor("w", 1, [3, 3, 1, 1], [0.0] * 9))
    index = Index(helper.make_model(graph))
    hierarchy = Hierarchy()
    hierarchy.refresh(index)
    home = {index.nodes[node].name: group for node, group in hierarchy.group_of.items()}
    assert home["measure"] == home["reshape"] != 0
    assert home["measure again"] == 0
