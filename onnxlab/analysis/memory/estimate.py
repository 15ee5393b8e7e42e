"""The memory that a run is going to take, told before it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onnxlab.analysis.memory.timeline import MemoryTimeline
from onnxlab.execution.base.provider import PartState
from onnxlab.limits import SHARE_OF_MEMORY, available_memory, format_bytes
from onnxlab.printable import printable_lines
from onnxlab.short_help import ShortHelp


@dataclass(frozen=True, slots=True)
class Estimate(metaclass=ShortHelp):
    """The bytes of a run.

    Attributes:
        peak: most bytes alive at once beside the weights: inputs, outputs and values in between.
        kept: bytes that stay afterwards, so that values can be looked at: copies of inputs and outputs.
        weights: bytes of initializers and constants, which the model holds anyway; compiled kernels hold packed copies.
        available: bytes that are free on this machine now.
        open: names of values of unknown size: they count as 0 bytes.
        measured: whether `peak` is that of compiled parts; otherwise it follows from facts.

    Examples:
        >>> model.estimate({"image": np.zeros((1, 1, 8, 8), np.float32)}).fits
        True
    """

    peak: int
    kept: int
    weights: int
    available: int
    open: tuple[str, ...]
    measured: bool

    @property
    def fits(self) -> bool:
        """Whether a run may take so much where no limits are given.

        Examples:
            >>> model.estimate(model.sample_inputs()).fits
            True
        """
        return self.peak + self.kept <= SHARE_OF_MEMORY * self.available

    def __str__(self) -> str:
        how = "measured of compiled parts" if self.measured else "by facts"
        unknown = f"; of {len(self.open)} values the size is not known" if self.open else ""
        lines = [
            f"a run takes {format_bytes(self.peak)} beside weights of {format_bytes(self.weights)} ({how}{unknown})",
            f"{format_bytes(self.kept)} stay for values to be looked at",
            f"{format_bytes(self.available)} are free: {'it fits' if self.fits else 'give limits, or smaller inputs'}",
        ]
        return printable_lines(lines)


def estimate(timeline: MemoryTimeline, outputs: int, parts: Iterable[PartState]) -> Estimate:
    """The estimate of a run.

    Args:
        timeline: of the main graph with the sizes of the inputs.
        outputs: bytes of the outputs.
        parts: of the program that would run, as they ran last with inputs of the same sizes; none where it never did.
    """
    sizes = [part.nbytes for part in parts]
    known = [size for size in sizes if size is not None]
    measured = bool(sizes) and len(known) == len(sizes)
    peak = timeline.inputs + max(known) if measured else timeline.peak
    return Estimate(peak, timeline.inputs + outputs, timeline.weights, available_memory(), timeline.open, measured)
