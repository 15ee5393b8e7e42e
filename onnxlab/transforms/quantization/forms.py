"""Forms of a model in fewer bits, by name: what each does, which version of ai.onnx it needs, and its pipeline."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from onnxlab import dtypes
from onnxlab.errors import TransformError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.transforms.pipeline import Pipeline
from onnxlab.transforms.quantization import half_precision, stored_weights
from onnxlab.transforms.rewriting import Rewriting

FormName = Literal["int8_weights", "float16_weights", "bfloat16_weights", "float16", "bfloat16"]


@dataclass(frozen=True, slots=True)
class Form:
    """A form of a model.

    Attributes:
        doc: what it does, in a sentence.
        since: the first version of ai.onnx whose operators it needs.
        elem_type: the element type that numbers get.
        run: the pass that brings a model into it.
    """

    doc: str
    since: int
    elem_type: int
    run: Callable[[Rewriting, str, int], None]


FORMS: Final[Mapping[str, Form]] = MappingProxyType({
    "int8_weights": Form(
        "Store weights of 1,024 elements and more in int8 with a scale for each channel; nodes compute as before.",
        13, dtypes.INT8, stored_weights.run,
    ),
    "float16_weights": Form(
        "Store weights of 1,024 elements and more in float16; nodes compute as before.",
        6, dtypes.FLOAT16, stored_weights.run,
    ),
    "bfloat16_weights": Form(
        "Store weights of 1,024 elements and more in bfloat16; nodes compute as before.",
        13, dtypes.BFLOAT16, stored_weights.run,
    ),
    "float16": Form(
        "Compute in float16 wherever operators and numbers allow it; inputs and outputs stay float32.",
        6, dtypes.FLOAT16, half_precision.run,
    ),
    "bfloat16": Form(
        "Compute in bfloat16 wherever operators allow it; inputs and outputs stay float32.",
        13, dtypes.BFLOAT16, half_precision.run,
    ),
})  # fmt: skip


def plan_of(form: str, graph: ModelGraph) -> Pipeline:
    """The pipeline that brings a model into a form.

    Raises:
        TransformError: there is no such form, or the model imports too old a version of ai.onnx for it.
    """
    chosen = FORMS.get(form) if isinstance(form, str) else None
    if chosen is None:
        raise TransformError(f"{form!r} is no form; use one of {', '.join(FORMS)}")
    version = graph.opset_version("") or 1
    if version < chosen.since:
        raise TransformError(
            f"{form} needs operators of ai.onnx {chosen.since}, and the model imports {version}; "
            f"convert it first: model.convert_opset({chosen.since})"
        )

    def plan(rewriting: Rewriting) -> None:
        chosen.run(rewriting, form, chosen.elem_type)

    return plan
