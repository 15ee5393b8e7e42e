"""Properties of the processor for kernels: the width of its vectors and the tile that fits its registers.

The choice is made once per process. `ONNXLAB_SIMD=avx512_vnni|avx512|avx2_vnni|avx2|portable` forces it: what the
processor does not have is still right, because LLVM splits the vectors and instructions are written out, but slow.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache

VARIABLE = "ONNXLAB_SIMD"


@dataclass(frozen=True, slots=True)
class Host:
    """A family of processors.

    Attributes:
        lanes: float32 elements of a vector.
        rows, vectors: tile of the microkernel: `rows` broadcasts times `vectors` vectors. The accumulators, one
            row of weights and one broadcast fit the registers: rows * vectors + vectors + 1 <= registers.
        vnni: whether four products of bytes are added to 32 bits by one instruction, without saturation.
        features: LLVM's names of what a processor of the family has; kernels name instructions of these.
        processor: LLVM's name of the plainest processor of the family, "" for the plainest of the architecture.
    """

    name: str
    lanes: int
    rows: int
    vectors: int
    vnni: bool = False
    features: tuple[str, ...] = ()
    processor: str = ""

    @property
    def columns(self) -> int:
        """Columns of a tile, and so of a panel of packed weights."""
        return self.lanes * self.vectors


_AVX2 = ("sse2", "ssse3", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe")
_AVX512 = (*_AVX2, "avx512f", "avx512vl", "avx512bw", "avx512dq", "avx512cd")
HOSTS = {
    host.name: host
    for host in (
        Host("avx512_vnni", 16, 6, 4, True, (*_AVX512, "avx512vnni"), "x86-64-v4"),
        Host("avx512", 16, 6, 4, False, _AVX512, "x86-64-v4"),
        Host("avx2_vnni", 8, 6, 2, True, (*_AVX2, "avxvnni"), "x86-64-v3"),
        Host("avx2", 8, 6, 2, False, _AVX2, "x86-64-v3"),
        Host("portable", 4, 6, 2),
    )
}
"""Families by name, the most capable first."""


@cache
def host() -> Host:
    """The host of this process: one that is forced has no features where this processor lacks some.

    Raises:
        ValueError: ONNXLAB_SIMD names none of HOSTS.
    """
    import llvmlite.binding as llvm

    present = llvm.get_host_cpu_features()
    forced = os.environ.get(VARIABLE)
    if not forced:
        return next(family for family in HOSTS.values() if all(map(present.get, family.features)))
    if forced not in HOSTS:
        raise ValueError(f"{VARIABLE}={forced!r}: give one of {', '.join(HOSTS)}, or leave it unset")
    family = HOSTS[forced]
    return family if all(map(present.get, family.features)) else replace(family, features=())
