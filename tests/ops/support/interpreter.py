"""Runs a ModelProto node by node through the kernels: enough of an executor to test kernels without one."""

from types import SimpleNamespace

import numpy as np
import onnx
from onnx import AttributeProto

from onnxlab import ops, schemas


class Body:
    def __init__(self, graph, outer):
        self.graph, self.outer = graph, outer
        constant = {tensor.name for tensor in graph.initializer}
        self.inputs = [value.name for value in graph.input if value.name not in constant]
        self.outputs = [value.name for value in graph.output]
        self.output_facts = [fact(value.type) for value in graph.output]


def fact(type_proto):
    """The declared type as a kernel reads it: dtype and shape of tensors."""
    tensor = type_proto.tensor_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type) if tensor.elem_type else None
    shape = None
    if tensor.HasField("shape"):
        shape = tuple(dim.dim_value if dim.HasField("dim_value") else "?" for dim in tensor.shape.dim)
    return SimpleNamespace(dtype=dtype, shape=shape)


class Interpreter:
    """`Interpreter(model).run({input: array})` -> {output: array}."""

    def __init__(self, model):
        self.model = model
        self.opsets = {schemas.canonical_domain(o.domain): o.version for o in model.opset_import}
        self.functions = {(f.domain, f.name, f.overload): f for f in model.functions}
        self.reserved = 0

    def run(self, feeds):
        with np.errstate(all="ignore"):
            values = self.graph(self.model.graph, dict(feeds), self.opsets)
        return {value.name: values[value.name] for value in self.model.graph.output}

    def graph(self, graph, values, opsets):
        for tensor in graph.initializer:
            values.setdefault(tensor.name, onnx.numpy_helper.to_array(tensor))
        for sparse in graph.sparse_initializer:
            values.setdefault(sparse.values.name, densify(sparse))
        waiting = list(graph.node)
        while waiting:  # a file may list nodes in any order
            later = []
            for node in waiting:
                if all(not name or name in values for name in node.input):
                    self.node(node, values, opsets, {})
                else:
                    later.append(node)
            assert len(later) < len(waiting), f"{graph.name} has a cycle or a node without its inputs"
            waiting = later
        return values

    def node(self, node, values, opsets, references):
        attributes = {a.name: a for a in node.attribute}
        for name, attribute in list(attributes.items()):
            if attribute.ref_attr_name:
                attributes.pop(name)
                if attribute.ref_attr_name in references:
                    attributes[name] = references[attribute.ref_attr_name]
        domain = schemas.canonical_domain(node.domain)
        function = self.functions.get((node.domain, node.op_type, node.overload))
        inputs = [values[name] if name else None for name in node.input]
        if function is not None:
            outputs = self.function(function, inputs, attributes)
        else:
            outputs = self.kernel(node, domain, inputs, attributes, values, opsets)
        for name, value in zip(node.output, outputs, strict=False):
            if name:
                values[name] = np.asarray(value) if isinstance(value, np.generic) else value

    def function(self, function, inputs, attributes):
        references = {a.name: a for a in function.attribute_proto} | attributes
        values = dict(zip(function.input, inputs, strict=False))
        for name in function.input:
            values.setdefault(name, None)
        opsets = {schemas.canonical_domain(o.domain): o.version for o in function.opset_import}
        for node in function.node:
            self.node(node, values, opsets, references)
        return [values[name] for name in function.output]

    def kernel(self, node, domain, inputs, attributes, values, opsets):
        schema = schemas.find(domain, node.op_type, opsets.get(domain, 1))
        entry = ops.find_kernel(domain, node.op_type, schema.since_version if schema else opsets.get(domain, 1))
        if entry is None:
            raise NotImplementedError(f"{domain}::{node.op_type}")
        decoded = {
            name: a.default for name, a in (schema.attributes if schema else {}).items() if a.default is not None
        }
        decoded |= {name: self.attribute(a, values, opsets) for name, a in attributes.items()}
        if entry.context:
            inputs = [self.context(node, opsets), *inputs]
        outputs = entry.function(*inputs, **decoded)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def attribute(self, attribute, values, opsets):
        if attribute.type == AttributeProto.GRAPH:
            return Body(attribute.g, (values, opsets))
        if attribute.type == AttributeProto.TENSOR:
            return onnx.numpy_helper.to_array(attribute.t)
        if attribute.type == AttributeProto.SPARSE_TENSOR:
            return densify(attribute.sparse_tensor)
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            return value.decode()
        if attribute.type == AttributeProto.STRINGS:
            return [item.decode() for item in value]
        return value

    def context(self, node, opsets):
        def run(body, feeds):
            outer, inner_opsets = body.outer
            values = dict(outer)
            for name in body.inputs + body.outputs + [t.name for t in body.graph.initializer]:
                values.pop(name, None) if name not in body.outputs else None
            values |= zip(body.inputs, feeds, strict=True)
            values = self.graph(body.graph, values, inner_opsets)
            return [values[name] for name in body.outputs]

        def reserve(nbytes, what=""):
            assert nbytes >= 0
            self.reserved = max(self.reserved, int(nbytes))

        return SimpleNamespace(
            node=node.name,
            outputs=tuple(bool(name) for name in node.output),
            rng=np.random.default_rng(0),
            opset_version=lambda domain="": opsets.get(domain, 0),
            reserve=reserve,
            check=lambda: None,
            run=run,
            repeat=lambda body, repetition, most, feeds: None,
        )


