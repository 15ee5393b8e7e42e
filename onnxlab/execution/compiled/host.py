"""What the processor offers to kernels: the width of its vectors and the tile that fits its registers.

The choice is made once per process. `ONNXLAB_SIMD=avx512|avx2|portable` forces it: a width that the processor does not
have is still right, because LLVM splits the vectors, but slow.
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
    """

    name: str
    lanes: int
    rows: int
    vectors: int

    @property
    def columns(self) -> int:
        """Columns of a tile, and so of a panel of packed weights."""
        return self.lanes * self.vectors


HOSTS = {host.name: host for host in (Host("avx512", 16, 6, 4), Host("avx2", 8, 6, 2), Host("portable", 4, 6, 2))}


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
        return HOSTS["avx512"]
    return HOSTS["avx2"] if features.get("avx2") and features.get("fma") else HOSTS["portable"]
