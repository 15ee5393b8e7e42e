"""Kernels to object code, by Numba; and the process that compiles in the background of another.

Object code calls nothing of Python or Numba: loading it needs neither. `serve()` reads names of kernels from standard
input, a line each, and answers each on standard output with a line of JSON, {"kernel", "version", "bytes", "error"},
and then so many bytes. It ends when its input does, or when nothing was asked for a while.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO

from onnxlab.execution.numba.machine import object_cache
from onnxlab.execution.numba.machine.records import module_of

ENTRY = "onnxlab_entry"
"""The one symbol of an object file."""
_IDLE = 20.0
"""Seconds without a question after which the process ends."""


def compile_kernel(name: str) -> bytes:
    """The object code of a kernel: position-independent, with `ENTRY` as its only name.

    Raises:
        Exception: what Numba or LLVM raise.
    """
    from numba.core.compiler_lock import global_compiler_lock

    module = importlib.import_module(f"onnxlab.execution.numba.kernels.{module_of(name)}")
    with global_compiler_lock:
        return _object_code(_library(getattr(module, name)))


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


def _object_code(library: Any) -> bytes:
    """Machine code for this processor of all that the entry needs."""
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(library.get_llvm_str())
    for function in module.functions:
        if not function.is_declaration and function.name != ENTRY:
            function.linkage = "internal"
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, reloc="pic"
    )
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    code: bytes = machine.emit_object(module)
    return code


def serve() -> None:
    """Compile the kernels asked for until no request has come for a while."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is not an answer
    names: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, names), daemon=True).start()
    while True:
        try:
            name = names.get(timeout=_IDLE)
        except Empty:
            return
        _answer(name, answers)


def _listen(questions: BinaryIO, names: SimpleQueue[str]) -> None:
    """Take names in; when the parent process has ended, end at once, whatever is under way."""
    for line in questions:
        names.put(line.decode().strip())
    os._exit(0)


def _answer(name: str, answers: BinaryIO) -> None:
    code, version, error = b"", "", ""
    try:
        code, version = compile_kernel(name), object_cache.version(name)
    except Exception as failure:  # it is reported, and the next may be well
        error = f"{type(failure).__name__}: {failure}"
    head = {"kernel": name, "version": version, "bytes": len(code), "error": error}
    answers.write(json.dumps(head).encode() + b"\n" + code)
    answers.flush()
