"""Models of kinds that the corpus lacks, made to be looked at: with few channels, wired and named as exporters do it.

They are no members of the corpus: `MADE` has them by name.
"""

from collections.abc import Callable
from pathlib import Path

import onnx

from bench.made.cached_decoder import decoder
from bench.made.detection import detector
from bench.made.diffusion import unet
from bench.made.nameless import nameless
from bench.made.speech import speech
from tests.support.corpus import FOLDER

MADE: dict[str, Callable[[], onnx.ModelProto]] = {
    "made_unet": unet,
    "made_decoder48": decoder,
    "made_speech60": speech,
    "made_detector_nms": detector,
    "made_nameless_cnn": nameless,
}
"""Models by the names that they have beside those of the corpus."""


def path(name: str) -> Path:
    """The file of one of `MADE`, made anew: its maker may have changed."""
    target = FOLDER / f"{name}.onnx"
    target.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(MADE[name](), target)
    return target
