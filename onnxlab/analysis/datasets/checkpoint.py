"""Checkpoints: what was counted so far, in a file, so that a job goes on where it was interrupted."""

from __future__ import annotations

import hashlib
import io
import time
import warnings
from os import PathLike
from pathlib import Path

import numpy as np

from onnxlab.analysis.datasets.part import SampleCounts
from onnxlab.errors import CheckpointWarning, LoadError
from onnxlab.formats.arrays import read_arrays
from onnxlab.formats.atomic import Replacement

_EVERY = 10.0  # seconds between two
_FORM = "onnxlab/checkpoint/1"


class JobCheckpoint:
    """The checkpoint file of a job.

    Args:
        path: of the file.
        about: identifies the job, its models and samples; the file of another job is refused.

    Attributes:
        failed: how often the file could not be written.
    """

    def __init__(self, path: str | PathLike[str], about: str) -> None:
        self.path = Path(path)
        self._about = hashlib.sha256(f"{_FORM} {about}".encode()).digest()
        self._written = time.monotonic()
        self.failed = 0

    def read(self, part: SampleCounts) -> int:
        """Let a part become what the file says, and return how many chunks it counted; 0 where there is no file.

        Raises:
            LoadError: the file is no checkpoint, or of another job.
        """
        try:
            with self.path.open("rb") as file:
                arrays = read_arrays(file, self.path.name)
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise LoadError(f"the checkpoint {self.path.name} cannot be read: {error.strerror or error}") from None
        if not isinstance(arrays, dict) or "about" not in arrays:
            raise LoadError(f"{self.path.name} is no checkpoint; give another name, or remove it")
        if arrays["about"].tobytes() != self._about:
            raise LoadError(
                f"the checkpoint {self.path.name} is of another model, other values or other samples; give another "
                "name, or remove it"
            )
        try:
            part.take(arrays)
            return int(arrays["chunks"])
        except (ValueError, KeyError, TypeError) as error:
            raise LoadError(f"the checkpoint {self.path.name} is damaged: {error}; remove it") from None

    def note(self, part: SampleCounts, chunks: int) -> None:
        """Write the file where the last time is some seconds ago."""
        if time.monotonic() - self._written >= _EVERY:
            self.write(part, chunks)

    def write(self, part: SampleCounts, chunks: int) -> None:
        """Write the file as a whole or not at all. Where that fails, a warning says so once, and the job goes on."""
        content = io.BytesIO()
        arrays = part.arrays()
        arrays["about"], arrays["chunks"] = np.frombuffer(self._about, np.uint8), np.asarray(chunks)
        np.savez(content, **arrays)
        try:
            with Replacement() as files:
                files.write(self.path.absolute(), content.getvalue())
        except OSError as error:
            self.failed += 1
            if self.failed == 1:
                warnings.warn(
                    f"the checkpoint {self.path} cannot be written: {error.strerror or error}; the run goes on, and "
                    "tries again",
                    CheckpointWarning,
                    stacklevel=2,
                )
        self._written = time.monotonic()
