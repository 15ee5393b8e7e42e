"""The models that a bridge reaches: those that processes of this user serve, or those of files that it was given."""

import contextlib
import json
import os
import threading
from collections.abc import Mapping
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from onnxlab.mcp import places
from onnxlab.mcp.answers import JSON, RefusedCall, cut, page, written
from onnxlab.mcp.call import Right
from onnxlab.mcp.tools import TOOLS, answer

if TYPE_CHECKING:
    from onnxlab.model import Model


PATIENCE = 90.0
"""Seconds that an answer may take: a run has 60."""


class Models(Protocol):
    """The models that answer calls."""

    def call(self, tool: str, arguments: JSON) -> str:
        """The answer as JSON; raises Refused."""


class Local:
    """Models of this process."""

    def __init__(self, models: "Mapping[str, Model]", rights: frozenset[Right]) -> None:
        self._models, self._rights = models, rights

    def call(self, tool: str, arguments: JSON) -> str:
        """The answer as JSON; raises Refused."""
        return answer(self._models, self._rights, tool, arguments)


class Served:
    """Models that other processes serve: looked for again with each call, since kernels come and go."""

    def __init__(self, rights: frozenset[Right]) -> None:
        self._rights = rights
        self._connections: dict[str, Connection[Any, Any]] = {}
        self._lock = threading.Lock()

    def call(self, tool: str, arguments: JSON) -> str:
        """The answer as JSON; raises Refused."""
        with self._lock:
            names = self._names()
            if tool == "models":
                rows = [{"model": name, **row} for name, (_, _, row) in names.items()]
                return written({**page(rows, 0), "allowed": sorted(self._rights)})
            if tool in TOOLS and not TOOLS[tool].about_model:
                return answer({}, self._rights, tool, arguments)
            if not names:
                raise RefusedCall("no model is served; the user runs onnxlab.serve(model) in a cell")
            name = arguments.get("model")
            if name is None and len(names) > 1:
                raise RefusedCall(f"several models are served: say which, of {', '.join(map(cut, names))}")
            if name is not None and name not in names:
                raise RefusedCall(
                    f"no served model is called {cut(repr(name), 60)}; there are {', '.join(map(cut, names))}"
                )
            address, inner, _ = names[name] if name is not None else next(iter(names.values()))
            return self._ask(address, tool, {**arguments, "model": inner})

    def _names(self) -> dict[str, tuple[str, str, JSON]]:
        """(address, name there, what is told of it) of every served model; the process is named where two are alike."""
        names: dict[str, tuple[str, str, JSON]] = {}
        for path, record in places.records():
            if not self._connected(path, record):
                continue
            with contextlib.suppress(RefusedCall):
                for row in json.loads(self._ask(record.address, "models", {}))["rows"]:
                    inner = row.pop("model")
                    name = inner if inner not in names else f"{inner}@{record.pid}"
                    names[name] = record.address, inner, row
        return names

    def _connected(self, path: Path, record: places.Record) -> bool:
        if record.address in self._connections:
            return True
        try:
            connection = Client(record.address, authkey=bytes.fromhex(record.key))
            connection.send_bytes(json.dumps(dict.fromkeys(self._rights, True)).encode())
        except Exception:  # no process listens there, or another program does
            if not _is_alive(record.pid):
                with contextlib.suppress(OSError):
                    path.unlink()
            return False
        self._connections[record.address] = connection
        return True

    def _ask(self, address: str, tool: str, arguments: JSON) -> str:
        connection = self._connections[address]
        try:
            connection.send_bytes(json.dumps({"tool": tool, "arguments": arguments}).encode())
            if not connection.poll(PATIENCE):
                self._drop(address)
                raise RefusedCall(f"the process that serves this model did not answer within {PATIENCE:g} s")
            reply = json.loads(connection.recv_bytes())
        except (EOFError, OSError, ValueError):
            self._drop(address)
            raise RefusedCall("the process that served this model has ended") from None
        if "refused" in reply:
            raise RefusedCall(reply["refused"])
        return str(reply["answer"])

    def _drop(self, address: str) -> None:
        self._connections.pop(address).close()


def _is_alive(pid: int) -> bool:
    """Whether a process runs; True where the system does not tell."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
