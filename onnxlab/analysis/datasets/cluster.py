"""Chunks counted by the workers of a Dask distributed cluster. Nothing of Dask is imported here: the client brings it.

The models are sent to the cluster once. A task is a chunk; its part comes back and is merged here, in the order of
samples. Dask gives the tasks of a lost worker to others; models that were lost with a worker are sent again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from onnxlab.analysis.datasets.jobs import Job, Models, run_chunk
from onnxlab.analysis.datasets.part import SampleCounts
from onnxlab.analysis.datasets.samples import Chunk
from onnxlab.errors import OnnxlabError, RunError

_AHEAD = 3
"""Tasks that are under way or wait for each thread of the workers."""

_TRIES = 5
"""How often a chunk is given out anew where workers are lost."""


def parts_of(client: Any, job: Job, models: Models, chunks: Iterator[Chunk]) -> Iterator[SampleCounts]:
    """The parts of chunks, in their order.

    Args:
        client: a `distributed.Client`.

    Raises:
        RunError: the cluster has no workers, or lost a chunk's worker again and again.
        OnnxlabError: what `run_chunk` raises.
    """
    if not hasattr(client, "submit") or not hasattr(client, "scatter"):
        raise TypeError(f"client is a {type(client).__name__}; give a distributed.Client")
    sender = _Sender(client, job, models)
    waiting: deque[tuple[Chunk, Any]] = deque()
    try:
        for chunk in chunks:
            waiting.append((chunk, sender.send(chunk)))
            while len(waiting) >= sender.room():
                yield sender.part(*waiting.popleft())
        while waiting:
            yield sender.part(*waiting.popleft())
    finally:
        for _, future in waiting:
            future.cancel()


class _Sender:
    """Gives chunks to workers."""

    def __init__(self, client: Any, job: Job, models: Models) -> None:
        self._client, self._job, self._models = client, job, models
        self._sent = self._scattered()

    def _scattered(self) -> Any:
        """The models on all workers there are."""
        if not self._client.ncores():
            self._client.wait_for_workers(1, timeout=60)
        return self._client.scatter((self._job, dict(self._models)), broadcast=True, hash=False)

    def room(self) -> int:
        """Chunks that are given out before the first has to be back."""
        return max(2, _AHEAD * int(sum(self._client.ncores().values())))

    def send(self, chunk: Chunk) -> Any:
        """The future of a chunk's part."""
        items = self._client.compute(chunk.items) if chunk.is_delayed else chunk.items
        return self._client.submit(_work, self._sent, items, pure=False, retries=2)

    def part(self, chunk: Chunk, future: Any) -> SampleCounts:
        """The part of a chunk; given out anew where its worker, or the models, were lost."""
        for tries in range(_TRIES):
            try:
                part: SampleCounts = future.result()
                return part
            except OnnxlabError:
                raise
            except Exception as error:
                if not _is_lost(error) or tries == _TRIES - 1:
                    raise RunError(
                        f"a chunk of samples failed on the cluster: {type(error).__name__}: {error}"
                    ) from error
                self._sent = self._scattered()
                future = self.send(chunk)
        raise AssertionError("a try returns or raises")


def _is_lost(error: BaseException) -> bool:
    """Whether an exception is about workers, not about what they did."""
    return type(error).__module__.partition(".")[0] in ("distributed", "concurrent", "asyncio")


def _work(sent: tuple[Job, Models], items: Iterable[Any]) -> SampleCounts:
    return run_chunk(*sent, items)
