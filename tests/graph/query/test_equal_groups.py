"""Equal groups, against copies found wire by wire."""

import pytest

import onnxlab
from onnxlab.graph.query.block_copies import find_copies
from onnxlab.graph.query.equal_groups import equal_groups
from onnxlab.graph.query.hierarchy import Hierarchy
from tests.support.corpus import path


def classes(model: onnxlab.Model) -> tuple[Hierarchy, list[list[int]]]:
    hierarchy = Hierarchy()
    hierarchy.refresh(model.graph.index)
    return hierarchy, equal_groups(model.graph, hierarchy)


def inside(hierarchy: Hierarchy, group: int) -> list[int]:
    return [node for node, home in hierarchy.group_of.items() if group in around(hierarchy, home)]


def around(hierarchy: Hierarchy, group: int) -> list[int]:
    groups = []
    while group:
        groups.append(group)
        group = hierarchy.groups[group].parent
    return groups


@pytest.mark.parametrize("name", ["bert_base", "mobilenet_fp16"])
def test_equal_groups_are_copies_of_each_other(name: str) -> None:
    model = onnxlab.load(path(name))
    hierarchy, equal = classes(model)
    assert equal
    for first, *others in equal[:6]:
        block = [model.graph.nodes[node] for node in inside(hierarchy, first)]
        copies = {frozenset(copy.values()) for copy in find_copies(model.graph, block)}
        assert all(frozenset(inside(hierarchy, other)) in copies for other in others)


def test_layers_are_twelve_until_one_is_changed() -> None:
    model = onnxlab.load(path("bert_base"))
    hierarchy, _ = classes(model)

    def layers() -> list[int]:
        hierarchy.refresh(model.graph.index)
        names = [[hierarchy.path(group) for group in groups] for groups in equal_groups(model.graph, hierarchy)]
        return [len(paths) for paths in names if any(name.endswith(("layer.5", "layer.6")) for name in paths)]

    before = layers()
    assert max(before) >= 11  # the first one makes the mask too
    node = next(
        node for node in inside(hierarchy, next(g for g in hierarchy.groups if hierarchy.path(g).endswith("layer.5")))
        if model.graph.nodes[node].proto.op_type == "LayerNormalization"
    )  # fmt: skip
    model.node(node).attributes["epsilon"] = 0.5
    assert max(layers()) == max(before) - 1
    model.undo()
    assert layers() == before
