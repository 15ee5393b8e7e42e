"""Files that JupyterLab opens in a tab of their own: what the tab asks of its kernel (widgets/lab/).

Answers are JSON, refusals too: a tab shows a refusal as a panel, not as a traceback.
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
"""Model and view of each tab, by file; a page that is loaded again gets the same model, edits included."""


def open_document(name: str) -> IPython.display.JSON:
    """Show a file in a new view that fills its tab; a file that is open already keeps its model.

    The model is also the kernel's variable `model`, for a console beside the tab.

    Args:
        name: the path of the file, relative to the kernel's folder.
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
    """Save the model of a tab to its file, or to a new file beside it, which is the tab's file from then on.

    Args:
        name: the path of the file as for `open_document`; the present one where the file was renamed meanwhile.
        other: the name of the new file, which must not exist yet.
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
    """The model of a tab; raises OnnxlabError where the tab's view shows another model, or no tab has the file."""
    if path not in _open:
        moved = [former for former in _open if not former.exists()]
        if len(moved) != 1:
            raise OnnxlabError(f"{path.name} is not open in this kernel; open it again")
        _open[path] = _open.pop(moved[0])
    model, view = _open[path]
    if view.model is not model:
        raise OnnxlabError(
            f"the tab shows another model, {view.title!r}, than that of {path.name}; go back to it first"
        )
    return model


def _beside(path: Path, other: str) -> Path:
    """The path of a new file in the same folder; raises OnnxlabError where it exists or the name is no file name."""
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
