"""Properties of the processor for kernels: the width of its vectors and the tile that fits its registers.

The choice is made once per process. `ONNXLAB_SIMD=avx512_vnni|avx512|avx2_vnni|avx2|portable` forces it: what the
processor does not have is still right, because LLVM splits the vectors and instructions are written out, but slow.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
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
    """

    name: str
    lanes: int
    rows: int
    vectors: int
    vnni: bool = False

    @property
    def columns(self) -> int:
        """Columns of a tile, and so of a panel of packed weights."""
        return self.lanes * self.vectors


HOSTS = {
    host.name: host
    for host in (
        Host("avx512_vnni", 16, 6, 4, vnni=True), Host("avx512", 16, 6, 4),
        Host("avx2_vnni", 8, 6, 2, vnni=True), Host("avx2", 8, 6, 2),
        Host("portable", 4, 6, 2),
    )
}  # fmt: skip


@cache
def host() -> Host:
    """The host of this process.

    Raises:
        ValueError: ONNXLAB_SIMD names none of HOSTS.
    """
    forced = os.environ.get(VARIABLE)
    if forced:
        if forced not in HOSTS:
            raise ValueError(f"{VARIABLE}={forced!r}: give one of {', '.join(HOSTS)}, or leave it unset")
        return HOSTS[forced]
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    if features.get("avx512f") and features.get("avx512vl"):
        return HOSTS["avx512_vnni" if features.get("avx512vnni") else "avx512"]
    if features.get("avx2") and features.get("fma"):
        return HOSTS["avx2_vnni" if features.get("avxvnni") else "avx2"]
    return HOSTS["portable"]
