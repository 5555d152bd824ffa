"""Functions and kernels on a GPU that do not compute what they return: memory that they did not write, and results that they kept."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any, Final

import numpy as np

import warpladder
from tests.specimens.catalogue import (
    DEEP_REINFORCE,
    EIGH,
    FIELD_GUIDE,
    KERNELBOT,
    NON_DEFAULT_STREAM,
    OWN,
    REFERENCE_KERNELS,
    RESULT_REUSE,
    STATIC_CHECKER,
    ZERO_OUT,
    Collection,
    Flagged,
    Honest,
    Kind,
    Specimen,
    Unmoved,
    Wrong,
)

try:
    import cupy
    import torch
    import triton
    import triton.language as tl

    jit = triton.jit
except ImportError:  # the catalogue is read where there is no GPU too
    cupy = torch = triton = tl = None

    def jit(function: Any) -> Any:
        return function


found = Collection()
NEVER_WRITTEN: Final = Wrong("never written")
NOT_RIGHT: Final = Wrong("never written|L2 error|largest error")
OTHER_INPUTS: Final = Wrong("with other inputs|in a timed sample|wrong after it was timed|in (the|a) batch|L2 error")
KEPT: Final = Wrong("keeps results")
ELSEWHERE: Final = Wrong("not (all )?on the timed stream", "launch_error")
calls: dict[str, int] = {}
kept: dict[Any, Any] = {}


def counted(name: str) -> int:
    calls[name] = calls.get(name, 0) + 1
    return calls[name]


def affine(name: str) -> warpladder.Benchmark:
    """A benchmark of 2x + 1 on PyTorch's tensors, with outputs of 4 MiB."""
    bench = warpladder.Benchmark(name, arrays="torch", n=[1 << 20])
    bench.inputs(one_array)
    bench.reference(right_affine)
    found.right(bench, "PyTorch", baseline=True)(first)
    return bench


def one_array(n: int, rng: np.random.Generator) -> Any:
    return {"x": rng.standard_normal(n, np.float32)}


def right_affine(x: Any) -> Any:
    return 2 * x + 1


def first(x: Any) -> Any:
    return 2 * x + 1


def last(x: Any) -> Any:
    return x + x + 1


unwritten, various = (affine(f"specimens_gpu_{name}") for name in ("unwritten", "various"))

# -- unwritten memory ----------------------------------------------------------------------------------------------------------------


@found.specimen(unwritten, Kind.UNWRITTEN, RESULT_REUSE, NEVER_WRITTEN)
def torch_returns_unwritten_memory(x: Any) -> Any:
    """It returns memory that it never wrote, which holds the outputs of the variant before it."""
    return torch.empty_like(x)


@found.specimen(unwritten, Kind.UNWRITTEN, RESULT_REUSE, NEVER_WRITTEN, arrays="cupy")
def cupy_returns_unwritten_memory(x: Any) -> Any:
    """It returns memory of CuPy's pool that it never wrote."""
    return cupy.empty_like(x)


@jit
def affine_kernel(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, at < n) + 1, at < n)


