"""Random graphs in 8 bits, against onnxruntime: as they are written, and as it fuses them; undone to the byte."""

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import onnxlab
from tests.support.oracle import Oracle
from tests.transforms.quantization.test_static_int8 import Arrays, fused


def random_network(seed: int) -> tuple[onnx.ModelProto, list[str]]:
    """A graph of random nodes, with channels of zeros, constants of one number, and weights that are read twice."""
    rng = np.random.default_rng(seed)
    weights: Arrays = {}
    lines, images, flats = [], ["x"], []

    def stored(*shape: int) -> str:
        name = f"w{len(weights)}"
        array = rng.normal(size=shape) * rng.choice([0.0, 1e-3, 1.0], size=(shape[0], *[1] * (len(shape) - 1)))
        weights[name] = array.astype(np.float32)
        same = [other for other, known in weights.items() if known.shape == shape]
        return str(rng.choice(same)) if seed % 2 else name

    for number in range(12):
        y, a, b = f"v{number}", str(rng.choice(images)), str(rng.choice(images))
        lines.append(f"{y} = " + str(rng.choice([
            f"Conv<pads = [1,1,1,1]>({a}, {stored(4, 4, 3, 3)}, {stored(4)})",
            f"Conv({a}, {stored(4, 4, 1, 1)})",
            f"Add({a}, {b})", f"Mul({a}, {stored(4, 1, 1)})", f"Relu({a})", f"Sigmoid({a})",
            f"MaxPool<kernel_shape = [3,3], pads = [1,1,1,1]>({a})", f"Transpose<perm = [0,1,3,2]>({a})",
            f"LeakyRelu({a})", f"AveragePool<kernel_shape = [3,3], pads = [1,1,1,1]>({a})",
            f"MatMul({a}, {stored(6, 6)})", f"MatMul({a}, {b})", f"Tanh({a})",
        ])))  # fmt: skip
        images.append(y)
        if rng.random() < 0.3:
            lines.append(f"f{number} = Flatten({y}) g{number} = Gemm(f{number}, {stored(144, 5)}, {stored(5)})")
            flats.append(f"g{number}")
    outputs = [images[-1], *flats, str(rng.choice(images[1:-1]))]
    declared = ", ".join(f"float[] {name}" for name in dict.fromkeys(outputs))
    text = f'<ir_version: 9, opset_import: ["" : 18]> g (float[n,4,6,6] x) => ({declared}) {{ {" ".join(lines)} }}'
    proto = onnx.parser.parse_model(text)
    for output in proto.graph.output:
        output.type.tensor_type.ClearField("shape")
    proto.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return proto, list(dict.fromkeys(outputs))


@pytest.mark.parametrize("seed", range(24))
def test_random_graphs_compute_as_onnxruntime_says(seed: int, ort_run: Oracle, tmp_path: Path) -> None:
    proto, names = random_network(seed)
    rng = np.random.default_rng(seed)
    feeds = [{"x": rng.normal(size=(2, 4, 6, 6)).astype(np.float32)} for _ in range(3)]
    model = onnxlab.load(proto)
    start = model.to_bytes()
    model.quantize("int8", calibrate=iter(feeds), ranges=("minmax", "percentile", "mse")[seed % 3])
    assert not [entry for entry in model.diagnostics if entry.severity == "error"]
    now, expected = model.run(feeds[0]), ort_run(model.to_bytes(), feeds[0], names)
    fast = expected
    if seed % 2 == 0:  # onnxruntime 1.31 with x64quantprecision refuses a weight that two products read
        fast = dict(zip(names, fused(model.to_bytes(), tmp_path)[0].run(names, feeds[0]), strict=True))
    for name in names:
        peak = np.max(np.abs(expected[name])) or 1.0
        assert np.mean(np.abs(now[name] - expected[name])) / peak < 1e-3, name  # single roundings may fall otherwise
        assert np.mean(np.abs(fast[name] - expected[name])) / peak < 0.02, name
    left = {node.proto.op_type for node in model.graph.nodes.values()}
    assert {"QuantizeLinear"} <= left or not model.history.labels
    if model.history.labels:
        model.undo()
    assert model.to_bytes() == start
