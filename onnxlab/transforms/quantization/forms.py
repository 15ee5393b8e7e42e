"""Forms of a model in fewer bits, by name: what each does, which version of ai.onnx it needs, and its pipeline."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from onnxlab import dtypes
from onnxlab.argument_types import expect
from onnxlab.errors import TransformError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.transforms.pipeline import Pipeline
from onnxlab.transforms.quantization import dynamic_int8, half_precision, static_int8, stored_weights
from onnxlab.transforms.quantization.calibration import Calibration
from onnxlab.transforms.rewriting import Rewriting

FormName = Literal[
    "int8", "int8_dynamic", "int4_weights", "uint4_weights", "int8_weights", "float16_weights", "bfloat16_weights",
    "float16", "bfloat16",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    """A form of a model.

    Attributes:
        doc: what it does, in a sentence.
        since: the first version of ai.onnx whose operators it needs.
        elem_type: the element type that numbers get.
        run: the pass that brings a model into it; None for the one that needs ranges of values.
    """

    doc: str
    since: int
    elem_type: int
    run: Callable[[Rewriting, str, int], None] | None


FORMS: Final[Mapping[str, Form]] = MappingProxyType({
    "int8": Form(
        "Compute in 8 bits between QuantizeLinear and DequantizeLinear, with ranges measured on inputs of yours.",
        13, dtypes.INT8, None,
    ),
    "int8_dynamic": Form(
        "Multiply integers by matrices in int8, with ranges that each run measures; for transformers without inputs.",
        11, dtypes.INT8, dynamic_int8.run,
    ),
    "int4_weights": Form(
        "Store matrices of products in int4 with a scale for each block; runtimes multiply them as they are.",
        21, dtypes.INT4, stored_weights.run,
    ),
    "uint4_weights": Form(
        "Store matrices of products in uint4 with a scale and a zero point for each block.",
        21, dtypes.UINT4, stored_weights.run,
    ),
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


BLOCK_SIZE: Final = 32
"""Elements of a weight in 4 bits that share a scale, by default."""

_LEAST_BLOCK: Final = 16


def plan_of(
    form: str, graph: ModelGraph, calibration: Calibration | None = None, block_size: int = BLOCK_SIZE
) -> Pipeline:
    """The pipeline that brings a model into a form.

    Raises:
        TransformError: there is no such form, the model imports too old a version of ai.onnx for it, or it needs
            ranges of values, or the size of a block is no power of two from 16 on, as onnxruntime wants it.
    """
    chosen = FORMS.get(form) if isinstance(form, str) else None
    if chosen is None:
        raise TransformError(f"{form!r} is no form; use one of {', '.join(FORMS)}")
    check_version(form, graph)
    block_size = expect(block_size, int, "block_size", "a number of elements")
    if block_size < _LEAST_BLOCK or block_size & (block_size - 1):
        raise TransformError(f"block_size is {block_size}: expected a power of two from {_LEAST_BLOCK} on, such as 32")
    if chosen.run is None and calibration is None:
        raise TransformError(
            f"{form} needs ranges of values: give inputs as they come in use, "
            f"model.quantize({form!r}, calibrate=[{{name: array}}, ...]), or let each run measure them: 'int8_dynamic'"
        )

    def plan(rewriting: Rewriting) -> None:
        if chosen.elem_type in stored_weights.FOUR_BITS:
            stored_weights.run(rewriting, form, chosen.elem_type, block_size)
        elif chosen.run is not None:
            chosen.run(rewriting, form, chosen.elem_type)
        elif calibration is not None:
            static_int8.run(rewriting, form, calibration)

    return plan


def check_version(form: str, graph: ModelGraph) -> None:
    """Raise TransformError where a model imports too old a version of ai.onnx for a form."""
    version = graph.opset_version("") or 1
    if form in FORMS and version < (since := FORMS[form].since):
        raise TransformError(
            f"{form} needs operators of ai.onnx {since}, and the model imports {version}; "
            f"convert it first: model.convert_opset({since})"
        )
