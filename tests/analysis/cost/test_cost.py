"""Operations and bytes of nodes against counts made by hand; the machine's roofline."""

import doctest
import json
from pathlib import Path

import onnx.parser
import pytest

import onnxlab
from onnxlab.analysis.cost import roofline as module
from onnxlab.analysis.cost.roofline import Roofline, roofline
from onnxlab.cli import main
from onnxlab.execution.numba.machine import object_cache
from tests.support import corpus

HEADER = '<ir_version: 9, opset_import: ["" : 18]> g (float[n,16] x) => (float[n,4] y)'
WEIGHT = f"w = Constant <value = float[16,4] {{{', '.join(['1'] * 64)}}}> ()"


def parsed(text: str) -> onnxlab.Model:
    return onnxlab.load(onnx.parser.parse_model(text))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own."""
    monkeypatch.setenv(object_cache.FOLDER_VARIABLE, str(tmp_path))
    object_cache.folder.cache_clear()
    yield object_cache.folder()
    object_cache.folder.cache_clear()


def test_a_product_and_its_bytes() -> None:
    cost = parsed(f"{HEADER} {{ {WEIGHT} y = MatMul(x, w) }}").cost(n=8)
    product = cost.nodes[1]
    assert (product.flops, product.read, product.written) == (2 * 8 * 4 * 16, 4 * (8 * 16 + 64), 4 * 8 * 4)
    assert product.intensity == product.flops / (product.read + product.written)
    assert product.least == cost.roofline.seconds(product.flops, product.nbytes)
    assert (cost.nodes[0].nbytes, cost.nodes[0].bound) == (0, "nothing")


def test_views_move_nothing_and_of_a_table_only_what_is_taken() -> None:
    text = (
        '<ir_version: 9, opset_import: ["" : 18]> g (float[1000,16] t, int64[2] i) => (float[32] y, int64[2] s) '
        "{ a = Gather(t, i) f = Constant <value = int64[1] {-1}> () y = Reshape(a, f) s = Shape(t) }"
    )
    works = {work.op: work for work in parsed(text).cost().nodes}
    assert (works["Gather"].read, works["Gather"].written) == (2 * 16 * 4 + 2 * 8, 2 * 16 * 4)
    assert works["Reshape"].nbytes == 0
    assert (works["Shape"].read, works["Shape"].written) == (0, 16)


def test_bodies_count_as_often_as_they_run() -> None:
    text = (
        '<ir_version: 9, opset_import: ["" : 18]> g (float[16] x) => (float[16] y) '
        "{ m = Constant <value = int64 {5}> () c = Constant <value = bool {1}> () "
        "y = Loop(m, c, x) <body = b (int64 i, bool k, float[16] v) => (bool k2, float[16] r) "
        "{ k2 = Identity(k) r = Exp(v) }> }"
    )
    cost = parsed(text).cost()
    exp = parsed('<ir_version: 9, opset_import: ["" : 18]> g (float[16] x) => (float[16] y) { y = Exp(x) }').cost()
    assert cost.total.flops == 5 * exp.total.flops > 0
    assert cost.iterating == ()
    unknown = parsed(
        '<ir_version: 9, opset_import: ["" : 18]> g (float[16] x, int64 m) => (float[16] y) '
        "{ c = Constant <value = bool {1}> () "
        "y = Loop(m, c, x) <body = b (int64 i, bool k, float[16] v) => (bool k2, float[16] r) "
        "{ k2 = Identity(k) r = Exp(v) }> }"
    ).cost()
    assert unknown.total.flops == exp.total.flops
    assert len(unknown.iterating) == 1
    assert "bodies that count once" in str(unknown)


@pytest.mark.parametrize("name", ["light_squeezenet", "surfaces_mlp"])
def test_operations_are_those_of_a_run(name: str) -> None:
    path = corpus.path(name)
    model, feeds = onnxlab.load(path), corpus.inputs(name, path)
    assert model.cost(inputs=feeds).total.flops == model.profile(feeds, runs=1).flops


def test_functions_count_their_nodes() -> None:
    model = onnxlab.load()
    before = model.cost(batch=2).total
    model.make_function([node for node in model.nodes if node.name.startswith("/block1/")], "Block")
    after = model.cost(batch=2).total
    assert (after.flops, after.read, after.written) == (before.flops, before.read, before.written)


def test_groups_and_operators_add_up() -> None:
    cost = onnxlab.load().cost(batch=2)
    for works in (cost.by_group(), cost.by_operator(), cost.by_group(depth=2)):
        assert sum(work.flops for work in works) == cost.total.flops
        assert sum(work.nodes for work in works) == 24


def test_measured_times_stand_beside_the_least() -> None:
    cost = onnxlab.load().cost(batch=2, measure=True, runs=1)
    assert cost.total.seconds > 0
    assert 0 < cost.total.share_of_roofline < 2
    assert "of the roofline" in str(cost)
    assert cost.heaviest(1)[0].seconds == max(work.seconds for work in cost.nodes)


def test_bound_by_memory_or_arithmetic() -> None:
    roof = Roofline(flops=1e9, bandwidth=1e9, cached=1e10)
    assert roof.seconds(10, 10) == 10 / 1e9  # in a cache
    assert roof.seconds(10, 10**8) == 0.1
    assert roof.ridge == 1.0
    assert doctest.testmod(module, extraglobs={"Roofline": Roofline}).failed == 0


def test_the_roofline_is_measured_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []
    monkeypatch.setattr(
        module, "_measured", lambda threads: measured.append(threads) or Roofline(2.0, 3.0, 4.0, threads)
    )
    first = roofline(2)
    assert roofline(2) == first == Roofline(2.0, 3.0, 4.0, 2)
    assert measured == [2]
    for content in ("", "[]", "{", '{"machine": "another", "flops": 1}', '{"flops": "x"}'):
        (cache / "roofline-2.json").write_text(content)
        assert roofline(2) == first
    assert len(measured) == 6
    with pytest.raises(ValueError, match="at least one"):
        roofline(0)


def test_a_real_measurement_is_plausible(cache: Path) -> None:
    measured = roofline()
    assert 1e8 < measured.flops < 1e13
    assert measured.bandwidth > 1e8
    assert (cache / "roofline-1.json").exists()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = onnxlab.load().save(tmp_path / "m.onnx")
    assert main(["cost", str(path), "batch=1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["total"]["flops"] == 279858
    assert main(["cost", str(path), "batch=1", "--measure", "--runs", "1"]) == 0
    assert "of the roofline" in capsys.readouterr().out
    assert main(["cost", str(path), "--threads", "0"]) == 2
