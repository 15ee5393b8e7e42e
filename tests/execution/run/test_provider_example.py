"""The provider that CONTRIBUTING.md shows."""

import re
from pathlib import Path

import numpy as np

import onnxlab
from tests.execution.support.models import model

TEXT = """
g (float[8] x) => (float[8] y, float[8] z) <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
    a = Mul (x, w)
    b = Tanh (a)
    c = Relu (b)
    y = Add (c, w)
    z = Exp (a)
}"""


def test_it_is_short_and_gives_what_numpy_gives():
    text = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"```python\n(import numpy.*?)```", text, re.DOTALL)
    assert len(source[source.index("class ") :].strip().splitlines()) <= 30
    names: dict[str, type] = {}
    exec(source, names)
    provider = names["Float64Provider"]()
    loaded = onnxlab.Model(model(TEXT))
    partition = loaded.partition([provider])
    assert [(part.provider, len(part.nodes)) for part in partition.parts] == [
        ("float64", 3),
        ("numpy", 1),
        ("float64", 1),
    ]
    assert "float64 left Relu#2: Relu is not elementwise" in str(partition)
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    expected = loaded.run({"x": x})
    for name, array in loaded.run({"x": x}, providers=[provider]).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-6)
