"""LLVM IR of kernels as wheels hold it: what is made of it, and what suits which processor."""

import subprocess
import sys
import zipfile
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from onnxlab.execution.numba.machine import compilation, host, object_cache, object_loading
from onnxlab.execution.numba.machine.host import HOSTS
from tests.support import scripts

ROOT = Path(__file__).resolve().parents[4]
KERNEL = "clear"
# What `.ci/llvm_ir.py` does for one family, for few kernels
FEW = """
compilation.IR_FOLDER = __import__("pathlib").Path(sys.argv[2])
records.MODULES = {"quad_dot": "dot_u8s8"}
if family.name == "portable":  # LLVM called functions there that no process has
    records.MODULES["elementwise"] = "elementwise"
llvm_ir.write(family.name)
"""


@pytest.fixture
def packaged(tmp_path, monkeypatch):
    """The folder of IR, with that of one kernel."""
    monkeypatch.setattr(compilation, "IR_FOLDER", tmp_path)
    with zipfile.ZipFile(tmp_path / f"{host.host().name}.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(object_cache.origin(KERNEL), compilation.kernel_ir(KERNEL))
    return tmp_path / f"{host.host().name}.zip"


@pytest.fixture
def compiled(monkeypatch):
    """The kernels that Numba was asked for from now on."""
    names, kernel_ir = [], compilation.kernel_ir
    monkeypatch.setattr(compilation, "kernel_ir", lambda name: names.append(name) or kernel_ir(name))
    return names


def test_numba_is_not_asked_for_what_the_package_holds(packaged, compiled):
    code = compilation.compile_kernel(KERNEL)
    assert object_loading.load(KERNEL, code)
    assert compiled == []


def test_no_numba_is_imported(packaged):
    script = (
        f"import sys; from pathlib import Path; from onnxlab.execution.numba.machine import compilation as c\n"
        f"c.IR_FOLDER = Path({str(packaged.parent)!r}); c.compile_kernel({KERNEL!r})\nprint('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("case", ["no file", "other sources", "a later LLVM"])
def test_numba_is_asked_where_nothing_suits(packaged, compiled, case):
    packaged.unlink()
    if case != "no file":
        with zipfile.ZipFile(packaged, "w") as archive:
            archive.writestr(
                object_cache.origin(KERNEL) + "x" * (case == "other sources"), "what this LLVM cannot read"
            )
    assert object_loading.load(KERNEL, compilation.compile_kernel(KERNEL))
    assert compiled == [KERNEL]


@pytest.mark.parametrize(
    ("lacks", "expected"),
    [((), "avx512_vnni"), (("avx512vnni",), "avx512"), (("avx512bw",), "avx2_vnni"), (("fma",), "portable")],
)
def test_the_family_has_all_features(monkeypatch, lacks, expected):
    present = dict.fromkeys({name for family in HOSTS.values() for name in family.features}, True)
    monkeypatch.delenv(host.VARIABLE, raising=False)
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: present | dict.fromkeys(lacks, False))
    assert host.host.__wrapped__() == HOSTS[expected]


def test_a_forced_family_that_the_processor_lacks_names_no_instructions(monkeypatch):
    monkeypatch.setenv(host.VARIABLE, "avx2")
    monkeypatch.setattr(llvm, "get_host_cpu_features", dict)
    assert host.host.__wrapped__() not in HOSTS.values()
    assert host.host.__wrapped__().features == ()


@pytest.mark.slow
@pytest.mark.parametrize("family", HOSTS)
def test_ir_suits_every_processor_of_a_family(family, tmp_path):
    """Names instructions of the family alone, and nothing of the processor that it was made on."""
    script = scripts.loaded(ROOT / ".ci" / "llvm_ir.py", "llvm_ir")
    command = [sys.executable, "-c", script.HOST + FEW, family, str(tmp_path)]
    subprocess.run(command, env=script.environment(HOSTS[family]), check=True)
    with zipfile.ZipFile(tmp_path / f"{family}.zip") as archive:
        texts = {name.partition("-")[0]: archive.read(name).decode() for name in archive.namelist()}
    ir = texts["quad_dot"]
    assert all("x half>" not in text for text in texts.values())
    assert ("vpdpbusd" in ir) == HOSTS[family].vnni
    assert ("llvm.x86" in ir) == (family != "portable")
    assert "target-cpu" not in ir
    assert "target-features" not in ir
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    features = ",".join(f"+{feature}" for feature in HOSTS[family].features)
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(
        cpu=HOSTS[family].processor or "x86-64", features=features, opt=3, reloc="pic"
    )
    assert machine.emit_object(llvm.parse_assembly(ir))
