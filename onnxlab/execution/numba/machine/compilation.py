"""Kernels to LLVM IR by Numba, IR to object code by LLVM; and the process that compiles in the background of another.

IR suits every processor of a family, and wheels hold it, so that Numba is asked only where sources changed.

Object code calls nothing of Python or Numba: loading it needs neither. `serve()` reads names of kernels from standard
input, a line each, and answers each on standard output with a line of JSON, {"kernel", "version", "bytes", "error"},
and then so many bytes.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

from onnxlab.execution.numba.machine import object_cache
from onnxlab.execution.numba.machine.host import host
from onnxlab.execution.numba.machine.records import module_of

ENTRY = "onnxlab_entry"
"""The one symbol of an object file."""
IR_FOLDER = Path(__file__).parents[1] / "llvm_ir"
"""A zip file for each family of processors, which wheels hold; members are named by `object_cache.origin`."""
_IDLE = 20.0
"""Seconds without a question after which the process ends."""
_PATIENCE = 900.0
"""Seconds that one kernel may take; on a busy machine one takes tens of them."""


def compile_kernel(name: str) -> bytes:
    """The object code of a kernel: position-independent, with `ENTRY` as its only name.

    Raises:
        Exception: what Numba or LLVM raise.
    """
    import llvmlite.binding as llvm

    try:
        with zipfile.ZipFile(IR_FOLDER / f"{host().name}.zip") as archive:
            module = llvm.parse_assembly(archive.read(object_cache.origin(name)).decode())
    except (OSError, KeyError, RuntimeError):  # made of other sources, or by a later LLVM than ours
        module = llvm.parse_assembly(kernel_ir(name))
    machine = _machine()
    module.triple, module.data_layout = llvm.get_process_triple(), str(machine.target_data)
    code: bytes = machine.emit_object(module)
    return code


def kernel_ir(name: str) -> str:
    """The LLVM IR of a kernel, optimized, by Numba: for all processors of the host's family.

    Raises:
        Exception: what Numba or LLVM raise.
    """
    import llvmlite.binding as llvm
    from numba.core.compiler_lock import global_compiler_lock

    source = importlib.import_module(f"onnxlab.execution.numba.kernels.{module_of(name)}")
    with global_compiler_lock:
        module = llvm.parse_assembly(_library(getattr(source, name)).get_llvm_str())
    for function in module.functions:
        if not function.is_declaration and function.name != ENTRY:
            function.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(_machine(), llvm.create_pipeline_tuning_options()))
    return str(module)


def _library(kernel: object_cache.Kernel) -> Any:
    """Numba's library of a kernel, with the entry that takes and returns plain numbers. Kernels raise nothing."""
    from llvmlite import ir
    from numba.core import compiler, types
    from numba.core.registry import cpu_target

    flags = compiler.Flags()
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
    flags.error_model = "numpy"
    result = types.int64 if kernel.returns else types.void
    context = cpu_target.target_context
    compiled = compiler.compile_extra(
        cpu_target.typing_context, context, kernel.function, (types.int64,) * kernel.arity, result, flags, {}
    )
    word = ir.IntType(64)
    outer = compiled.library.create_ir_module(ENTRY)
    native = ir.Function(outer, context.call_conv.get_function_type(result, compiled.fndesc.argtypes),
                         compiled.fndesc.llvm_func_name)  # fmt: skip
    kind = ir.FunctionType(word if kernel.returns else ir.VoidType(), [word] * kernel.arity)
    function = ir.Function(outer, kind, ENTRY)
    builder = ir.IRBuilder(function.append_basic_block())
    _, value = context.call_conv.call_function(builder, native, result, compiled.fndesc.argtypes, function.args)
    builder.ret(value) if kernel.returns else builder.ret_void()
    compiled.library.add_ir_module(outer)
    compiled.library.finalize()
    return compiled.library


def _machine() -> Any:
    """LLVM's compiler for this processor."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, reloc="pic"
    )


def serve() -> None:
    """Compile the kernels asked for until the input ends, none has come for a while, or one takes too long."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is not an answer
    with open(os.devnull, "w") as silence:
        faulthandler.dump_traceback_later(_IDLE, exit=True, file=silence)
        for line in sys.stdin.buffer:
            faulthandler.dump_traceback_later(_PATIENCE, exit=True)
            _answer(line.decode().strip(), answers)
            faulthandler.dump_traceback_later(_IDLE, exit=True, file=silence)


def _answer(name: str, answers: BinaryIO) -> None:
    code, version, error = b"", "", ""
    try:
        code, version = compile_kernel(name), object_cache.version(name)
    except Exception as failure:  # it is reported, and the next may be well
        error = f"{type(failure).__name__}: {failure}"
    head = {"kernel": name, "version": version, "bytes": len(code), "error": error}
    answers.write(json.dumps(head).encode() + b"\n" + code)
    answers.flush()
