"""One pass over a data set: chunk by chunk, in this process or by a Dask cluster, always merged in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from os import PathLike
from typing import Any

from onnxlab.analysis.datasets import CHUNK
from onnxlab.analysis.datasets.checkpoint import JobCheckpoint
from onnxlab.analysis.datasets.cluster import parts_of
from onnxlab.analysis.datasets.jobs import Job, Models, Progress, run_chunk
from onnxlab.analysis.datasets.part import SampleCounts
from onnxlab.analysis.datasets.samples import Chunk, samples_of
from onnxlab.argument_types import expect
from onnxlab.errors import RunError


def one_pass(
    job: Job,
    models: Models,
    samples: Any,
    *,
    chunk: int = CHUNK,
    checkpoint: str | PathLike[str] | None = None,
    client: Any = None,
    progress: Progress | None = None,
) -> SampleCounts:
    """Count all samples once.

    Args:
        samples: see `samples.py`.
        chunk: number of samples in a chunk. Counts in bins do not depend on it; moments differ in their last bits.
        checkpoint: a file to go on from, and to write every few seconds, at the end, and when interrupted.
        client: of a Dask distributed cluster; None: this process.
        progress: called after each chunk.

    Raises:
        ValueError: a chunk would have no samples.
        LoadError: no samples are there, or the checkpoint is of another job.
        RunError: no sample at all could be used; the first reason is in the message.
        KeyboardInterrupt: interrupted; what was counted is in the checkpoint.
    """
    chunk = expect(chunk, int, "chunk", "a number of samples")
    if chunk < 1:
        raise ValueError(f"chunk is {chunk}: at least one sample is needed")
    source = samples_of(samples, chunk)
    total = job.start()
    record = JobCheckpoint(checkpoint, f"{job.digest} {source.about} {chunk}") if checkpoint is not None else None
    done = record.read(total) if record else 0
    rest = islice(source.chunks, done, None)
    parts = _here(job, models, rest) if client is None else parts_of(client, job, models, rest)
    try:
        for part in parts:
            total.merge(part)
            done += 1
            if record:
                record.note(total, done)
            if progress is not None:
                failed = sum(total.failed.values())
                progress(total.seen, source.count, f"{failed:,} failed" if failed else "")
    except BaseException as error:
        if record and done:
            record.write(total, done)
            if isinstance(error, KeyboardInterrupt):
                error.add_note(f"{total.seen:,} samples are in {record.path}: call again to go on")
        raise
    finally:
        with suppress(Exception):
            parts.close()  # type: ignore[attr-defined]
    if record:
        record.write(total, done)
    if total.seen and not total.used:
        raise RunError(f"none of {total.seen:,} samples could be used; {total.failures[0]}")
    return total


def _here(job: Job, models: Models, chunks: Iterator[Chunk]) -> Iterator[SampleCounts]:
    for chunk in chunks:
        items = chunk.items.compute(scheduler="synchronous") if chunk.is_delayed else chunk.items
        yield run_chunk(job, models, items)
