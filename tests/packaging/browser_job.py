"""A visit of a page without a server: the tour, then edits, runs, undo and save in the widget, and more."""

import hashlib
import json
import sys
import tempfile
import threading
import warnings
from pathlib import Path

import numpy as np

import onnxlab
from onnxlab import threads

ROOT = Path(__file__).resolve().parents[2]
native = len(sys.argv) > 1 and sys.argv[-1] == "native"
results = {}


def digest(arrays):
    whole = hashlib.sha256()
    for name in sorted(arrays):
        whole.update(np.asarray(arrays[name]).tobytes())
    return whole.hexdigest()


# -- the tour, cell by cell -------------------------------------------------------------------------------------------

from IPython.core.interactiveshell import InteractiveShell  # noqa: E402
from traitlets.config import Config  # noqa: E402

config = Config()
config.HistoryManager.enabled = False  # history has a thread of its own
shell = InteractiveShell(config=config)
notebook = json.loads((ROOT / "notebooks" / "01_tour.ipynb").read_text(encoding="utf-8"))
for cell in notebook["cells"]:
    if cell["cell_type"] == "code":
        done = shell.run_cell("".join(cell["source"]), store_history=False)
        done.raise_error()
results["tour"] = digest(shell.user_ns["arrays"])

# -- the widget: a session that is asked as a page asks ----------------------------------------------------------------

from onnxlab.notebook.session.session import Session  # noqa: E402

folder = Path(tempfile.mkdtemp())
path = onnxlab.load().save(folder / "model.onnx")
model = onnxlab.load(path)
messages, arrived = [], threading.Condition()


def take(content, buffers):
    with arrived:
        messages.append(content)
        arrived.notify_all()


session = Session(model, take)


def ask(ident, method, **params):
    session.receive({"id": ident, "method": method, "params": params})

    def replies():
        return [message for message in messages if message.get("id") == ident]

    with arrived:
        assert arrived.wait_for(replies, timeout=100 if native else 0.0), f"no reply to {method}"
    assert "error" not in replies()[0], replies()
    return replies()[0]["result"]


ask(1, "hello")
assert len(ask(2, "run", nodes=None, seed=0)["values"]) == 24
conv = model.nodes["/block2/conv1/Conv"]
subject = {"edit": "set_attribute", "on": "node", "subject": [conv.id]}
ask(3, "edit", **subject, parameters={"name": "strides", "value": [1, 1]})
assert model.diagnostics
ask(4, "undo")
assert model.diagnostics == []
conv.name = "renamed"  # over an existing file, with a journal beside it
ask(5, "save")
assert onnxlab.load(path).nodes["renamed"].op_type == "Conv"
for number in range(300):  # a burst, of which some events wait
    conv.name = f"name{number}"
session.close()

# -- Python ------------------------------------------------------------------------------------------------------------

feeds = {"image": np.linspace(-1, 1, 128, dtype=np.float32).reshape(2, 1, 8, 8)}
results["run"] = digest(model.run(feeds, ["probabilities", "logits", "stem/relu_out"]))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that there is no numba
    results["numba"] = digest({"probabilities": model.run(feeds, providers=["numba"])["probabilities"].argmax(1)})
results["simplified"] = digest({"nodes": np.array(model.simplify().nodes)})
results["profile"] = len(model.profile(runs=1).entries)
results["cost"] = len(model.cost(batch=2).nodes)
results["svg"] = model.to_svg()[:4]
results["page"] = model.to_html(folder / "page.html").read_text(encoding="utf-8")[:15]
limits = onnxlab.Limits(iterations=5)
limits.stop.set()
try:
    model.run(feeds, limits=limits)
except onnxlab.OnnxlabError as error:
    results["stopped"] = type(error).__name__
assert threads.are_there() == native
assert native or threading.active_count() == 1
print(json.dumps(results, sort_keys=True))
