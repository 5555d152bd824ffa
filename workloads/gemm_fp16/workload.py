"""D = A B^T in FP16 with sums in float32, as `gemm_bf16`."""

from warpladder.workloads.api import Case, LibraryVariant
from warpladder.workloads.gemm_bf16 import peers
from warpladder.workloads.gemm_bf16.problem import FP16, Problem
from warpladder.workloads.gemm_bf16.workload import make
from warpladder.workloads.gemm_fp16.rungs import CUDA_VARIANTS

_PROBLEM = Problem(FP16)
_TORCH = LibraryVariant("torch", "PyTorch", "peer", "fp16", requires=("torch",), prepare=peers.torch_matmul)
WORKLOAD = make("Matrix product in FP16", _PROBLEM, CUDA_VARIANTS, _TORCH)


def emulation_cases() -> tuple[Case, ...]:
    """Small cases for the tests on the CPU."""
    return _PROBLEM.emulation_cases()
