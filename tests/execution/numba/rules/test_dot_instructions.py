"""Dot products of integers by instructions of the processor, and by kernels for other widths of vectors."""

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest

from onnxlab.execution.numba.machine.host import HOSTS


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("processor", "instruction"), [("znver4", "vpdpwssd"), ("sapphirerapids", "vpdpwssd"), ("x86-64-v3", "vpmaddwd")]
)
def test_pairs_are_one_instruction(processor, instruction, monkeypatch):
    """Products and sum of pairs, also on processors that are not this one, whose code cannot run here."""
    import llvmlite.binding as llvm
    from llvmlite import ir

    from onnxlab.execution.numba.kernels.simd import narrow_integers

    lanes = 8 if instruction == "vpmaddwd" else 16
    names = {8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}
    monkeypatch.setattr(narrow_integers, "_PAIRS", ((lanes, names[lanes]),))
    sums, shorts = ir.VectorType(ir.IntType(32), lanes), ir.VectorType(ir.IntType(16), 2 * lanes)
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(sums, [sums, shorts, shorts]), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    total, a, b = function.args
    builder.ret(builder.add(total, narrow_integers.pairs(builder, a, b)))
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(cpu=processor, opt=3)
    assert instruction in machine.emit_assembly(llvm.parse_assembly(str(module)))


@pytest.mark.parametrize("narrow_weights", [True, False])
def test_a_tile_of_pairs_adds_by_one_instruction(narrow_weights, monkeypatch):
    """Of many rows; LLVM makes two of every second one where a sum takes two pairs in a row."""
    import llvmlite.binding as llvm
    from llvmlite import ir

    from onnxlab.execution.numba.kernels import dot
    from onnxlab.execution.numba.kernels.simd import narrow_integers
    from onnxlab.execution.numba.kernels.simd.lanes import WIDTH
    from onnxlab.execution.numba.kernels.simd.microkernel import ROWS, VECTORS

    names = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}
    monkeypatch.setattr(narrow_integers, "_PAIRS", ((WIDTH, names[WIDTH]),))
    module, word = ir.Module(), ir.IntType(64)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [word] * 8), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    dot._build(builder, ROWS, narrow_weights, *function.args)
    builder.ret_void()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(cpu="sapphirerapids", opt=3)
    parsed = llvm.parse_assembly(str(module))
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(parsed, passes)
    assembly = machine.emit_assembly(parsed)
    assert assembly.count("vpdpwssd") == ROWS * VECTORS
    assert "vpmaddwd" not in assembly


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("instruction", [True, False])
@pytest.mark.parametrize("vnni", [True, False])
def test_quads(rng, lanes, instruction, vnni, monkeypatch):
    """By the processor's instructions, halves of vectors too wide for these, and written out for others."""
    import llvmlite.binding as llvm
    from llvmlite import ir

    from onnxlab.execution.numba.kernels.simd import narrow_integers
    from onnxlab.execution.numba.machine import object_loading
    from onnxlab.execution.numba.machine.compilation import ENTRY

    monkeypatch.setattr(narrow_integers, "VNNI", vnni)
    for name in ("_PAIRS", "_BYTE_PAIRS", "_QUADS"):
        if not instruction:
            monkeypatch.setattr(narrow_integers, name, ())
    sums, bytes_ = ir.VectorType(ir.IntType(32), lanes), ir.VectorType(ir.IntType(8), 4 * lanes)
    word = ir.IntType(64)
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [word] * 3), ENTRY)
    builder = ir.IRBuilder(function.append_basic_block())
    a, b = (builder.load(builder.inttoptr(place, bytes_.as_pointer()), align=1) for place in function.args[:2])
    place = builder.inttoptr(function.args[2], sums.as_pointer())
    builder.store(narrow_integers.add_quads(builder, builder.load(place, align=1), a, b), place, align=1)
    builder.ret_void()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, reloc="pic"
    )
    code = machine.emit_object(llvm.parse_assembly(str(module)))
    levels = rng.integers(0, 256, (lanes, 4)).astype(np.uint8)
    lowest = -128 if vnni else -64  # beyond which two neighbors would saturate
    weights = rng.integers(lowest, -lowest, (lanes, 4)).astype(np.int8)
    levels[:2], weights[0], weights[1] = 255, lowest, -lowest - 1
    totals = rng.integers(-1000, 1000, lanes).astype(np.int32)
    expected = totals + (levels.astype(np.int32) * weights).sum(axis=1)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(object_loading.load("quads", code))
    call(*(array.__array_interface__["data"][0] for array in (levels, weights, totals)))
    np.testing.assert_array_equal(totals, expected)


@pytest.mark.parametrize(("processor", "lanes"), [("znver4", 16), ("sapphirerapids", 8), ("alderlake", 8)])
def test_quads_are_one_instruction(processor, lanes, monkeypatch):
    import llvmlite.binding as llvm
    from llvmlite import ir

    from onnxlab.execution.numba.kernels.simd import narrow_integers

    monkeypatch.setattr(narrow_integers, "VNNI", True)
    monkeypatch.setattr(narrow_integers, "_QUADS", ((lanes, f"llvm.x86.avx512.vpdpbusd.{lanes * 32}"),))
    sums, bytes_ = ir.VectorType(ir.IntType(32), lanes), ir.VectorType(ir.IntType(8), 4 * lanes)
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(sums, [sums, bytes_, bytes_]), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(narrow_integers.add_quads(builder, *function.args))
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(cpu=processor, opt=3)
    assembly = machine.emit_assembly(llvm.parse_assembly(str(module)))
    assert assembly.count("vpdpbusd") == 1
    assert "vpmadd" not in assembly


@pytest.mark.skipif(not os.environ.get("ONNXLAB_LONG"), reason="every kernel is compiled anew: minutes")
@pytest.mark.parametrize("width", sorted(HOSTS))
def test_other_widths_of_vectors(width):
    files = [
        f"tests/execution/numba/rules/test_{name}.py" for name in ("integer_products", "recurrent", "low_bits", "ml")
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files]
    environment = {name: value for name, value in os.environ.items() if name != "ONNXLAB_LONG"}
    done = subprocess.run(command, env=environment | {"ONNXLAB_SIMD": width}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
