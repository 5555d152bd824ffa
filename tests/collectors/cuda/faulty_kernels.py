"""A workload of kernels that fail on a GPU in every way, for the tests of containment there."""

from typing import Any

import numpy as np

from warpladder.workloads.api import Buffer, Case, CudaVariant, Launch, LibraryVariant, Workload

SOURCE = """
extern "C" __global__ void doubled(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
extern "C" __global__ void nothing(const float* x, float* y, int n) {}
extern "C" __global__ void outside(const float* x, float* y, int n) { y[(1LL << 40) + threadIdx.x] = x[0]; }
extern "C" __global__ void forever(const float* x, float* y, int n) { while (*(volatile const float*)x != 1e30f) {} }
"""


def kernel(name: str, *, threads: int = 256, source: str = SOURCE) -> CudaVariant:
    def launches(case: Case, config: Any) -> tuple[Launch, ...]:
        n = case.params["n"]
        return (Launch(name, (-(-n // 256), 1, 1), (threads, 1, 1), ("x", "y", np.int32(n))),)

    return CudaVariant(f"{name}_{threads}" if threads != 256 else name, name, "rung", source=source, launches=launches)


def not_waited_for(case: Case, inputs: Any, outputs: Any) -> Any:
    import cupy

    return lambda: [cupy.multiply(inputs["x"], 2, out=outputs["y"]) for _ in range(20)] and None


def too_large(case: Case, inputs: Any, outputs: Any) -> Any:
    import cupy

    return lambda: cupy.empty(1 << 45, cupy.uint8) and None


WORKLOAD = Workload(
    name="faulty",
    title="Doubling on a GPU, done badly",
    cases=tuple(Case({"n": n}, flops=n, min_bytes=8 * n, sets=("quick",), size_rank=n) for n in (1 << 24, 1001)),
    variants=(
        kernel("doubled"),
        kernel("nothing"),
        kernel("outside"),
        kernel("forever"),
        kernel("doubled", threads=2048),
        kernel("absent", source="this is not CUDA"),
        LibraryVariant("too_large", "too large", "peer", prepare=too_large),
        LibraryVariant("not_waited_for", "not waited for", "specimen", prepare=not_waited_for, synchronizes=False),
        LibraryVariant("not_installed", "not installed", "peer", requires=("no_such_package",)),
    ),
    buffers=lambda case: ({"x": Buffer((case.params["n"],))}, {"y": Buffer((case.params["n"],))}),
    make_inputs=lambda case, rng: {"x": rng.standard_normal(case.params["n"], dtype=np.float32)},
    reference=lambda case, inputs: {"y": 2.0 * inputs["x"].astype(np.float64)},
    baseline="doubled",
)
