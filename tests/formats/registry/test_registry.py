"""The registry of formats: every format is found by content, suffix and name, and says what it loses."""

import itertools
from pathlib import Path

import onnx
import pytest

import onnxlab
from onnxlab.errors import LoadError, SaveError, SaveWarning
from onnxlab.formats import registry
from onnxlab.formats.base.format import Content, Format, FormatLoss, LossReport, OpenedFile, Written
from tests.graph.support.models import chain

FORMATS = registry.formats()
WRITTEN = [form for form in FORMATS if form.write is not None]


def test_names_and_suffixes_are_of_one_format_each() -> None:
    names = [form.name for form in FORMATS]
    suffixes = list(itertools.chain.from_iterable(form.suffixes for form in WRITTEN))
    assert len(set(names)) == len(names)
    assert len(set(suffixes)) == len(suffixes)
    assert {"onnx", "textproto", "json", "onnxtxt"} <= set(names)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_a_format_is_found_by_its_name_and_suffixes(form: Format) -> None:
    assert registry.by_name(form.name) is form
    if form.write is not None:
        assert all(registry.by_suffix(Path(f"m{suffix.upper()}")) is form for suffix in form.suffixes)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\xff" * 9, b"PK\x03\x04", b"\0\0\0\0ORTM", b"{" * 70000, b"#", b"name: 3"]
)
def test_telling_a_format_never_fails(form: Format, data: bytes) -> None:
    assert form.recognizes(Content.of(data)) in (True, False)


@pytest.mark.parametrize("form", [form for form in WRITTEN if form.read and form.suffixes], ids=lambda form: form.name)
def test_what_is_written_is_told_by_its_content(form: Format) -> None:
    assert form.write is not None
    data = form.write(chain(), None).data
    recognized = registry.by_content(Content.of(data, Path("misleading.bin")))
    assert recognized is form


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(LookupError, match=r"'yaml' is no format; there are .*json.*onnx"):
        registry.by_name("yaml")
    with pytest.raises(LookupError, match="no format"):
        onnxlab.load(chain()).files.loss_report("yaml")
    with pytest.raises(SaveError, match=r"cannot save to .*m\.onnx: 'yaml' is no format"):
        onnxlab.load(chain()).save("m.onnx", format="yaml")


def test_the_format_asked_for_wins_over_the_suffix(tmp_path: Path) -> None:
    path = onnxlab.load(chain()).save(tmp_path / "m.onnx", format="json")
    assert path.read_bytes().startswith(b"{")
    model = onnxlab.load(path)
    assert model.proto == chain()
    assert model.save(tmp_path / "n.onnx").read_bytes() == path.read_bytes(), "the format goes on with the suffix"
    assert model.save(tmp_path / "o.onnx", format="onnx").read_bytes() == chain().SerializeToString()


def test_a_report_lists_what_is_lost(tmp_path: Path) -> None:
    proto = chain()
    proto.graph.node[0].doc_string = "kept nowhere"
    model = onnxlab.load(proto)
    report = model.files.loss_report("onnxtxt")
    assert [loss.where for loss in report] == ["graph.node[…].doc_string"]
    assert str(report).startswith("ONNX text does not hold:\n  field graph.node[…].doc_string: lost or changed")
    assert not model.files.loss_report(".onnx")
    assert str(model.files.loss_report("json")) == "JSON holds all of this model"
    with pytest.warns(SaveWarning, match="doc_string"):
        model.save(tmp_path / "m.onnxtxt")


def test_a_printed_report_names_a_few_of_many() -> None:
    """Seen: a model of torch.export has metadata at each node, and its report 1,400 lines."""
    proto = chain()
    proto.graph.node.extend(
        onnx.helper.make_node("Identity", [proto.graph.input[0].name], [f"i{number}"], f"copy_{number}")
        for number in range(50)
    )
    for node in proto.graph.node:
        node.metadata_props.add(key="pkg.torch", value="where it comes from")
    report = onnxlab.load(proto).files.loss_report("ort")
    lines = str(report).splitlines()
    shown = [line for line in lines if "metadata of the node" in line]
    assert len(report) > 50
    assert len(shown) == 3
    count = len(proto.graph.node) - 3
    assert lines[lines.index(shown[-1]) + 1] == f"  and {count} more like the last"


def test_a_report_says_what_refuses() -> None:
    proto = chain()
    proto.graph.node[0].attribute.append(onnx.AttributeProto(name="a", type=onnx.AttributeProto.STRING, s=b"\xff"))
    report = onnxlab.load(proto).files.loss_report("onnxtxt")
    assert [loss.refused for loss in report] == [True]
    assert str(report).startswith("ONNX text cannot hold this model:\n  refused: model")


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Format:
    """A format as CONTRIBUTING describes one: names of operators, with what is besides them."""

    def read(content: Content) -> OpenedFile:
        first, *operators = content.data.decode().split()
        if first != "LINES":
            raise LoadError("it begins with something else")
        model = onnx.ModelProto(ir_version=10)
        for number, op_type in enumerate(operators):
            model.graph.node.add(op_type=op_type, input=[f"v{number}"], output=[f"v{number + 1}"])
        return OpenedFile(model, extra=content.size)

    def write(model: onnx.ModelProto, extra: object) -> Written:
        return Written(" ".join(["LINES", *(node.op_type for node in model.graph.node)]).encode(), f"read {extra}")

    form = Format(
        "lines", "LINES", (".lines",), lambda content: content.head.startswith(b"LINES"), read, write,
        lambda model, extra: [FormatLoss("weights", tensor.name, "left out") for tensor in model.graph.initializer],
        rank=10, holds_external_data=False,
    )  # fmt: skip
    monkeypatch.setattr(registry, "formats", lambda: (form, *FORMATS))
    return form


def test_a_new_format_is_known_to_everything(lines: Format, tmp_path: Path) -> None:
    (tmp_path / "m.bin").write_bytes(b"LINES Relu Neg")
    model = onnxlab.load(tmp_path / "m.bin")
    assert [node.op_type for node in model.nodes] == ["Relu", "Neg"]
    model.nodes[1].remove()
    with pytest.warns(SaveWarning, match="read 14"):
        path = model.save(tmp_path / "m.lines")
    assert path.read_bytes() == b"LINES Relu"
    assert model.files.loss_report("lines") == LossReport("LINES")
    onnxlab.load(path).save(tmp_path / "m.onnx")
    assert onnx.load(tmp_path / "m.onnx").graph.node[0].op_type == "Relu"


def test_a_format_that_is_only_read_is_not_written(
    lines: Format, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    only_read = Format("lines", "LINES", (".lines",), lines.recognizes, lines.read, rank=10)
    monkeypatch.setattr(registry, "formats", lambda: (only_read, *FORMATS))
    model = onnxlab.load(b"LINES Relu")
    with pytest.raises(SaveError, match=r"LINES is only read; save it as \.onnx"):
        model.save(tmp_path / "m.lines")
    assert model.files.loss_report("lines").refused