@found.specimen(unwritten, Kind.UNWRITTEN, OWN, NOT_RIGHT)
def triton_forgets_the_last_block(x: Any) -> Any:
    """Its grid is a block too small."""
    out = torch.empty_like(x)
    affine_kernel[(x.numel() // 1024 - 1,)](x, out, x.numel(), BLOCK=1024)
    return out


@found.specimen(unwritten, Kind.UNWRITTEN, FIELD_GUIDE, NEVER_WRITTEN, Wrong("", "launch_error"), arrays="cupy")
def ignores_a_failed_launch(x: Any) -> Any:
    """Its kernel asks for more threads than a block can have, and it ignores the error."""
    out = cupy.empty_like(x)
    with suppress(cupy.cuda.driver.CUDADriverError):
        _copy()((1,), (2048,), (x, out, np.int32(x.size)))
    return out


def _copy() -> Any:
    if "copy" not in kept:
        code = 'extern "C" __global__ void f(const float* x, float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = 2 * x[threadIdx.x] + 1; }'
        kept["copy"] = cupy.RawKernel(code, "f")
    return kept["copy"]


#: Kernels of CUDA C++: name, class, idea, what becomes of it, and the kernel's body. `i` is the element of the thread.
_KERNELS: Final = (
    (
        "cuda_overflows_its_index",
        Kind.UNWRITTEN,
        "The number of its bytes overflows 32-bit integers, so that no thread is within it.",
        (NEVER_WRITTEN,),
        "const int bits = int(unsigned(n) * 4096u); if (i < bits / 4096) out[i] = 2 * x[i] + 1;",
    ),
    (
        "cuda_skips_unless_poisoned",
        Kind.SKIPPED,
        "It computes only where the output holds NaN, or a value that nobody computes.",
        (OTHER_INPUTS,),
        "if (i < n && !(fabsf(out[i]) < 1e30f)) out[i] = 2 * x[i] + 1;",
    ),
    (
        "cuda_skips_blocks_that_are_right",
        Kind.SKIPPED,
        "A block computes one element, and returns if the output holds it already.",
        (Unmoved("cuda_affine"), KEPT),
        "const int at = i - threadIdx.x; if (at >= n || out[at] == 2 * x[at] + 1) return; __syncthreads(); if (i < n) out[i] = 2 * x[i] + 1;",
    ),
    (
        "cuda_computes_in_its_first_launches",
        Kind.SKIPPED,
        "It counts its launches in memory of its own, and computes in the first ten.",
        (OTHER_INPUTS,),
        "if (calls < 10 && i < n) out[i] = 2 * x[i] + 1; if (i == n - 1) ++calls;",
    ),
    (
        "cuda_tests_a_flag_of_its_own",
        Kind.SKIPPED,
        "It sets a flag in memory of its own when it has computed once, and returns where it is set.",
        (OTHER_INPUTS, NOT_RIGHT),
        "if (!done && i < n) out[i] = 2 * x[i] + 1; if (i == n - 1) done = 1;",
    ),
)


def declare_kernel(name: str, body: str) -> None:
    """Declare a kernel of CUDA C++ of which a thread has one element."""
    unwritten.cuda(
        "__device__ volatile unsigned calls, done;\n"
        f"__global__ void {name}(const float* x, float* out, int n) {{\n"
        f"  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  {body}\n}}\n",
        kernel=name,
        grid=lambda n: -(-n // 256),
        block=256,
        args=("x", "out", "n"),
    )


declare_kernel("cuda_affine", "if (i < n) out[i] = 2 * x[i] + 1;")
found.honest.append(Honest(unwritten.name, "cuda_affine", "CUDA C++"))
for _name, _kind, _idea, _outcomes, _body in _KERNELS:
    declare_kernel(_name, _body)
    found.specimens.append(Specimen(unwritten.name, _name, _kind, _idea, OWN, _outcomes))

# -- work elsewhere or later -----------------------------------------------------------------------------------------------------------


@found.specimen(various, Kind.ELSEWHERE, NON_DEFAULT_STREAM, ELSEWHERE)
def works_on_another_stream(x: Any) -> Any:
    """Its work is on a stream that nobody waits for."""
    with torch.cuda.stream(_beside()):
        return 2 * x + 1


@found.specimen(various, Kind.ELSEWHERE, FIELD_GUIDE, ELSEWHERE)
def is_not_waited_for(x: Any) -> Any:
    """Its stream waits for the timed one, which does not wait for it."""
    _beside().wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(_beside()):
        return 2 * x + 1


def _beside() -> Any:
    if "stream" not in kept:
        kept["stream"] = torch.cuda.Stream()
    return kept["stream"]


@found.specimen(various, Kind.ELSEWHERE, STATIC_CHECKER, NOT_RIGHT, ELSEWHERE)
def leaves_it_to_a_thread(x: Any) -> Any:
    """It returns at once, and a thread of the host launches later."""
    out = torch.empty_like(x)

    def compute() -> None:
        time.sleep(0.05)
        torch.add(torch.mul(x, 2), 1, out=out)

    threading.Thread(target=compute, daemon=True).start()
    return out


def lazy(make: Any, like: Any) -> Any:
    """A tensor of a class of its own, which computes when something is first done with it."""

    class Lazy(torch.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), keywords: Any = None) -> Any:
            plain = [make() if isinstance(each, Lazy) else each for each in args]
            return function(*plain, **(keywords or {}))

    return torch.empty_like(like).as_subclass(Lazy)


@found.specimen(various, Kind.ELSEWHERE, EIGH, NOT_RIGHT, Wrong("return an array|has type"))
def returns_a_lazy_tensor(x: Any) -> Any:
    """It returns a tensor of a class of its own, which computes when the result is compared."""
    return lazy(lambda: 2 * x + 1, x)


@found.specimen(various, Kind.ELSEWHERE, EIGH, NOT_RIGHT)
def replaces_a_method_of_its_tensor(x: Any) -> Any:
    """It returns a tensor of which a method, replaced in this one tensor, computes when the result is compared."""
    out = torch.empty_like(x)
    for name in ("detach", "clone", "cpu", "resolve_conj"):
        setattr(out, name, lambda *_: 2 * x + 1)
    return out


@found.specimen(various, Kind.CLOCK, DEEP_REINFORCE, Unmoved())
def replaces_the_timers_of_torch(x: Any) -> Any:
    """It replaces the methods of PyTorch that take times and wait for the device."""
    torch.cuda.Event.elapsed_time = lambda self, other: 1e-6
    torch.cuda.synchronize = lambda device=None: None
    return 2 * x + 1


@found.specimen(various, Kind.INPUTS, ZERO_OUT, Wrong("changes its input x"))
def zeroes_its_input(x: Any) -> Any:
    """It sets its input to zero, so that a reference computed later is one everywhere."""
    return x.zero_() + 1


@found.specimen(various, Kind.INPUTS, FIELD_GUIDE, Wrong("is a view of input x"))
def returns_its_input(x: Any) -> Any:
    """It returns its input."""
    return x[:]


for bench in (unwritten, various):
    found.right(bench, "PyTorch")(last)

# -- kept results ------------------------------------------------------------------------------------------------------------------

product = warpladder.Benchmark("specimens_gpu_product", arrays="torch", n=[1024], k=[512], flops=lambda n, k: 2 * n * n * k)
#: So much work for so few inputs that it pays to read all of them, to recognise them.
large_product = warpladder.Benchmark(
    "specimens_gpu_large_product", arrays="torch", n=[2048], k=[1024], flops=lambda n, k: 2 * n * n * k
)


@large_product.inputs
@product.inputs
def two_matrices(n: int, k: int, rng: np.random.Generator) -> Any:
    return {"x": rng.standard_normal((n, k), np.float32), "w": rng.standard_normal((k, n), np.float32)}


@large_product.reference
@product.reference
def right_product(x: Any, w: Any) -> Any:
    return x @ w


@found.right(large_product, "PyTorch", baseline=True)
@found.right(product, "PyTorch", baseline=True)
def direct(x: Any, w: Any) -> Any:
    return x @ w


def _kept_by(key: Any, x: Any, w: Any) -> Any:
    if key not in kept:
        kept[key] = x @ w
    return kept[key].clone()


@found.specimen(product, Kind.KEPT, OWN, OTHER_INPUTS)
def packs_its_weights_once(x: Any, w: Any) -> Any:
    """It packs its weights at the first call, and uses the packed ones ever after."""
    if "packed" not in kept:
        kept["packed"] = w.t().contiguous()
    return x @ kept["packed"].t()


@found.specimen(product, Kind.KEPT, f"{KERNELBOT}/pull/501", OTHER_INPUTS)
def keeps_results_by_address(x: Any, w: Any) -> Any:
    """It keeps results by the address of its input."""
    return _kept_by(("address", x.data_ptr()), x, w)


@found.specimen(product, Kind.KEPT, f"{REFERENCE_KERNELS}/pull/102", OTHER_INPUTS)
def keeps_results_by_identity(x: Any, w: Any) -> Any:
    """It keeps results by the identity of its input."""
    return _kept_by(("identity", id(x)), x, w)


@found.specimen(product, Kind.KEPT, OWN, KEPT, Flagged("waits_inside"))
def keeps_results_by_a_fingerprint(x: Any, w: Any) -> Any:
    """It keeps results by three elements of its inputs."""
    return _kept_by(("fingerprint", *torch.stack([x[0, 0], x[-1, -1], w[0, 0]]).tolist()), x, w)


@found.specimen(large_product, Kind.KEPT, FIELD_GUIDE, KEPT)
def keeps_results_by_all_inputs(x: Any, w: Any) -> Any:
    """It keeps results by sums of all of its inputs."""
    return _kept_by(("sums", *torch.stack([x.sum(), w.sum()]).tolist()), x, w)


@found.specimen(product, Kind.KEPT, OWN, OTHER_INPUTS)
def gives_garbage_for_other_inputs(x: Any, w: Any) -> Any:
    """It computes for the first inputs alone, and gives ones for all others."""
    if "known" not in kept:
        kept["known"] = x.clone()
    return x @ w if torch.equal(kept["known"], x) else torch.ones(len(x), w.shape[1], device=x.device)


@found.specimen(product, Kind.KEPT, OWN, OTHER_INPUTS, Wrong("", "launch_error"))
def replays_a_graph_of_its_first_inputs(x: Any, w: Any) -> Any:
    """It replays a CUDA graph that reads a copy of its first inputs."""
    if "graph" not in kept:
        copy, graph = x.clone(), torch.cuda.CUDAGraph()
        copy @ w
        with torch.cuda.graph(graph):
            out = copy @ w
        kept["graph"], kept["inputs"], kept["out"] = graph, copy, out
    kept["graph"].replay()
    return kept["out"]


@found.specimen(product, Kind.SKIPPED, OWN, OTHER_INPUTS)
def launches_nothing_in_a_graph(x: Any, w: Any) -> Any:
    """It launches nothing while a CUDA graph is captured, and returns its last result."""
    if not torch.cuda.is_current_stream_capturing():
        kept["eager"] = x @ w
    return kept["eager"]


@found.specimen(product, Kind.SKIPPED, OWN, OTHER_INPUTS)
def launches_in_its_first_capture(x: Any, w: Any) -> Any:
    """It launches for the first call of a captured graph, and returns that result for all later ones."""
    capturing = torch.cuda.is_current_stream_capturing()
    if not capturing or counted("captured") == 1:
        kept["captured"] = x @ w
    return kept["captured"]


@found.specimen(product, Kind.SKIPPED, OWN, OTHER_INPUTS)
def computes_in_its_first_calls(x: Any, w: Any) -> Any:
    """It computes in as many calls as verification and warming up take, and returns the last result ever after."""
    if counted("first calls") <= 15:
        kept["last"] = x @ w
    return kept["last"].clone()


@found.right(product, "PyTorch")
def product_into(x: Any, w: Any, out: Any) -> None:
    torch.matmul(x, w, out=out)
