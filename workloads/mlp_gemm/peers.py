"""cuBLAS, reached through PyTorch, and cuBLASLt."""

from collections.abc import Callable

from warpladder.workloads.api import Buffers, Case
from warpladder.workloads.mlp_gemm import cublaslt
from warpladder.workloads.mlp_gemm.problem import ALPHA, BETA


def cublas_fp32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """NVIDIA's matrix product in float32, TensorFloat-32 switched off.

    Idea: What everybody would call. cuBLAS chooses among kernels for many tiles, and splits the sums of small products.
    Bottleneck: The multiply-add units, at sizes that fill the device. cuBLAS updates C in place, so PyTorch copies C into D
        before it: a pass over two matrices that counts here, below 1 % from n = 4096 on, and a launch more at small sizes.
    Next: Less precision a product (`cublas_tf32`), or products of three that lose none (3xTF32).
    Source: NVIDIA cuBLAS by torch.addmm.
    """
    return _addmm(inputs, outputs, allow_tf32=False)


def cublas_tf32(case: Case, inputs: Buffers, outputs: Buffers) -> Callable[[], None]:
    """The same call with TensorFloat-32 allowed.

    Idea: Tensor cores, on operands of 10 bits of mantissa; products and sums are float32.
    Bottleneck: The tensor cores at large sizes; at small ones, feeding them. C is copied into D first, as for `cublas`.
    Next: Nothing in this library: less precision would be another type.
    Source: NVIDIA cuBLAS by torch.addmm with torch.backends.cuda.matmul.allow_tf32.
    """
    return _addmm(inputs, outputs, allow_tf32=True)


def cublaslt_fp32(case: Case, inputs: Buffers, outputs: Buffers, a: str) -> Callable[[], Buffers | None]:
    """NVIDIA's matrix product with D apart from C, the fastest of the algorithms that its heuristic offers.

    Idea: One kernel reads C and writes D, so that nothing is copied. The algorithms are timed first, from memory; the best config of A is the peer.
    Bottleneck: The multiply-add units at large sizes.
    Next: Less precision a product (`cublaslt_own_d_tf32`), or products of three that lose none (3xTF32).
    Source: NVIDIA cuBLASLt, cublasLtMatmul with CUBLAS_COMPUTE_32F, by nvmath-python.
    """
    return cublaslt.product(case, inputs, outputs, allow_tf32=False, a=a)


def cublaslt_tf32(case: Case, inputs: Buffers, outputs: Buffers, a: str) -> Callable[[], Buffers | None]:
    """The same call with TensorFloat-32 allowed.

    Idea: As `cublaslt_own_d`, on tensor cores. They read both operands along k, so that rows of A need no transposition inside the kernel.
    Bottleneck: The tensor cores, and the power that they take, at large sizes.
    Next: Nothing in this library: less precision would be another type.
    Source: NVIDIA cuBLASLt, cublasLtMatmul with CUBLAS_COMPUTE_32F_FAST_TF32, by nvmath-python.
    """
    return cublaslt.product(case, inputs, outputs, allow_tf32=True, a=a)


def _addmm(inputs: Buffers, outputs: Buffers, allow_tf32: bool) -> Callable[[], None]:
    import torch

    from warpladder.workloads import torch_bridge

    torch_bridge.use_current_stream()
    a, b, c, d = (torch_bridge.as_tensor(array) for array in (inputs["a"], inputs["b"], inputs["c"], outputs["d"]))
    switch = torch.backends.cuda.matmul

    def operation() -> None:
        before = switch.allow_tf32
        switch.allow_tf32 = allow_tf32
        try:
            torch.addmm(c, b, a, beta=BETA, alpha=ALPHA, out=d)  # arrays of columns: D^T = B^T A^T
        finally:
            switch.allow_tf32 = before

    return operation
