"""Models that run samples: sent to a process once, and kept there."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from onnxlab.analysis.compare.sides import RunSide
from onnxlab.errors import SaveError
from onnxlab.execution.program.run_observers import Take
from onnxlab.forking import fork_safe
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference, Policy

_LARGEST = (1 << 31) - 1
_KEPT = 4

_lock = fork_safe(threading.Lock())
_sessions: OrderedDict[tuple[str, tuple[str, ...] | None], SampleRunner] = OrderedDict()


@dataclass(frozen=True, slots=True)
class Payload:
    """A model as it is sent.

    Attributes:
        data: its bytes.
        base_dir: the folder of its external data, which has to be there under the same path; None without any.
        policy: about declared and inferred facts.
        digest: identifies the payload.
    """

    data: bytes
    base_dir: str | None
    policy: Policy
    digest: str


def payload_of(graph: ModelGraph, policy: Policy) -> Payload:
    """The payload of a model as it is now.

    Raises:
        SaveError: the model is larger than a message may be.
    """
    with graph.lock:
        proto = graph.proto
        if proto.ByteSize() > _LARGEST:
            raise SaveError(
                "this model cannot be sent: a message of 2 GiB or more cannot be serialized; save it with "
                "external_data=True in a folder that all workers see, and load it from there"
            )
        data = proto.SerializeToString()
        folder = None if graph.base_dir is None else str(graph.base_dir)
    digest = hashlib.sha256(data + repr((folder, policy)).encode()).hexdigest()
    return Payload(data, folder, policy, digest)


class SampleRunner:
    """A model that runs one sample after the other.

    Attributes:
        inputs: ranks by input, in their order; None for those that are not known.
    """

    def __init__(self, graph: ModelGraph, inference: Inference, providers: Sequence[str] | None) -> None:
        self.graph = graph
        self._side = RunSide(graph, inference.fact, providers)
        names = [vid for vid in graph.main.inputs if graph.values[vid].initializer is None]
        self.inputs: dict[str, int | None] = {graph.values[vid].name: inference.fact(vid).rank for vid in names}

    def run(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Run once and return values by name; raises as `Runner.run`."""
        return self._side.values(feeds, names)

    def hand(self, feeds: Mapping[str, Any], names: Sequence[str], take: Take) -> None:
        """Run once and hand values over as they are made, by their place in `names`; raises as `Runner.run`."""
        self._side.hand(feeds, names, take)


def session(payload: Payload, providers: tuple[str, ...] | None) -> SampleRunner:
    """The session of a model in this process, made when it is first asked for."""
    key = payload.digest, providers
    with _lock:
        known = _sessions.get(key)
        if known is None:
            proto = onnx.ModelProto.FromString(payload.data)
            graph = ModelGraph(proto, None if payload.base_dir is None else Path(payload.base_dir))
            known = _sessions[key] = SampleRunner(graph, Inference(graph, payload.policy), providers)
            while len(_sessions) > _KEPT:
                _sessions.popitem(last=False)
        _sessions.move_to_end(key)
        return known