def densify(sparse):
    values = onnx.numpy_helper.to_array(sparse.values)
    indices = onnx.numpy_helper.to_array(sparse.indices)
    dense = np.zeros(tuple(sparse.dims), values.dtype)
    if indices.ndim == 1:
        dense.reshape(-1)[indices] = values
    else:
        dense[tuple(indices.T)] = values
    return dense


def close(expected, actual, rtol=1e-4, kind_check=True):
    """None when `actual` is what ONNX Runtime computed, within the project's tolerances; else a text."""
    if isinstance(expected, (list, dict)) and not isinstance(expected, np.ndarray):
        if not isinstance(actual, type(expected)) or len(expected) != len(actual):
            return f"{type(actual).__name__} of {len(actual) if hasattr(actual, '__len__') else '?'}"
        if isinstance(expected, dict):
            if expected.keys() != actual.keys():  # type: ignore[union-attr]
                return f"keys {list(actual)[:5]}"
            pairs = [(expected[key], actual[key]) for key in expected]
        else:
            pairs = list(zip(expected, actual, strict=True))
        return next((text for e, a in pairs if (text := close(e, a, rtol, False))), None)
    if expected is None or actual is None:
        return None if expected is actual else f"{actual!r} instead of {expected!r}"
    e, a = np.asarray(expected), np.asarray(actual)
    if kind_check and e.dtype != a.dtype and not (e.dtype.kind in "OU" and a.dtype.kind in "OU"):
        return f"dtype {a.dtype} instead of {e.dtype}"
    if e.shape != a.shape:
        return f"shape {a.shape} instead of {e.shape}"
    if e.dtype.kind in "OU":
        return None if all(x == y for x, y in zip(e.flat, a.flat, strict=True)) else "other strings"
    if e.dtype.kind == "b":
        return None if (e == a).all() else f"{(e != a).sum()} of {e.size} bools differ"
    e, a = e.astype("c16" if e.dtype.kind == "c" else "f8"), a.astype("c16" if e.dtype.kind == "c" else "f8")
    if not (np.isnan(e) == np.isnan(a)).all():
        return f"{np.isnan(a).sum()} NaN instead of {np.isnan(e).sum()}"
    finite = np.isfinite(e)
    if not (finite == np.isfinite(a)).all() or not (e[~finite & ~np.isnan(e)] == a[~finite & ~np.isnan(a)]).all():
        return "infinities differ"
    worst = np.abs(e[finite] - a[finite]).max(initial=0)
    scale = np.abs(e[finite]).max(initial=0)
    return None if worst <= rtol * scale + 1e-30 else f"off by {worst:g} where the largest is {scale:g}"
