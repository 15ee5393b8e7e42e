"""Judgments of onnxruntime on models, in a process of its own: some wrong models make it abort."""

import struct
import subprocess
import sys
from types import TracebackType
from typing import Self

_SERVER = """
import struct, sys
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as state
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
options.log_severity_level = 4
while head := sys.stdin.buffer.read(8):
    data, said = sys.stdin.buffer.read(struct.unpack("<Q", head)[0]), ""
    try:
        onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except state.NotImplemented:  # the graph is sound, and this build has no kernel for it
        pass
    except Exception as error:
        said = str(error) or "refused"
    answer = said.encode()
    sys.stdout.buffer.write(struct.pack("<Q", len(answer)) + answer)
    sys.stdout.buffer.flush()
"""


class OrtJudge:
    """Asks onnxruntime of one model after another."""

    def __init__(self) -> None:
        self._child = self._started()

    @staticmethod
    def _started() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", _SERVER]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def refusal(self, data: bytes) -> str | None:
        """The refusal of onnxruntime, "" where it takes the model, None where it aborted."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(struct.pack("<Q", len(data)) + data)
        self._child.stdin.flush()
        head = self._child.stdout.read(8)
        if len(head) == 8:
            return self._child.stdout.read(struct.unpack("<Q", head)[0]).decode()
        self._child.wait()
        self._child = self._started()
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.kill()
        self._child.wait()
