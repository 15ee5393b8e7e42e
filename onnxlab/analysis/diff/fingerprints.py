"""Fingerprints of values by a run of both models, to tell apart what structure cannot."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from onnxlab.analysis.compare.collecting import collected
from onnxlab.analysis.compare.comparing import renamed_feeds
from onnxlab.analysis.compare.sides import RunSide, made_values
from onnxlab.analysis.diff.matching import Fingerprints, match

_LEAST = 8
"""Elements of the smallest array that has a fingerprint: small ones, such as shapes, are equal by chance."""


def fingerprints(a: RunSide, b: RunSide, feeds: Mapping[str, Any]) -> Fingerprints:
    """Run both models on inputs of the first one, and take fingerprints of what their nodes make.

    Raises:
        FeedError, LimitError: as of a run.
    """
    renamed = renamed_feeds(feeds, a.graph, b.graph, match(a.graph, b.graph))
    return _of_side(a, feeds), _of_side(b, renamed)


def _of_side(side: RunSide, feeds: Mapping[str, Any]) -> dict[int, bytes]:
    ids = list(made_values(side.graph))
    arrays, _ = collected(side, feeds, [side.graph.values[vid].name for vid in ids])
    prints = {vid: _fingerprint(arrays.get(side.graph.values[vid].name)) for vid in ids}
    return {vid: digest for vid, digest in prints.items() if digest}


def _fingerprint(array: Any) -> bytes:
    """Of type, shape and elements; nothing where these say nothing: of few elements, or all the same."""
    if not isinstance(array, np.ndarray) or array.dtype.kind in "OSU" or array.size < _LEAST:
        return b""
    flat = np.ascontiguousarray(array).reshape(-1)
    if (flat == flat[0]).all():
        return b""
    digest = hashlib.blake2b(repr((array.dtype.str, array.shape)).encode(), digest_size=16)
    digest.update(flat.view(np.uint8).data)
    return digest.digest()
