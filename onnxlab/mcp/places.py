"""The places of served models: one record for each process that serves some, in a folder of the user's own."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from onnxlab.errors import OnnxlabError
from onnxlab.private_folder import closed

LONGEST = 90
"""Bytes of the path of a socket; systems allow some 100."""


@dataclass(frozen=True, slots=True)
class Record:
    """The address of a process that serves models.

    Attributes:
        address: of its socket, or of its pipe where there are no such sockets.
        key: a secret in hexadecimal digits that both sides must know.
    """

    pid: int
    address: str
    key: str


def folder() -> Path:
    """The folder of the records, made where it is not there, and closed to other users.

    Raises:
        OnnxlabError: the folder belongs to another user, or is open to others and cannot be closed.
    """
    base = os.environ.get("XDG_RUNTIME_DIR") or str(Path.home() / ".local" / "state")
    place = Path(base) / "onnxlab"
    try:
        return closed(place)
    except OSError as error:
        raise OnnxlabError(f"{place} cannot be used to serve models: {error.strerror or error}") from None


def socket_path() -> str:
    """A path for a socket that systems take."""
    path = str(folder() / f"{os.getpid()}.sock")
    if len(os.fsencode(path)) <= LONGEST:
        return path
    return str(Path(tempfile.mkdtemp(prefix="onnxlab")) / "sock")  # mkdtemp closes it to others


def write(record: Record) -> Path:
    """Write a record, readable by this user alone."""
    path = folder() / f"{record.pid}.json"
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(record), file)
    return path


def records() -> Iterator[tuple[Path, Record]]:
    """Every record that is there, newest first; those that cannot be read are left out."""
    paths = sorted(folder().glob("*.json"), key=lambda path: path.name, reverse=True)
    for path in paths:
        try:
            yield path, Record(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            continue
