"""Every model of the corpus shows, folds, searches and inspects, its subgraphs and functions included."""

from tests.browser.support.gallery import exhibit
from tests.browser.support.lab import Lab, Widget
from tests.support.corpus import Corpus


def test_every_model_shows_folds_searches_and_inspects(lab: Lab, corpus: Corpus) -> None:
    seen = []
    for name, widget in exhibit(lab, corpus, corpus):
        boxes = len(widget.debug()["boxes"])
        assert 1 <= boxes <= 400, (name, boxes)
        folds(widget)
        searches(widget)
        enters(widget)
        assert widget.toasts() == [], name
        seen.append(name)
    assert seen == list(corpus)


def folds(widget: Widget) -> None:
    """Folding everything and opening one group changes what shows."""
    groups = widget.evaluate(
        "handle => [...handle.store.groups.values()].filter((g) => g.scope === handle.view.scope).map((g) => g.id)"
    )
    if not groups:
        return
    widget.get("toolbar-fold").click()
    widget.wait("handle => !handle.view.debug().boxes.some((box) => box.kind === 'frame')")
    folded = widget.debug()["boxes"]
    group = next(box["id"] for box in folded if box["kind"] in ("group", "repeat"))
    widget.evaluate("(handle, group) => handle.view.unfold(group)", group)
    widget.wait("(handle, count) => handle.view.debug().boxes.length > count", len(folded))


def searches(widget: Widget) -> None:
    """The operator of the last node is found, and a click on the hit brings up its inspector."""
    operator = widget.evaluate("handle => [...handle.store.nodes.values()].at(-1).op.split('::').at(-1)")
    search = widget.get("search-input")
    search.fill(operator)
    widget.get("search-result").first.click()
    widget.wait("handle => handle.app.picked.nodes.length === 1")
    widget.get("inspector-node").wait_for()
    search.fill("")


def enters(widget: Widget) -> None:
    """The first bodies and functions are drawn when they are entered."""
    scopes = widget.evaluate(
        "handle => [...handle.store.scopes.values()].filter((s) => s.kind !== 'graph').map((s) => s.id).slice(0, 3)"
    )
    for scope in scopes:
        widget.evaluate("(handle, scope) => handle.view.openScope(scope)", scope)
        widget.wait("(handle, scope) => handle.view.debug().scope === scope", scope)
        widget.wait("handle => handle.view.debug().boxes.length > 0")
