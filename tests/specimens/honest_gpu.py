"""Functions and kernels on a GPU that are right, in the ways that real programs are written. None may be blamed."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import warpladder
from tests.specimens.catalogue import Collection, Honest
from warpladder.workloads.api import Buffer, Case, CudaVariant, Launch, Workload

try:
    import cupy
    import torch
    import triton
    import triton.language as tl
    from numba import cuda as numba_cuda

    jit, compiled, kernel_of_numba = triton.jit, torch.compile, numba_cuda.jit
except ImportError:  # the list of them is read where there is no GPU too
    cupy = torch = triton = tl = numba_cuda = None

    def jit(function: Any) -> Any:
        return function

    compiled = kernel_of_numba = jit

found = Collection()
affine = warpladder.Benchmark("honest_gpu_affine", arrays="torch", rows=[1024], n=[1024])


@affine.inputs
def matrix(rows: int, n: int, rng: np.random.Generator) -> Any:
    return {"x": rng.standard_normal((rows, n), np.float32)}


@affine.reference
def right_affine(x: Any) -> Any:
    return 2 * x + 1


@found.right(affine, "PyTorch", baseline=True)
def eager(x: Any) -> Any:
    return 2 * x + 1


@found.right(affine, "PyTorch")
def into(x: Any, out: Any) -> None:
    torch.mul(x, 2, out=out)
    out += 1


@found.right(affine, "PyTorch", writes_inputs=True)
def in_place(x: Any) -> None:
    x.mul_(2).add_(1)


found.right(affine, "PyTorch", name="torch_compile")(compiled(eager))


@found.right(affine, "PyTorch")
def replays_its_own_graph(x: Any) -> Any:
    """It copies its input to memory that a CUDA graph of its own reads."""
    graph, copy, out = _graph(tuple(x.shape))
    copy.copy_(x)
    graph.replay()
    return out


@cache
def _graph(shape: tuple[int, ...]) -> Any:
    graph, copy = torch.cuda.CUDAGraph(), torch.zeros(shape, device="cuda")
    eager(copy)
    with torch.cuda.graph(graph):
        out = eager(copy)
    return graph, copy, out


@found.right(affine, "PyTorch")
def view_of_its_own_buffer(x: Any) -> Any:
    """Its output has gaps in memory, and lies in memory that it keeps."""
    rows, n = x.shape
    view = _buffer(rows, 2 * n)[:, ::2]
    torch.add(torch.mul(x, 2), 1, out=view)
    return view


@cache
def _buffer(rows: int, n: int) -> Any:
    return torch.empty(rows, n, device="cuda")


@found.right(affine, "PyTorch")
def columns_first(x: Any) -> Any:
    return (2 * x.t().contiguous() + 1).t()


@found.right(affine, "PyTorch")
def joins_its_own_stream(x: Any) -> Any:
    now, beside = torch.cuda.current_stream(), _stream()
    beside.wait_stream(now)
    with torch.cuda.stream(beside):
        out = 2 * x + 1
    now.wait_stream(beside)
    return out


@cache
def _stream() -> Any:
    return torch.cuda.Stream()


@found.right(affine, "PyTorch")
def keeps_a_constant(x: Any) -> Any:
    """What it keeps depends on no element."""
    return torch.addcmul(_ones(tuple(x.shape)), x, _ones(tuple(x.shape)), value=2)


@cache
def _ones(shape: tuple[int, ...]) -> Any:
    return torch.ones(shape, device="cuda")


@found.right(affine, "PyTorch")
def waits_for_the_device(x: Any) -> Any:
    out = 2 * x + 1
    return out if bool(torch.isfinite(out).all()) else None


@found.right(affine, "CuPy", arrays="cupy")
def cupy_operators(x: Any) -> Any:
    return 2 * x + 1


@found.right(affine, "CuPy", arrays="cupy")
def cupy_into(x: Any, out: Any) -> None:
    cupy.multiply(x, 2, out=out)
    cupy.add(out, 1, out=out)


@found.right(affine, "CuPy", arrays="cupy")
def cupy_elementwise_kernel(x: Any) -> Any:
    return _elementwise()(x)


@cache
def _elementwise() -> Any:
    return cupy.ElementwiseKernel("float32 x", "float32 y", "y = 2 * x + 1", "specimens_affine")


SOURCE = """__global__ void affine(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * x[i] + 1;
}
"""


@found.right(affine, "CuPy", arrays="cupy")
def cupy_raw_kernel(x: Any) -> Any:
    out = cupy.empty_like(x)
    _raw()((-(-x.size // 256),), (256,), (x, out, np.int32(x.size)))
    return out


@cache
def _raw() -> Any:
    return cupy.RawKernel(f'extern "C" {SOURCE}', "affine")


@jit
def affine_kernel(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, at < n) + 1, at < n)


@found.right(affine, "Triton", configs=[{"block": 512}, {"block": 1024}])
def triton_blocks(x: Any, block: int) -> Any:
    out = torch.empty_like(x)
    affine_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), BLOCK=block)
    return out


@kernel_of_numba
def numba_kernel(x: Any, out: Any) -> None:
    i, j = numba_cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        out[i, j] = 2 * x[i, j] + 1


@found.right(affine, "Numba", arrays="numba")
def numba_on_the_stream(x: Any, out: Any, stream: Any) -> None:
    numba_kernel[(x.shape[0] // 16, x.shape[1] // 16), (16, 16), stream](x, out)


affine.cuda(
    SOURCE, kernel="affine", grid=lambda rows, n: rows * n // 256, block=256, args=("x", "out", lambda rows, n: rows * n)
)
found.honest.append(Honest(affine.name, "affine", "CUDA C++"))

# -- types ---------------------------------------------------------------------------------------------------------------------------

products = warpladder.Benchmark(
    "honest_gpu_products", n=[256], dtype=["float32", "float16", "bfloat16"], flops=lambda n: 2 * n**3
)


@products.inputs
def matrices(n: int, dtype: str, rng: np.random.Generator) -> Any:
    return tuple(torch.from_numpy(rng.standard_normal((n, n), np.float32)).to(getattr(torch, dtype)) for _ in range(2))


@products.reference
def right_product(a: Any, b: Any) -> Any:
    return a @ b


@found.right(products, "PyTorch", baseline=True)
def product(a: Any, b: Any) -> Any:
    return a @ b


@found.right(products, "PyTorch")
def product_of_transposed(a: Any, b: Any) -> Any:
    return (b.t() @ a.t()).t()


# -- inputs with rules of their own ----------------------------------------------------------------------------------------------------

gathered = warpladder.Benchmark("honest_gpu_gathered", arrays="torch", n=[1 << 18])


@gathered.inputs
def sorted_indices(n: int, rng: np.random.Generator) -> Any:
    return {"x": rng.standard_normal(n, np.float32), "at": np.sort(rng.integers(0, n, n // 2))}


@gathered.reference
def right_gathered(x: Any, at: Any) -> Any:
    return x[at]


@found.right(gathered, "PyTorch", baseline=True)
def takes_sorted_indices(x: Any, at: Any) -> Any:
    return x.index_select(0, at)


@found.right(gathered, "CuPy", arrays="cupy")
def cupy_takes_sorted_indices(x: Any, at: Any) -> Any:
    return x.take(at)


sparse = warpladder.Benchmark("honest_gpu_sparse_product", arrays="cupy", rows=[5000], n=[4000], per_row=[8])


@sparse.inputs
def compressed_rows(rows: int, n: int, per_row: int, rng: np.random.Generator) -> Any:
    columns = np.sort(rng.integers(0, n, (rows, per_row)), axis=1)
    return {
        "starts": np.arange(0, rows * per_row + 1, per_row, dtype=np.int32),
        "columns": columns.ravel().astype(np.int32),
        "values": rng.standard_normal(rows * per_row, np.float32),
        "x": rng.standard_normal(n, np.float32),
    }


@sparse.reference
def right_sparse_product(starts: Any, columns: Any, values: Any, x: Any) -> Any:
    return np.add.reduceat(values * x[columns], starts[:-1])


sparse.cuda(
    """__global__ void compressed_rows(const int* starts, const int* columns, const float* values, const float* x, float* out, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int k = starts[row]; k < starts[row + 1]; ++k) sum += values[k] * x[columns[k]];
  out[row] = sum;
}
""",
    kernel="compressed_rows",
    grid=lambda rows: -(-rows // 128),
    block=128,
    args=("starts", "columns", "values", "x", "out", "rows"),
    baseline=True,
)
found.honest.append(Honest(sparse.name, "compressed_rows", "CUDA C++"))

masked = warpladder.Benchmark("honest_gpu_masked", arrays="torch", n=[1 << 18])


@masked.inputs
def numbers_and_mask(n: int, rng: np.random.Generator) -> Any:
    return {"x": rng.standard_normal(n, np.float32), "mask": rng.integers(0, 2, n).astype(np.float32)}


@masked.reference
def right_masked(x: Any, mask: Any) -> Any:
    return {"y": x * mask, "count": np.array([mask.sum()]).astype(np.int64), "norm": np.sqrt((x * x * mask).sum())}


@found.right(masked, "PyTorch", baseline=True)
def array_whole_number_and_scalar(x: Any, mask: Any) -> Any:
    chosen = torch.where(mask == 1, x, torch.zeros_like(x))
    return {"y": chosen, "count": (mask == 1).sum().reshape(1), "norm": torch.linalg.vector_norm(chosen)}


solved = warpladder.Benchmark("honest_gpu_solved", arrays="torch", n=[64])


@solved.inputs
def positive_definite(n: int, rng: np.random.Generator) -> Any:
    factor = rng.standard_normal((n, n))
    return {"a": factor @ factor.T + n * np.eye(n), "b": rng.standard_normal((n, 1))}


@solved.reference
def right_solution(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b)


@found.right(solved, "PyTorch", baseline=True)
def solves_with_a_cholesky_factor(a: Any, b: Any) -> Any:
    return torch.cholesky_solve(b, torch.linalg.cholesky(a))


@found.right(solved, "CuPy", arrays="cupy")
def cupy_solves(a: Any, b: Any) -> Any:
    return cupy.linalg.solve(a, b)


# -- kernels with memory of their own --------------------------------------------------------------------------------------------------

_SUMS = """
extern "C" __global__ void in_blocks(const float* x, float* part, int n) {
  __shared__ float values[256];
  const int i = blockIdx.x * 256 + threadIdx.x;
  values[threadIdx.x] = i < n ? x[i] * x[i] : 0;
  for (int half = 128; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
  }
  if (threadIdx.x == 0) part[blockIdx.x] = values[0];
}
extern "C" __global__ void of_blocks(const float* part, float* y, int blocks) {
  float sum = 0;
  for (int k = 0; k < blocks; ++k) sum += part[k];
  y[0] = sqrtf(sum);
}
"""
N = 1 << 16


def _two_kernels(case: Case, config: Any) -> tuple[Launch, ...]:
    return (
        Launch("in_blocks", (N // 256, 1, 1), (256, 1, 1), ("x", "part", np.int32(N))),
        Launch("of_blocks", (1, 1, 1), (1, 1, 1), ("part", "y", np.int32(N // 256))),
    )


def _norm(name: str, graph: bool) -> CudaVariant:
    return CudaVariant(
        name, name, "rung", source=_SUMS, launches=_two_kernels, graph=graph,
        scratch=lambda case, config: {"part": Buffer((N // 256,))},
    )  # fmt: skip


WORKLOAD = Workload(
    name="honest_gpu_norm",
    title="The norm of an array",
    cases=(Case({"n": N}, flops=2 * N, min_bytes=4 * N, sets=("quick",)),),
    variants=(_norm("v01_scratch", graph=False), _norm("v02_graph_with_scratch", graph=True)),
    buffers=lambda case: ({"x": Buffer((N,))}, {"y": Buffer((1,))}),
    make_inputs=lambda case, rng: {"x": rng.standard_normal(N, dtype=np.float32)},
    reference=lambda case, inputs: {"y": np.array([np.linalg.norm(inputs["x"].astype(np.float64))])},
    baseline="v01_scratch",
)
found.honest += [Honest(WORKLOAD.name, name, "CUDA C++") for name in ("v01_scratch", "v02_graph_with_scratch")]
