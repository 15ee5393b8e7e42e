"""Metrics of the outputs of two models for a sample: some by name, and functions of the caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onnxlab.argument_types import listed

Metric = Callable[..., Any]
"""`metric(reference, other, target)` → a number, or {name: number}; both are {output: array}."""


def _top(count: int, reference: Mapping[str, Any], other: Mapping[str, Any], target: Any) -> float:
    """The share of rows in which the class is among the largest `count` of the other model.

    The class is the target where there is one, else the class with the largest score of the reference.
    """
    scores = np.asarray(next(iter(other.values()))).astype(np.float64)
    scores = scores.reshape(-1, scores.shape[-1])
    if target is None:
        answers = np.asarray(next(iter(reference.values()))).astype(np.float64)
        classes = answers.reshape(-1, answers.shape[-1]).argmax(-1)
    else:
        classes = np.asarray(target).reshape(-1)
    if len(classes) != len(scores):
        raise ValueError(f"given {len(classes)} classes for {len(scores)} rows of scores; give one class for each row")
    best = np.argsort(-scores, axis=-1, kind="stable")[:, :count]
    return float((best == classes[:, None]).any(-1).mean())


def top1(reference: Mapping[str, Any], other: Mapping[str, Any], target: Any) -> float:
    """The share of rows whose largest score is that of the class."""
    return _top(1, reference, other, target)


def top5(reference: Mapping[str, Any], other: Mapping[str, Any], target: Any) -> float:
    """The share of rows with the class among the five largest scores."""
    return _top(5, reference, other, target)


def mse(reference: Mapping[str, Any], other: Mapping[str, Any], target: Any) -> float:
    """The mean squared difference of the first output; from the target where there is one."""
    first = np.asarray(next(iter(reference.values())) if target is None else target)
    difference = np.asarray(next(iter(other.values()))).astype(np.float64) - first.astype(np.float64)
    return float(np.mean(difference * difference))


BY_NAME: Mapping[str, Metric] = {"top1": top1, "top5": top5, "mse": mse}


_METRICS = "names of metrics, functions, or a mapping of names to functions"


def metrics_of(source: str | Metric | Sequence[str | Metric] | Mapping[str, Metric] | None) -> dict[str, Metric]:
    """Metrics by name.

    Raises:
        ValueError: no metric has such a name.
        TypeError: something is neither a name nor a function.
    """
    if source is None:
        return {}
    if isinstance(source, Mapping):
        return dict(source)
    several = [source] if isinstance(source, str) or callable(source) else listed(source, "metric", _METRICS)
    metrics: dict[str, Metric] = {}
    for item in several:
        if isinstance(item, str):
            if item not in BY_NAME:
                raise ValueError(f"there is no metric {item!r}; there are {', '.join(BY_NAME)}, or give a function")
            metrics[item] = BY_NAME[item]
        elif callable(item):
            metrics[getattr(item, "__name__", "metric")] = item
        else:
            raise TypeError(f"a metric is a name or a function; given a {type(item).__name__}")
    return metrics


def measured(
    metrics: Mapping[str, Metric], reference: Mapping[str, Any], other: Mapping[str, Any], target: Any
) -> list[float]:
    """The numbers of all metrics for a sample, in their order.

    Raises:
        ValueError: a metric fails, or returns no number; the message names it.
    """
    numbers = []
    for name, metric in metrics.items():
        try:
            numbers.append(float(metric(reference, other, target)))
        except Exception as error:
            raise ValueError(f"metric {name}: {type(error).__name__}: {error}") from error
    return numbers
