"""Models as text for people: what `Model.to_text` returns."""

import onnx
from google.protobuf.message import EncodeError

from onnxlab.errors import OnnxlabError, TextError
from onnxlab.formats import registry
from onnxlab.printable import printable_lines


def text_of(model: onnx.ModelProto, suffix: str = ".onnxtxt") -> str:
    """A model as text for people, in the format of a suffix; invisible characters are escaped.

    Raises:
        TextError: no textual format has this suffix, or the format cannot hold the model.
    """
    ending = f".{str(suffix).removeprefix('.')}"
    textual = [form for form in registry.formats() if form.text is not None]
    form = next((entry for entry in textual if ending.lower() in entry.suffixes), None)
    if form is None or form.text is None:
        known = ", ".join(suffix for entry in textual for suffix in entry.suffixes)
        raise TextError(f"{suffix!r:.80} is no textual format of models; there are {known}")
    try:
        return printable_lines(form.text(model).split("\n"))
    except OnnxlabError:
        raise
    except (ValueError, EncodeError) as error:
        raise TextError(f"{form.title} cannot hold this model: {error}") from error
