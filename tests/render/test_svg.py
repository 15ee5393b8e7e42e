"""Static pictures: every model, with and without dot, names that are not markup, a bounded size."""

import shutil
from io import BytesIO

import pytest
from defusedxml.ElementTree import fromstring
from onnx import helper
from PIL import Image

import onnxlab
from onnxlab.render import png, svg, text
from onnxlab.render.layout import layout, rows, source
from onnxlab.render.picture import MAX_TERMINALS, picture
from tests.support.corpus import Corpus

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "</title></svg><svg onload=alert(1)>",
    '"]; evil [label="',
    "javascript:alert(1)",
    "a\x00b\x1b[31m\u202e",
    "&lt;b&gt;",
]
SVG = "{http://www.w3.org/2000/svg}"


def hostile_model() -> onnxlab.Model:
    """A chain whose nodes and values have hostile names."""
    nodes = [
        helper.make_node("Relu", [HOSTILE[i - 1] if i else "x"], [name], name=name) for i, name in enumerate(HOSTILE)
    ]
    graph = helper.make_graph(
        nodes,
        HOSTILE[0],
        [helper.make_tensor_value_info("x", 1, [HOSTILE[0], 2])],
        [helper.make_tensor_value_info(HOSTILE[-1], 1, None)],
    )
    return onnxlab.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))


