"""The widget's traits and what a cell's output holds; no browser needed."""

import gc
import tracemalloc
import weakref

import pytest
import traitlets
from defusedxml.ElementTree import fromstring
from ipywidgets import Layout
from ipywidgets.widgets import widget

import onnxlab
from onnxlab.errors import NameLookupError, OnnxlabError
from onnxlab.notebook.widgets.bundle import STATIC
from onnxlab.notebook.widgets.display import WIDGET


def test_the_selection_takes_handles_names_and_ids(model: onnxlab.Model) -> None:
    view = model.view()
    conv, relu = model.nodes[0], model.nodes[1]
    view.selection = [conv, "/stem/relu"]
    assert view.selection == (conv, relu)
    view.selection = relu.id
    assert view.get_state("selection") == {"selection": [relu.id]}
    with pytest.raises(NameLookupError, match="/stem/relu"):
        view.selection = "/stem/rely"
    assert view.selection == (relu,)


def test_the_page_selects_by_id_and_may_be_behind(model: onnxlab.Model) -> None:
    view = model.view()
    view.set_state({"selection": [model.nodes[0].id, 99_999]})
    assert view.selection == (model.nodes[0],)


def test_a_removed_node_leaves_the_selection(model: onnxlab.Model) -> None:
    view = model.view(selection=["/stem/relu", "/head/pool"])
    model.nodes["/stem/relu"].remove(bypass=True)
    assert view.selection == (model.nodes["/head/pool"],)


def test_view_is_the_last_one_until_it_is_closed(model: onnxlab.Model) -> None:
    view = model.view(height=300)
    assert model.view() is view
    assert view.height == 300
    other = onnxlab.show(model)
    assert other is not view
    assert model.view() is other
    other.close()
    assert not other.is_open
    assert model.view() is not other


def test_a_closed_view_leaves_no_widget_behind(model: onnxlab.Model) -> None:
    before = dict(widget._instances)
    view = onnxlab.show(model)
    assert len(widget._instances) > len(before)
    view.close()
    view.close()
    assert widget._instances == before
    shared = Layout()
    onnxlab.show(model, layout=shared).close()
    assert shared.comm is not None, "what the user gave is the user's to close"


@pytest.mark.slow
def test_a_closed_view_lets_the_model_go(model: onnxlab.Model) -> None:
    copy = onnxlab.load(model.to_bytes())
    view, reference = copy.view(), weakref.ref(copy)
    view.close()
    del copy, view
    gc.collect()
    assert reference() is None


def test_the_output_holds_widget_picture_and_text(model: onnxlab.Model) -> None:
    bundle = model._repr_mimebundle_()
    assert set(bundle) == {WIDGET, "image/svg+xml", "image/png", "text/plain"}
    assert bundle[WIDGET]["model_id"] == model.view().model_id
    assert fromstring(bundle["image/svg+xml"]).tag.endswith("svg")
    assert "input x: float32[n,3,8,8]" in bundle["text/plain"]
    assert set(model._repr_mimebundle_(include=["text/plain"])) == {"text/plain"}


def test_a_static_view_needs_no_widget(model: onnxlab.Model) -> None:
    static = onnxlab.show(model, static=True)
    shown, metadata = static._repr_mimebundle_()
    assert set(shown) == {"image/svg+xml", "image/png", "text/plain"}
    assert f'width="{metadata["image/png"]["width"]}"' in shown["image/svg+xml"], "the PNG is shown as large as the SVG"


