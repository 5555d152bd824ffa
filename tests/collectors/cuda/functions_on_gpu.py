"""Benchmarks of functions on the GPU, right and wrong: PyTorch, Triton, CuPy, Numba and CUDA C++. See test_functions.py."""

import cupy
import numpy as np
import torch
import triton
import triton.language as tl
from numba import cuda as numba_cuda

import warpladder

bench = warpladder.Benchmark("affine", n=[1 << 12, 1 << 22])

#: Variants that must be measured.
RIGHT = (
    *("eager", "compiled", "with_triton", "with_cupy", "raw_kernel", "with_numba", "into", "in_place", "joined", "from_host"),
    *("of_source", "much_shared", "strided", "captured_random", "numba_default_stream"),
)
#: Variant -> verdict, and a part of its reason.
WRONG = {
    "side_stream": ("launch_error", "its work is not on the timed stream"),
    "not_joined": ("launch_error", "take a parameter `stream` and launch on it"),
    "on_cpu": ("wrong_result", "output out is on the host, and the variant runs on the GPU"),
    "view": ("wrong_result", "output out is a view of input x"),
    "nothing": ("wrong_result", "returns None; return the output"),
    "launch_object": ("wrong_result", "return an array"),
    "mutates": ("wrong_result", "changes its input x"),
    "third_call": ("launch_error", "the third call"),
    "too_wide": ("wrong_result", "output out has type float64, not float32"),
    "too_short": ("wrong_result", "output out has shape"),
    "kept": ("wrong_result", "other inputs"),
    "out_of_bounds": ("launch_error", ""),
    "too_much_shared": ("skipped", "affine needs 300,000 bytes of shared memory a block, and this GPU has"),
}


@bench.inputs
def inputs(n):
    return torch.randn(n)


@bench.reference
def reference(x):
    return 2 * x + 1


@bench.variant(baseline=True)
def eager(x):
    return 2 * x + 1


bench.variant(torch.compile(eager), name="compiled", role="peer")


@triton.jit
def affine_kernel(x, out, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, at < n) + 1, at < n)


@bench.variant(configs=[{"block": 256}, {"block": 1024}])
def with_triton(x, block):
    out = torch.empty_like(x)
    affine_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), BLOCK=block)
    return out


@bench.variant(arrays="cupy")
def with_cupy(x):
    return 2 * x + 1


SOURCE = """extern "C" __global__ void affine(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * x[i] + 1;
}"""
affine = cupy.RawKernel(SOURCE, "affine")


@bench.variant(arrays="cupy")
def raw_kernel(x, out):
    affine((-(-x.size // 256),), (256,), (x, out, np.int32(x.size)))


for variant, shared in (("of_source", 0), ("much_shared", 60_000), ("too_much_shared", 300_000)):
    bench.cuda(
        SOURCE.replace('extern "C" ', "") + "\n",
        kernel="affine",
        grid=lambda n: -(-n // 256),
        block=256,
        args=("x", "out", "n"),
        shared=shared,
        name=variant,
    )


@numba_cuda.jit
def numba_affine(x, out):
    i = numba_cuda.grid(1)
    if i < x.size:
        out[i] = 2 * x[i] + 1


@bench.variant(arrays="numba")
def with_numba(x, out, stream):
    numba_affine[-(-x.size // 256), 256, stream](x, out)


@bench.variant(arrays="numba")
def numba_default_stream(x, out):
    numba_affine[-(-x.size // 256), 256](x, out)


@bench.variant
def into(x, out):
    torch.mul(x, 2, out=out)
    out += 1


@bench.variant(writes_inputs=True)
def in_place(x):
    x.mul_(2).add_(1)


@bench.variant
def strided(x):
    """Its output has gaps in memory."""
    return torch.stack([2 * x + 1, x], dim=1)[:, 0]


@bench.variant
def captured_random(x):
    """A CUDA graph may refuse the random numbers."""
    torch.rand(8, device=x.device)
    return 2 * x + 1


beside = torch.cuda.Stream()


@bench.variant
def joined(x):
    now = torch.cuda.current_stream()
    beside.wait_stream(now)
    with torch.cuda.stream(beside):
        out = 2 * x + 1
    now.wait_stream(beside)
    return out


@bench.variant(arrays="numpy")
def from_host(x):
    return (2 * x + 1).astype(np.float32)


@bench.variant(role="specimen")
def side_stream(x):
    with torch.cuda.stream(beside):
        return 2 * x + 1


@bench.variant(role="specimen")
def not_joined(x):
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        return 2 * x + 1


@bench.variant(role="specimen")
def on_cpu(x):
    return (2 * x + 1).cpu()


@bench.variant
def view(x):
    return x[:]


@bench.variant(role="specimen")
def nothing(x):
    2 * x + 1


@bench.variant(role="specimen")
def launch_object(x):
    out = torch.empty_like(x)
    return affine_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)


@bench.variant(role="specimen")
def mutates(x):
    return x.mul_(2) + 1


calls = []


@bench.variant(role="specimen")
def third_call(x):
    calls.append(None)
    if len(calls) % 3 == 0:
        raise ValueError("the third call")
    return 2 * x + 1


@bench.variant(role="specimen")
def too_wide(x):
    return 2 * x.double() + 1


@bench.variant(role="specimen")
def too_short(x):
    return 2 * x[1:] + 1


kept_outputs = {}


@bench.variant(role="specimen")
def kept(x):
    if x.numel() not in kept_outputs:
        kept_outputs[x.numel()] = 2 * x + 1
    return kept_outputs[x.numel()].clone()


@bench.variant(role="specimen")
def out_of_bounds(x):
    out = torch.empty_like(x)
    affine_kernel[(1 << 24,)](x, out, 1 << 40, BLOCK=1024)
    return out


products = warpladder.Benchmark("products", n=[256], dtype=["float32", "float16", "bfloat16"], flops=lambda n: 2 * n**3)


@products.inputs
def matrices(n, dtype):
    kind = getattr(torch, dtype)
    return torch.randn(n, n).to(kind), torch.randn(n, n).to(kind).t()


@products.reference
def right_product(a, b):
    return a @ b


@products.variant
def returned(a, b):
    assert not b.is_contiguous()
    return a @ b


@products.variant
def product_into(a, b, out):
    torch.matmul(a, b, out=out)


normed = warpladder.Benchmark("layer_norm", gradients=True, n=[256, 1024])


@normed.inputs
def rows(n):
    return torch.randn(512, n), torch.randn(n)


@normed.reference
def right_norm(x, weight):
    return torch.nn.functional.layer_norm(x, (x.shape[1],), weight)


@normed.variant
def native(x, weight):
    return torch.nn.functional.layer_norm(x, (x.shape[1],), weight)


def norm_by_hand(x, weight):
    mean = x.mean(1, keepdim=True)
    return (x - mean) * torch.rsqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5) * weight


normed.variant(norm_by_hand)
normed.variant(torch.compile(norm_by_hand), name="norm_compiled", role="peer")