@pytest.fixture(params=["dot", "rows"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With Graphviz, and as if it were not installed."""
    if request.param == "rows":
        monkeypatch.setattr(shutil, "which", lambda _: None)
    else:
        assert shutil.which("dot"), "the tests need Graphviz: apt-get install graphviz, or make test"
    return str(request.param)


@pytest.mark.slow
def test_every_model_of_the_corpus_is_drawn(corpus: Corpus) -> None:
    for name, path in corpus.items():
        model = onnxlab.load(path)
        drawn = picture(model, 60)
        assert len(drawn.boxes) <= 60 + 2 * MAX_TERMINALS, name
        for placed in (layout(drawn), rows(drawn)):
            assert set(placed.boxes) == {box.key for box in drawn.boxes}, name
            assert all(route.points for route in placed.routes), name
            fromstring(svg.draw(drawn, placed, name))


@pytest.mark.usefixtures("engine")
def test_boxes_do_not_overlap_and_edges_run_down(corpus: Corpus) -> None:
    for name in ("lstm_gru", "whisper_encoder", "light_resnet50"):
        drawn = picture(onnxlab.load(corpus[name]), 60)
        placed = layout(drawn)
        boxes = list(placed.boxes.values())
        for number, box in enumerate(boxes):
            for other in boxes[:number]:
                apart = abs(box.x - other.x) >= (box.width + other.width) / 2 - 1
                assert apart or abs(box.y - other.y) >= (box.height + other.height) / 2 - 1
        for edge in drawn.edges:
            assert placed.boxes[edge.source].y < placed.boxes[edge.target].y


@pytest.mark.usefixtures("engine")
def test_hostile_names_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    root = fromstring(svg.render(hostile_model()))
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "title", "g", "path", "rect", "text"}
    assert not any(name.startswith("on") or "href" in name for element in root.iter() for name in element.attrib)
    titles = [element.text for element in root.iter(f"{SVG}title")]
    assert HOSTILE[0] in titles


def test_no_text_of_the_model_reaches_dot() -> None:
    written = source(picture(hostile_model()))
    assert "alert" not in written
    assert "evil" not in written


def test_hostile_names_are_text_on_a_terminal() -> None:
    assert "\x1b" not in text.summary(hostile_model())


def test_a_png_is_drawn_of_any_name() -> None:
    image = Image.open(BytesIO(png.render(hostile_model())))
    assert image.format == "PNG"
    assert image.width > 60
    colors = image.convert("RGB").getcolors(1 << 24)
    assert (255, 255, 255) in {color for _, color in colors}


def test_groups_fold_and_shapes_stand_at_edges(corpus: Corpus) -> None:
    model = onnxlab.load(corpus["whisper_encoder"])
    folded, opened = picture(model, 20), picture(model, 200)
    assert {box.title for box in folded.boxes if box.family == "group"} >= {"layers.0…3 ×4"}
    assert not any(box.family == "group" for box in opened.boxes)
    assert {frame.title for frame in opened.frames} >= {"layers.0", "self_attn"}
    assert "batch×1500×48" in {edge.label for edge in opened.edges}


def test_a_graph_with_many_inputs_draws_them_as_one_box() -> None:
    inputs = [helper.make_tensor_value_info(f"x{i}", 1, [1]) for i in range(MAX_TERMINALS + 1)]
    node = helper.make_node("Sum", [value.name for value in inputs], ["y"])
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", 1, [1])])
    drawn = picture(onnxlab.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])))
    assert [box.title for box in drawn.boxes] == [f"{MAX_TERMINALS + 1} inputs", "Sum", "y"]


def test_an_empty_model_is_drawn() -> None:
    model = onnxlab.load(helper.make_model(helper.make_graph([], "g", [], [])))
    fromstring(svg.render(model))
    assert text.summary(model).startswith("g: 0 nodes")


def test_bodies_are_drawn_around_their_node_where_there_is_room() -> None:
    model = onnxlab.load(Corpus()["script_control"])
    drawn = picture(model)
    boxes = {box.key: box for box in drawn.boxes}
    around = {frame.key: frame.parent for frame in drawn.frames}
    titles = {frame.key: frame.title for frame in drawn.frames}

    def path(frame: int) -> list[str]:
        return [*path(around[frame]), titles[frame]] if frame else []

    assert path(next(box.frame for box in drawn.boxes if box.title == "swish")) == [
        "Loop#4", "body", "If#5", "then_branch"
    ]  # fmt: skip
    inside = {box.title for box in drawn.boxes if box.frame}
    assert inside == {"Loop", "Scan", "If", "Identity", "Mod", "Equal", "SequenceInsert", "norm", "swish", "Add", "Mul", "Sub", "Tanh"}  # fmt: skip # noqa: E501
    captures = {(boxes[edge.source].title, boxes[edge.target].title) for edge in drawn.edges if edge.is_capture}
    assert ("x", "Add") in captures
    results = {boxes[edge.source].title for edge in drawn.edges if boxes[edge.target].title == "norm"}
    assert results == {"Add", "Sub"}, "what an If gives comes from both branches"
    assert "stroke-dasharray" in svg.render(model)
    assert not picture(model, 8).frames


@pytest.mark.parametrize(("counted", "titles"), [
    (["layer.0", "layer.1", "layer.2"], {"layer.0…2 ×3"}),
    (["layer.0", "layer.1", "layer.3"], {"layer.0", "layer.1", "layer.3"}),
])  # fmt: skip
def test_groups_that_are_alike_and_counted_up_are_one_box(counted: list[str], titles: set[str]) -> None:
    nodes = [
        helper.make_node(op, [f"x{2 * place + part}"], [f"x{2 * place + part + 1}"], f"/{scope}/{op}")
        for place, scope in enumerate(counted)
        for part, op in enumerate(("Relu", "Tanh"))
    ]
    nodes.append(helper.make_node("Neg", [f"x{2 * len(counted)}"], ["y"], "last"))
    ends = [helper.make_tensor_value_info(name, 1, ["n"]) for name in ("x0", "y")]
    model = onnxlab.load(helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:])))
    drawn = picture(model, 5)
    assert {box.title for box in drawn.boxes if box.family == "group"} == titles
    assert len(drawn.edges) == len(titles) + 2, "one line leads through them"


def test_frames_are_around_the_labels_of_lines_in_them(corpus: Corpus) -> None:
    drawn = picture(onnxlab.load(corpus["light_resnet50"]), 20)
    placed = layout(drawn)
    frame_of = {box.key: box.frame for box in drawn.boxes}
    inside = [
        (edge, route.label, placed.frames[frame_of[edge.source]])
        for edge, route in zip(drawn.edges, placed.routes, strict=True)
        if edge.label and route.label and frame_of[edge.source] == frame_of[edge.target] != 0
    ]
    assert inside
    for edge, label, frame in inside:
        assert label[0] + 2 * len(edge.label) <= frame.x + frame.width / 2


def test_a_model_that_only_calls_a_function_is_drawn_as_what_that_is_made_of(corpus: Corpus) -> None:
    boxes = picture(onnxlab.load(corpus["functions_ts"])).boxes
    assert [box.title for box in boxes] == ["x", *["FBlock"] * 12, "204"], "weights that are handed on have no boxes"


def test_letters_that_the_font_has_need_no_fonts_of_the_machine() -> None:
    plain = '<svg xmlns="http://www.w3.org/2000/svg" width="80" height="30"><text x="4" y="20">8×1×…</text></svg>'
    assert not png.needs_other_fonts(plain)
    assert png.needs_other_fonts(plain.replace("8", "名"))
    assert png.rasterized(plain) == png.rasterized(plain.replace("</svg>", "<!-- 名 --></svg>"))
