"""Small models and fingerprints for the tests of the graph layer."""

from typing import Any

import onnx
from onnx import TensorProto, helper

from onnxlab.graph.edit.model_graph import ModelGraph


def tensor(name: str, shape: list[int | str] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def chain() -> onnx.ModelProto:
    """x -> Conv c -> BatchNormalization-free Relu r -> Add a (with the conv's output) -> y, declared in between."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c_out"], name="c", strides=[2, 2], auto_pad="NOTSET"),
        helper.make_node("Relu", ["c_out"], ["r_out"], name="r"),
        helper.make_node("Add", ["r_out", "c_out"], ["y"], name="a"),
    ]
    weights = [helper.make_tensor("w", TensorProto.FLOAT, [4, 3, 1, 1], [0.5] * 12)]
    graph = helper.make_graph(nodes, "chain", [tensor("x", ["N", 3, 8, 8])], [tensor("y", ["N", 4, 4, 4])], weights)
    graph.value_info.append(tensor("r_out", ["N", 4, 4, 4]))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def branches() -> onnx.ModelProto:
    """An If whose branches capture `h`, one of them in a nested If; and a function that is called twice."""
    deep = helper.make_graph(
        [helper.make_node("Neg", ["h"], ["deep_out"], name="neg")], "deep", [], [tensor("deep_out")]
    )
    flat = helper.make_graph(
        [helper.make_node("Abs", ["h"], ["flat_out"], name="abs")], "flat", [], [tensor("flat_out")]
    )
    inner = helper.make_node("If", ["flag"], ["inner_out"], name="inner", then_branch=deep, else_branch=flat)
    then = helper.make_graph([inner], "then", [], [tensor("inner_out")])
    otherwise = helper.make_graph(
        [helper.make_node("Exp", ["h"], ["exp_out"], name="exp")], "else", [], [tensor("exp_out")]
    )
    nodes = [
        helper.make_node("Twice", ["x"], ["h"], name="t1", domain="local"),
        helper.make_node("If", ["flag"], ["chosen"], name="if", then_branch=then, else_branch=otherwise),
        helper.make_node("Twice", ["chosen"], ["y"], name="t2", domain="local"),
    ]
    twice = helper.make_function(
        "local", "Twice", ["v"], ["out"], [helper.make_node("Add", ["v", "v"], ["out"], name="add")],
        [helper.make_opsetid("", 20)],
    )  # fmt: skip
    flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
    graph = helper.make_graph(nodes, "branches", [tensor("x", [2]), flag], [tensor("y", [2])])
    return helper.make_model(
        graph,
        functions=[twice],
        ir_version=9,
        opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("local", 1)],
    )


def untidy() -> onnx.ModelProto:
    """Nodes out of order, one dead, a Constant, spare inputs, tensors, imports and functions, defaults written out."""
    constant = helper.make_tensor("", TensorProto.FLOAT, [4], [1.0, 2.0, 3.0, 4.0])
    nodes = [
        helper.make_node("Add", ["r", "c"], ["s"], name="add"),
        helper.make_node("LeakyRelu", ["m"], ["r"], name="leaky", alpha=0.01, doc_string="leaks"),
        helper.make_node("MatMul", ["x", "w"], ["m"], name="mm"),
        helper.make_node("Constant", [], ["c"], name="const", value=constant),
        helper.make_node("Neg", ["x"], ["dead_out"], name="dead"),
        helper.make_node("ReduceSum", ["s", "axes"], ["y"], name="sum", keepdims=1),
        helper.make_node("Used", ["y"], ["z"], name="call", domain="local", factor=2.0),
    ]
    nodes[1].metadata_props.add(key="k", value="v")
    scaled = helper.make_node("Elu", ["a"], ["b"], name="elu")
    scaled.attribute.add(name="alpha", ref_attr_name="factor", type=onnx.AttributeProto.FLOAT)
    twenty = [helper.make_opsetid("", 20)]
    used = helper.make_function("local", "Used", ["a"], ["b"], [scaled], twenty, attributes=["factor"])
    spare = helper.make_function("local", "Spare", ["a"], ["b"], [helper.make_node("Abs", ["a"], ["b"])], twenty)
    stored = [
        helper.make_tensor("w", TensorProto.FLOAT, [4, 4], [0.5] * 16),
        helper.make_tensor("axes", TensorProto.INT64, [1], [1]),
        helper.make_tensor("unused", TensorProto.FLOAT, [2], [1.0, 2.0]),
    ]
    axes = helper.make_tensor_value_info("axes", TensorProto.INT64, [1])
    inputs = [tensor("x", ["N", 4]), tensor("spare", [1]), axes]
    graph = helper.make_graph(nodes, "untidy", inputs, [tensor("z", ["N", 1])], stored, doc_string="as it came")
    opsets = [helper.make_opsetid(*opset) for opset in (("", 20), ("local", 1), ("other", 3))]
    model = helper.make_model(graph, functions=[used, spare], ir_version=9, opset_imports=opsets)
    model.metadata_props.add(key="author", value="unknown")
    return model


def state(graph: ModelGraph) -> Any:
    """Everything that the index knows, ids included, in a form that compares."""
    nodes = {
        key: (node.scope, tuple(node.inputs), tuple(node.outputs), node.name, graph.scopes[node.scope].position(node))
        for key, node in graph.nodes.items()
    }
    values = {
        key: (
            value.name, value.scope, sorted(value.producers), sorted(value.uses), sorted(value.formal_outputs),
            value.is_input, value.initializer is not None, value.info and value.info.SerializeToString(),
        )
        for key, value in graph.values.items()
    }  # fmt: skip
    scopes = {
        key: (
            scope.kind,
            tuple(scope.inputs),
            tuple(scope.outputs),
            dict(scope.names),
            scope.order(),
            set(scope.backward),
        )
        for key, scope in graph.scopes.items()
    }
    return nodes, values, scopes, set(graph.index.undefined)


def nameless(graph: ModelGraph) -> Any:
    """The same without ids, so that it compares with an index rebuilt from the protos."""

    def place(node: int) -> tuple[str, int]:
        scope = graph.scopes[graph.nodes[node].scope]
        return graph.scope_path(scope), scope.position(graph.nodes[node])

    def name(value: int) -> tuple[str, str] | None:
        record = graph.values.get(value)
        return record and (graph.scope_path(graph.scopes[record.scope]), record.name)  # type: ignore[return-value]

    nodes = {
        place(key): ([name(vid) for vid in node.inputs], [name(vid) for vid in node.outputs], sorted(node.bodies))
        for key, node in graph.nodes.items()
    }
    values = {
        name(key): (
            sorted((*place(node), slot) for node, slot in value.producers),
            sorted((*place(node), slot) for node, slot in value.uses),
            sorted((graph.scope_path(graph.scopes[scope]), at) for scope, at in value.formal_outputs),
            value.is_input, value.initializer is not None, value.info and value.info.SerializeToString(),
        )
        for key, value in graph.values.items()
    }  # fmt: skip
    order = {
        graph.scope_path(scope): sorted((place(a), place(b)) for a, b in scope.backward)
        for scope in graph.scopes.values()
    }
    return nodes, values, order, sorted(str(name(vid)) for vid in graph.index.undefined)