def test_messages_of_the_widget_reach_its_session(model: onnxlab.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    view = model.view()
    sent: list[dict] = []
    monkeypatch.setattr(view, "send", lambda content, buffers=None: sent.append(content))
    view._handle_custom_msg({"id": 1, "method": "hello", "params": {}}, [])
    assert sent[0]["result"]["session"] == view.session


def test_the_bundle_is_built() -> None:
    assert (STATIC / "widget.js").stat().st_size > 10_000
    assert (STATIC / "widget.css").stat().st_size > 1_000


def test_bookmarks_are_nodes_both_ways_and_forget_removed_ones(model: onnxlab.Model) -> None:
    view = model.view(bookmarks=["/stem/relu", "/head/pool"])
    view.set_state({"bookmarks": [*view.get_state("bookmarks")["bookmarks"], model.nodes[0].id]})
    assert view.bookmarks == tuple(model.nodes[name] for name in ("/stem/relu", "/head/pool", "/stem/conv"))
    model.nodes["/stem/relu"].remove(bypass=True)
    assert view.bookmarks == tuple(model.nodes[name] for name in ("/head/pool", "/stem/conv"))


def test_a_picture_reads_down_or_to_the_right(model: onnxlab.Model) -> None:
    view = model.view(flow="right")
    view.set_state({"flow": "down"})
    assert view.flow == "down"
    with pytest.raises(traitlets.TraitError):
        view.flow = "up"


def test_tall_pictures_are_drawn_in_columns_unless_one_says_no(model: onnxlab.Model) -> None:
    assert model.view().columns
    view = model.view(columns=False)
    view.set_state({"columns": True})
    assert view.columns


def test_the_loader_is_small_and_asks_for_the_bundle(model: onnxlab.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    view = model.view()
    assert len(view._esm) < 3000, "every view brings it, and a page keeps it"
    sent: list[dict[str, str]] = []
    monkeypatch.setattr(view, "send", lambda content, buffers=None: sent.append(content))
    view._receive(view, {"bundle": view.bundle}, [])
    code, styles = ((STATIC / name).read_text(encoding="utf-8") for name in ("widget.js", "widget.css"))
    assert sent == [{"bundle": view.bundle, "code": code, "styles": styles}]


def test_the_deadline_of_runs_is_an_option(model: onnxlab.Model) -> None:
    view = model.view(deadline=300)
    assert view._session is not None
    assert view._session.deadline == 300
    view.deadline = None
    assert view._session.deadline is None
    with pytest.raises(traitlets.TraitError):
        view.deadline = -1
    assert model.view(new=True).deadline == 60


@pytest.mark.slow
def test_closed_views_leave_nothing_that_waits_for_the_garbage_collector(model: onnxlab.Model) -> None:
    def views(count: int) -> None:
        for _ in range(count):
            view = onnxlab.show(model)
            for number, method in enumerate(("hello", "snapshot", "history")):
                view._session.receive({"id": number + 1, "method": method, "params": {}})
            view.selection = model.nodes[0]
            view.close()

    views(10)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        views(60)
        assert (tracemalloc.get_traced_memory()[0] - before) / 60 < 2000
    finally:
        tracemalloc.stop()
        gc.enable()
    assert type(onnxlab.show(model)) is type(onnxlab.show(model)), "a view has no class of its own"


@pytest.mark.parametrize("wrong", ["heigth", "session", "keys"])
def test_options_that_a_view_does_not_have(model: onnxlab.Model, wrong: str) -> None:
    for shown in (onnxlab.show, model.view):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{wrong}'"):
            shown(**{wrong: 1})


def test_values_that_an_option_cannot_have(model: onnxlab.Model) -> None:
    view = onnxlab.show(model, new=True)
    assert onnxlab.show(model, new=False, height=300) is view
    assert view.height == 300
    assert onnxlab.show(model, new=False, height="fill").get_state(["height"]) == {"height": "fill"}
    assert onnxlab.show(model) is not view
    followers = len(model._subscribers)
    for options, words in (
        ({"height": "x"}, 'expected an int, or "fill"'),
        ({"height": 5}, "should not be less than 120"),
        ({"flow": "up"}, "'down'"),
        ({"selection": "missing"}, "no node is called"),
    ):
        for new in (True, False):
            with pytest.raises(OnnxlabError, match=words):
                onnxlab.show(model, new=new, **options)
    assert len(model._subscribers) == followers, "what was not shown follows nothing"
