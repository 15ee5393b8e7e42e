"""Saving from a view: what is about to change in the file, told before it is replaced, and a copy beside it."""

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from onnxlab.errors import SaveError
from onnxlab.formats.atomic import left_behind, other_names
from onnxlab.notebook.protocol.messages import JSON, ProtocolError
from onnxlab.printable import printable

if TYPE_CHECKING:
    from onnxlab.model import Model

SHOWN = 100
"""Edits and fields that are listed one by one."""
COMPARED = 1 << 26
"""Bytes of the largest file that is read again to list the fields that change; for larger files only edits are."""


def unsaved(model: "Model") -> JSON:
    """The effect of a save: the edits since the last load or save, the fields that change, and warnings.

    Raises:
        ProtocolError: the model came from no file.
    """
    path = _path(model)
    edits, notes = model.files.unsaved, []
    fields: list[str] = []
    try:
        if links := other_names(path):
            notes.append(left_behind(path.name, links))
        if path.stat().st_size <= COMPARED:
            fields = [str(change) for change in model.files.save_report()]
    except SaveError as error:
        notes.append(str(error))
    except OSError as error:
        notes.append(f"{path.name} cannot be read: {error.strerror or error}")
    return {
        "path": str(path),
        "copy": _copy_of(path).name,
        "edits": [printable(label) for label in edits[-SHOWN:]],
        "fields": fields[:SHOWN],
        "more": [max(len(edits) - SHOWN, 0), max(len(fields) - SHOWN, 0)],
        "notes": [printable(note) for note in notes],
    }


def save(model: "Model", copy: bool) -> JSON:
    """Write the model to its path, or to a new file beside it, which is the model's path from then on.

    Raises:
        ProtocolError: the model came from no file.
        SaveError: the file cannot be written, and stays as it was.
    """
    path = _path(model)
    written = model.save(_copy_of(path) if copy else None)
    return {"path": str(written), "bytes": written.stat().st_size}


def _path(model: "Model") -> Path:
    if model.path is None:
        hint = (
            "Run model.save('model.onnx') in a cell (of a file opened here: view.model.save); then Save writes there."
        )
        raise ProtocolError("no_path", "This model was not loaded from a file.", hint)
    return model.path


def _copy_of(path: Path) -> Path:
    """A name beside a file that no other file has."""
    names = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
    tried = (path.with_name(f"{path.stem[:200]}-edited{number}{path.suffix}") for number in names)
    return next(candidate for candidate in tried if not candidate.exists() and not candidate.is_symlink())
