"""onnxlab: open an ONNX model in a notebook, see it, change it, watch the shapes follow, run it.

    import onnxlab
    model = onnxlab.load("model.onnx")

The package is a front door of a dozen names, each imported when it is first asked for (PEP 562), so that
`import onnxlab` costs nothing until it is used. Everything else is importable from its own module.
"""

import importlib
from typing import TYPE_CHECKING, Any

from onnxlab import viewers as _viewers

if TYPE_CHECKING:
    from onnxlab.analysis.check import check as check
    from onnxlab.errors import Diagnostic as Diagnostic
    from onnxlab.errors import OnnxlabError as OnnxlabError
    from onnxlab.formats.weights.files import read_weights as read_weights
    from onnxlab.infer import infer_function_output_types as infer_function_output_types
    from onnxlab.infer import infer_node_outputs as infer_node_outputs
    from onnxlab.infer import infer_shapes as infer_shapes
    from onnxlab.limits import Limits as Limits
    from onnxlab.mcp.server import serve as serve
    from onnxlab.model import Model as Model
    from onnxlab.model import compare as compare
    from onnxlab.model import diff as diff
    from onnxlab.model import evaluate as evaluate
    from onnxlab.model import explain_error as explain_error
    from onnxlab.model import load as load
    from onnxlab.model import run as run
    from onnxlab.model import save as save
    from onnxlab.model import statistics as statistics
    from onnxlab.notebook import show as show
    from onnxlab.transforms.rules.user_rules import rule as rule

__version__ = "0.1.0"

# name: the module that holds it
_EXPORTS = {
    "Diagnostic": "onnxlab.errors",
    "Limits": "onnxlab.limits",
    "Model": "onnxlab.model",
    "OnnxlabError": "onnxlab.errors",
    "compare": "onnxlab.model",
    "diff": "onnxlab.model",
    "evaluate": "onnxlab.model",
    "explain_error": "onnxlab.model",
    "infer_function_output_types": "onnxlab.infer",
    "infer_node_outputs": "onnxlab.infer",
    "check": "onnxlab.analysis.check",
    "infer_shapes": "onnxlab.infer",
    "load": "onnxlab.model",
    "read_weights": "onnxlab.formats.weights.files",
    "rule": "onnxlab.transforms.rules.user_rules",
    "run": "onnxlab.model",
    "save": "onnxlab.model",
    "serve": "onnxlab.mcp.server",
    "show": "onnxlab.notebook",
    "statistics": "onnxlab.model",
}

_viewers.register(
    view="onnxlab.notebook:view",
    publish="onnxlab.notebook:publish",
    mimebundle="onnxlab.notebook:mimebundle",
    page="onnxlab.notebook:write_page",
    pair="onnxlab.notebook:view_pair",
    pair_page="onnxlab.notebook:write_pair_page",
    publish_pair="onnxlab.notebook:publish_pair",
    svg="onnxlab.render.svg:render",
    png="onnxlab.render.png:render",
    text="onnxlab.render.text:summary",
)

__all__ = [*sorted(_EXPORTS), "__version__", "load_ipython_extension"]


def __getattr__(name: str) -> Any:
    """Import the module that holds `name` and keep the value, so that the second look-up is a plain one."""
    if name not in _EXPORTS:
        offered = ", ".join(sorted(_EXPORTS))
        raise AttributeError(f"module 'onnxlab' has no attribute {name!r}; it offers {offered}")
    from onnxlab.garbage_collection import no_collection

    with no_collection():  # garbage collection takes a sixth of the time of the imports
        value = getattr(importlib.import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """Offer %onnx_show, and let a bare `onnx.ModelProto` draw itself: `%load_ext onnxlab` calls this.

    Args:
        shell: the InteractiveShell.

    Examples:
        >>> from IPython.core.interactiveshell import InteractiveShell
        >>> shell = InteractiveShell()
        >>> onnxlab.load_ipython_extension(shell)
        >>> "onnx_show" in shell.magics_manager.magics["line"]
        True
    """
    from onnxlab.notebook.widgets.magic import load_ipython_extension as register

    register(shell)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """The extension of JupyterLab in a checkout, for `jupyter labextension develop`; a wheel puts it in place."""
    return [{"src": "labextension", "dest": "onnxlab"}]
