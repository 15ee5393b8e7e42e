"""One JupyterLab of its own: private folders for configuration, data, runtime and IPython, and a token."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat

REPOSITORY = Path(__file__).resolve().parents[3]
START_SECONDS = 60


class Jupyter:
    """A running server; notebooks are served from `folder`.

    Attributes:
        url: "http://127.0.0.1:PORT".
        token: for requests.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = uuid.uuid4().hex
        self.url = f"http://127.0.0.1:{free_port()}"
        self._private = folder / ".private"
        self._spare: str | None = None
        self._log = (folder / "jupyter.log").open("wb")
        self._process = subprocess.Popen(
            [
                sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1",
                f"--port={self.url.rpartition(':')[2]}", f"--IdentityProvider.token={self.token}",
                "--LabApp.expose_app_in_browser=True", "--JupyterNotebookApp.expose_app_in_browser=True",
                "--LabApp.extension_manager=readonly",
                f"--ServerApp.root_dir={folder}", "--ServerApp.open_browser=False",
            ],
            env=self.environment(),
            cwd=folder,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._wait()

    def environment(self) -> dict[str, str]:
        """Variables for a process that must not touch the user's own Jupyter."""
        places = {
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
            "IPYTHONDIR": "ipython",
        }
        variables = {**os.environ, **{name: str(self._private / place) for name, place in places.items()}}
        for place in places.values():
            (self._private / place).mkdir(parents=True, exist_ok=True)
        extensions = self._private / "data" / "labextensions"
        extensions.mkdir(parents=True, exist_ok=True)
        if not (extensions / "onnxlab").exists():  # this checkout's, before what is installed
            (extensions / "onnxlab").symlink_to(REPOSITORY / "onnxlab" / "labextension")
        settings = self._private / "settings" / "@jupyterlab" / "apputils-extension"
        settings.mkdir(parents=True, exist_ok=True)
        quiet = {"fetchNews": "false", "checkForUpdates": False}  # no popup over the screenshots
        (settings / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
        # The kernel runs this checkout, installed or not.
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
        variables.pop("PYTEST_CURRENT_TEST", None)
        return variables

    def _wait(self) -> None:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            try:
                self.ask("GET", "/api/status")
                return
            except OSError:
                time.sleep(0.2)
        self._log.flush()
        log = (self.folder / "jupyter.log").read_text(errors="replace")[-3000:]
        self.close()
        raise RuntimeError(f"JupyterLab did not start within {START_SECONDS} s:\n{log}")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """A request to the server's own API; returns the decoded answer, None where it is empty."""
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("Authorization", f"token {self.token}")
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(request, data, timeout=30) as answer:
            content = answer.read()
        return json.loads(content) if content else None

    def write(self, name: str, cells: Sequence[str]) -> Path:
        """Write a notebook of code cells into the folder."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        path = self.folder / name
        nbformat.write(notebook, path)
        return path

    def kernels(self) -> list[str]:
        """Ids of the kernels that run."""
        return [kernel["id"] for kernel in self.ask("GET", "/api/kernels")]

    def take_kernel(self) -> str:
        """Id of a new kernel, which was started ahead; the one after it starts meanwhile."""
        kernel = self._spare or self._start_kernel()
        self._spare = self._start_kernel()
        return kernel

    def _start_kernel(self) -> str:
        return str(self.ask("POST", "/api/kernels", {"name": "python3"})["id"])

    def settle(self) -> None:
        """End every session, so that the next test starts with a new kernel."""
        for session in self.ask("GET", "/api/sessions"):
            try:
                self.ask("DELETE", f"/api/sessions/{session['id']}")
            except urllib.error.HTTPError as error:
                if error.code != 404:
                    raise

    def forget_settings(self) -> None:
        """Forget what pages have set, such as a dark theme; pages that are open keep it."""
        for path in (self._private / "settings").rglob("themes.jupyterlab-settings"):
            path.unlink()

    def close(self) -> None:
        """Stop the server and its kernels."""
        if self._process.poll() is None:
            try:
                self.settle()
            except OSError:
                self._process.kill()
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._log.close()


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def chromium() -> str:
    """Path of an installed Chromium or Chrome.

    Raises:
        RuntimeError: there is none; `make test` installs one.
    """
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if path := shutil.which(name):
            return path
    raise RuntimeError("the browser tests need Chromium: `apt-get install chromium`, or `make test`, which installs it")
