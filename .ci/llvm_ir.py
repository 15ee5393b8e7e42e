"""Write the LLVM IR of all kernels into the package, a zip file for each family of processors, as wheels have it.

python .ci/llvm_ir.py [FAMILY...]

It takes half a minute for each family, on any x86 processor: nothing that is made here runs. Installed packages then
need LLVM alone to make object code, in a tenth of the time that Numba takes.
"""

import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HOST = """
import sys
from onnxlab.execution.numba.machine import host
family = host.HOSTS[sys.argv[1]]
host.host = lambda: family
import llvm_ir
from onnxlab.execution.numba.machine import compilation, records
"""
"""Puts a host in place before a kernel's module is imported: its vectors are as wide as those of the family."""


def main(names: Sequence[str]) -> None:
    """Write the files of the named families, or of all, each in a process of its own."""
    from onnxlab.execution.numba.machine.host import HOSTS

    for name in names or HOSTS:
        print(f"LLVM IR for {name}", file=sys.stderr)
        command = [sys.executable, "-c", f"{HOST}llvm_ir.write(family.name)", name]
        subprocess.run(command, env=environment(HOSTS[name]), check=True)


def environment(family: Any) -> dict[str, str]:
    """The environment of a process in which Numba compiles for the plainest processor of a family."""
    return os.environ | {
        "NUMBA_CPU_NAME": family.processor or "generic",
        "NUMBA_CPU_FEATURES": ",".join(f"+{feature}" for feature in family.features),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(__file__).parent)]),
    }


def write(family: str) -> None:
    """Write the file of the family that is this process's host; nothing where it is up to date."""
    from onnxlab.execution.numba.machine.compilation import IR_FOLDER, kernel_ir
    from onnxlab.execution.numba.machine.object_cache import origin
    from onnxlab.execution.numba.machine.records import INTERPRETER, MODULES

    members = {origin(kernel): kernel for kernel in (INTERPRETER, *MODULES)}
    path = IR_FOLDER / f"{family}.zip"
    if path.exists() and zipfile.ZipFile(path).namelist() == list(members):
        return
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_LZMA) as archive:
        for member, kernel in members.items():
            archive.writestr(zipfile.ZipInfo(member), kernel_ir(kernel), zipfile.ZIP_LZMA)
    unfinished.replace(path)


if __name__ == "__main__":
    main(sys.argv[1:])
