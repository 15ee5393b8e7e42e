"""Kernels stay within what is theirs: see `guarded`. A few random regions always, hundreds with ONNXLAB_LONG=1."""

import os
import subprocess
import sys

import pytest

LONG = bool(os.environ.get("ONNXLAB_LONG"))
MODELS = ("lstm_gru", "rapidocr_cls", "surfaces_tree")
LARGER = ("bert_base", "lac_bigru", "llama12_dyn_ext", "resnet101_qdq", "minilm_int8", "mobilenet_fp16", "resnet50",
          "tashkeel_bilstm_int8", "silero_vad_16k_sequence", "stft_audio", "skl_rf", "surfaces_mlp", "logreg_iris",
          "gpt2_kv", "light_squeezenet", "light_shufflenet", "magika")  # fmt: skip

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pages are protected by Linux's means")


def guarded(*arguments, before=""):
    script = (
        f"import sys\nfrom tests.execution.support import guard_pages as guarded\n{before}\nguarded.main(*sys.argv[1:])"
    )
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=900)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["end", "start"])
@pytest.mark.parametrize(
    "arguments", [("0", "500" if LONG else "15"), MODELS + LARGER if LONG else MODELS], ids=["drawings", "models"]
)
def test_nothing_goes_too_far(side, arguments):
    done = guarded(side, *arguments)
    assert done.stdout.endswith("done\n"), done.stdout[-300:] + done.stderr[-3000:]


@pytest.mark.slow
def test_the_guards_bite():
    """Outputs that reach one element into the page which must not be touched."""
    before = """
def shifted(self, shape, dtype):
    dtype = guarded.np.dtype(dtype)
    nbytes = int(guarded.np.prod(shape)) * dtype.itemsize
    total, offset, hole = self.place(nbytes)
    return guarded.allocated(total, (hole,))[offset + dtype.itemsize :][:nbytes].view(dtype).reshape(shape)
guarded.Guards.empty = shifted
guarded.Guards.copied = lambda self, array: array
"""
    done = guarded("end", "rapidocr_cls", before=before)
    assert "done" not in done.stdout
    assert done.returncode < 0, "the process was killed"
    assert "interpret" in done.stderr, "while it ran a plan"
