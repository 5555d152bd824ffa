"""D = A B^T in FP8 (E4M3) with results in BF16, as `gemm_bf16`."""

from warpladder.workloads.api import Case, LibraryVariant, Params
from warpladder.workloads.gemm_bf16 import peers
from warpladder.workloads.gemm_bf16.problem import FP8, Problem, size_of
from warpladder.workloads.gemm_bf16.workload import make
from warpladder.workloads.gemm_fp8.rungs import CUDA_VARIANTS

_PIECE = 16


def _off_pieces(case: Case, config: Params) -> str | None:
    """PyTorch takes FP8 matrices of such sizes only."""
    size = size_of(case)
    return f"torch._scaled_mm takes multiples of {_PIECE} along k and n" if size.k % _PIECE or size.n % _PIECE else None


def _off_words(case: Case, config: Params) -> str | None:
    """cuBLASLt takes FP8 matrices only if each row has whole words."""
    size = size_of(case)
    return "cuBLASLt takes FP8 matrices whose rows have multiples of 4 bytes" if size.k % 4 or size.n % 2 else None


_PROBLEM = Problem(FP8)
_TORCH = LibraryVariant(
    "torch",
    "PyTorch",
    "peer",
    "fp8",
    ({"fast": True}, {"fast": False}),
    _off_pieces,
    requires=("torch",),
    prepare=peers.torch_scaled,
)
WORKLOAD = make("Matrix product in FP8", _PROBLEM, CUDA_VARIANTS, _TORCH, _off_words)


def emulation_cases() -> tuple[Case, ...]:
    """Small cases for the tests on the CPU."""
    return _PROBLEM.emulation_cases()
