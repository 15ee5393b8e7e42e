"""Files that JupyterLab opens in a tab of their own: what the tab asks of its kernel (widgets/lab/).

Answers are JSON, refusals too: a tab shows them as a panel, not as a traceback.
"""

import os
import warnings
from pathlib import Path
from typing import Any

import IPython.display

from onnxlab.errors import OnnxlabError, OnnxlabWarning
from onnxlab.model import Model, load
from onnxlab.notebook.widgets.widget import ModelWidget
from onnxlab.printable import printable

_open: dict[Path, tuple[Model, ModelWidget]] = {}
"""What tabs show, by file; a page that is loaded again gets the model as it was, edits included."""


def open_document(name: str) -> IPython.display.JSON:
    """Open a file, or show again what is open, in a new view that fills its tab.

    The model is the kernel's variable `model` too, for a console beside the tab.

    Args:
        name: of the file, from the kernel's folder.
    """
    path = _place(name)
    try:
        model = _open[path][0] if path in _open else load(path)
    except (OnnxlabError, OSError, MemoryError, RecursionError) as error:
        return _problem(f"{path.name} cannot be opened", error)
    if path in _open:
        _open[path][1].close()
    view = ModelWidget(model, height="fill")
    _open[path] = model, view
    _lend(model, view)
    return _answer(view=view.model_id)


def save_document(name: str, other: str | None = None) -> IPython.display.JSON:
    """Save the model that a tab shows to its file, or to a new one beside it, to which the tab belongs from then on.

    Args:
        name: as for `open_document`; that of now where the file was renamed meanwhile.
        other: name of the new file, which must not be there yet.
    """
    path = _place(name)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", OnnxlabWarning)
            model = _opened(path)
            target = path if other is None else _beside(path, other)
            model.save(target)
            _open[target] = _open.pop(path)
    except (OnnxlabError, OSError) as error:
        return _problem(f"{path.name} cannot be saved", error)
    notes = [str(item.message) for item in warned if issubclass(item.category, OnnxlabWarning)]
    return _answer(saved=str(target), notes=notes)


def _opened(path: Path) -> Model:
    """The model of a tab; raises OnnxlabError where its view shows another one, or there is none."""
    if path not in _open:
        moved = [former for former in _open if not former.exists()]
        if len(moved) != 1:
            raise OnnxlabError(f"{path.name} is not open in this kernel; open it again")
        _open[path] = _open.pop(moved[0])
    model, view = _open[path]
    if view.model is not model:
        raise OnnxlabError(f"the tab shows another model, {view.title!r}, than that of {path.name}; go back to it first")
    return model


def _beside(path: Path, other: str) -> Path:
    """A new file in the same folder."""
    if os.path.basename(other) != other or other in ("", ".", ".."):
        raise OnnxlabError(f"{other!r:.200} is no name of a file in the folder of {path.name}")
    target = path.with_name(other)
    if target.exists() or target.is_symlink():
        raise OnnxlabError(f"{other} is there already; choose a name that is free")
    return target


def _lend(model: Model, view: ModelWidget) -> None:
    """Give a console of this kernel the names `model` and `view`."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is not None:
        shell.push({"model": model, "view": view})  # type: ignore[no-untyped-call]


def _place(name: str) -> Path:
    return Path(os.path.abspath(name))


def _answer(**fields: Any) -> IPython.display.JSON:
    return IPython.display.JSON(fields)  # type: ignore[no-untyped-call]


def _problem(title: str, error: BaseException) -> IPython.display.JSON:
    message = printable(str(error)) or type(error).__name__
    return _answer(problem={"title": printable(title), "message": message})
