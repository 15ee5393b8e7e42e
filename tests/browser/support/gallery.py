"""Every model of the corpus in one page, one after the other."""

from collections.abc import Iterable, Iterator

from tests.browser.support.lab import Lab, Widget
from tests.support.corpus import Corpus


def exhibit(lab: Lab, corpus: Corpus, names: Iterable[str], height: int = 700) -> Iterator[tuple[str, Widget]]:
    """Show each model in turn; the one before is closed, so that the page stays as small as for one."""
    lab.open("gallery.ipynb", ["import onnxlab\nview = None"])
    lab.run_all()
    for name in names:
        path = str(corpus[name])
        load = f"model = onnxlab.load({path!r})\nview = onnxlab.show(model, height={height}, title={name!r})"
        lab.add_cell(f"if view: view.close()\n{load}\nview")
        lab.wait_executed()
        lab.page.get_by_test_id("onnxlab-root").filter(has_text=name).wait_for()
        widget = lab.widget()
        yield name, widget
