"""Models of this process, served to assistants of the same user: a socket, and threads that answer while cells run."""

import atexit
import contextlib
import json
import os
import secrets
import socket
import sys
import threading
from functools import partial
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxlab import threads
from onnxlab.argument_types import expect
from onnxlab.errors import OnnxlabError
from onnxlab.mcp import places
from onnxlab.mcp.answers import RefusedCall
from onnxlab.mcp.call import Right
from onnxlab.mcp.tools import answer
from onnxlab.mcp.warming import warm

if TYPE_CHECKING:
    from onnxlab.model import Model

LARGEST = 1 << 20
"""Bytes of a request."""
MOST_CLIENTS = 8


class Serving:
    """A model that assistants may look at, as long as it is not closed; also a context manager.

    Attributes:
        name: what assistants call it.
    """

    def __init__(self, server: "Server", name: str) -> None:
        self._server, self.name = server, name

    def close(self) -> None:
        """Stop serving the model; a second call does nothing."""
        self._server.remove(self)

    def __enter__(self) -> "Serving":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"<Serving {self.name!r}: `onnxlab mcp` finds it>"
            if self in self._server
            else f"<Serving {self.name!r}: closed>"
        )


class Server:
    """The models that this process serves, by name; it listens while there are any."""

    def __init__(self) -> None:
        self._models: dict[str, tuple[Model, frozenset[Right], Serving]] = {}
        self._lock = threading.Lock()
        self._listener: Listener | None = None
        self._files: list[Path] = []
        self._clients = threading.BoundedSemaphore(MOST_CLIENTS)
        self._pid = os.getpid()

    def __contains__(self, serving: Serving) -> bool:
        return any(served is serving for _, _, served in self._models.values())

    def add(self, model: "Model", name: str | None, rights: frozenset[Right]) -> Serving:
        """Serve a model; raises OnnxlabError where another one has the name."""
        with self._lock:
            chosen = name or model.name or "model"
            if name is None:
                number = 1
                while chosen in self._models and self._models[chosen][0] is not model:
                    number += 1
                    chosen = f"{model.name or 'model'}-{number}"
            elif chosen in self._models and self._models[chosen][0] is not model:
                raise OnnxlabError(f"another model is served as {chosen!r}; give this one another name")
            if self._listener is None:
                self._listen()
            serving = Serving(self, chosen)
            self._models[chosen] = model, rights, serving
        threads.start(warm, "onnxlab assistant, first use")
        return serving

    def remove(self, serving: Serving) -> None:
        """Stop serving a model; the socket is closed after the last one."""
        with self._lock:
            if serving in self:
                del self._models[serving.name]
            if not self._models:
                self.close()

    def _listen(self) -> None:
        key = secrets.token_bytes(32)
        if sys.platform == "win32":
            self._listener = Listener(family="AF_PIPE", authkey=key)
        else:
            path = places.socket_path()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            mask = os.umask(0o177)  # the socket is never open to others, not for a moment
            try:
                self._listener = Listener(path, family="AF_UNIX", authkey=key)
            finally:
                os.umask(mask)
            self._files.append(Path(path))
        self._files.append(places.write(places.Record(os.getpid(), str(self._listener.address), key.hex())))
        if threads.start(partial(self._accept, self._listener), "onnxlab serve") is None:
            self.close()
            raise OnnxlabError("models cannot be served here: there are no threads that could answer")

    def close(self) -> None:
        """Close the socket and remove what leads to it; a forked child leaves its parent's alone."""
        listener, self._listener = self._listener, None
        if listener is None or os.getpid() != self._pid:
            return
        if sys.platform != "win32":
            # Wakes the thread that waits for clients, so that it ends; it may have ended, so nothing is waited for.
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as waker:
                waker.connect(str(listener.address))
        with contextlib.suppress(OSError):
            listener.close()
        for path in self._files:
            path.unlink(missing_ok=True)
        self._files.clear()

    def _accept(self, listener: Listener) -> None:
        while self._listener is listener:
            try:
                client = listener.accept()
            except Exception:  # a client that knows no key, or went away, ends nothing; a closed socket ends the loop
                continue
            if not self._clients.acquire(blocking=False):
                client.close()
                continue
            threads.spawn(partial(self._talk, client), "onnxlab assistant")

    def _talk(self, client: "Connection[Any, Any]") -> None:
        try:
            with client:
                rights = _rights(json.loads(client.recv_bytes(LARGEST)))
                while True:
                    client.send_bytes(self.reply(client.recv_bytes(LARGEST), rights).encode())
        except (EOFError, OSError, ValueError):
            return  # the client went away, or sent no valid request
        finally:
            self._clients.release()

    def reply(self, request: bytes, allowed: frozenset[Right]) -> str:
        """The reply to one request, as JSON: {"answer": …} or {"refused": …}."""
        try:
            content = json.loads(request)
            if not isinstance(content, dict):
                raise RefusedCall("a request is a JSON object with the name of a tool and its arguments")
            arguments = content.get("arguments")
            with self._lock:
                served = dict(self._models)
            models = {name: model for name, (model, _, _) in served.items()}
            named = arguments.get("model") if isinstance(arguments, dict) else None
            limits = [rights for name, (_, rights, _) in served.items() if not isinstance(named, str) or name == named]
            granted = allowed.intersection(*limits)
            return json.dumps({"answer": answer(models, granted, content.get("tool"), arguments)})
        except RefusedCall as refusal:
            return json.dumps({"refused": str(refusal)})
        except (ValueError, RecursionError) as error:
            return json.dumps({"refused": f"the request is no JSON: {error}"[:300]})


def _rights(greeting: object) -> frozenset[Right]:
    """The rights that a client's user grants, as it says at first; looking is always granted."""
    if not isinstance(greeting, dict):
        raise ValueError("no greeting")
    rights: set[Right] = {"look"}
    if greeting.get("edit") is True:
        rights.add("edit")
    if greeting.get("save") is True:
        rights.add("save")
    return frozenset(rights)


_server = Server()
atexit.register(_server.close)


def serve(model: "Model", name: str | None = None, *, edit: bool = True, save: bool = True) -> Serving:
    """Let a coding assistant of the same user look at a model of this process, as `onnxlab mcp` bridges to it.

    A thread of its own answers the assistant, also while a cell runs. The assistant may edit and save only where the
    user starts `onnxlab mcp` with `--edit` and `--save`; each edit is one step that views show at once and `undo` takes
    back.

    Args:
        model: the model; the server refers to it until the serving is closed.
        name: what assistants call it; default: its own.
        edit: False refuses edits whatever `onnxlab mcp` allows.
        save: False refuses to save.

    Returns:
        Serving: closes with `close()`, or at the end of a `with` block.

    Raises:
        OnnxlabError: another model is served under this name, or the runtime folder cannot be used.

    Examples:
        >>> with onnxlab.serve(model) as serving:
        ...     serving.name
        'digits'
    """
    from onnxlab.model import Model

    expect(model, Model, "model", "a Model, as onnxlab.load returns one")
    if _server._pid != os.getpid():
        raise OnnxlabError(
            "a forked process cannot serve models; call onnxlab.serve in a process that was started anew"
        )
    allowed: tuple[Right, ...] = ("look", *(("edit",) if edit else ()), *(("save",) if save else ()))
    return _server.add(model, name, frozenset(allowed))
