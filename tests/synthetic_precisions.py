"""A run of a matrix product in three precisions, with figures that follow a known rule."""

from pathlib import Path

from tests.synthetic_run import Made, write_variants

GEMM = "gemm"
#: Shares are of the fp32 rate, 50 TFLOP/s: TF32 may reach 6 of it, and 3xTF32 2.
VARIANTS = (
    Made(GEMM, "v01_naive", "One thread an element", "rung", "cuda", {"": 0.08}, "a tile in shared memory", error=4.0e-7),
    Made(
        GEMM,
        "v02_tile",
        "8x8 registers a thread",
        "rung",
        "cuda",
        {"tile=64": 0.7, "tile=128": 0.8},
        "tensor cores",
        error=3.0e-7,
    ),
    Made(GEMM, "v03_tensor_cores", "TF32 on tensor cores", "rung", "cuda", {"": 3.2}, "lose no digits", "tf32", 3.0e-4),
    Made(GEMM, "v04_split", "Three TF32 products for one", "rung", "cuda", {"": 1.6}, "asynchronous copies", "3xtf32", 2.0e-7),
    Made(GEMM, "v05_pipelined", "TF32 with asynchronous copies", "rung", "cuda", {"": 4.8}, "", "tf32", 3.1e-4),
    Made(GEMM, "cublas", "cuBLAS", "peer", "library", {"": 0.9}, error=2.5e-7),
    Made(GEMM, "cublas_tf32", "cuBLAS, TF32 allowed", "peer", "library", {"": 4.0}, "", "tf32", 2.9e-4),
    Made(GEMM, "numpy", "NumPy", "host", "host", {"": 0.02}),
    Made(GEMM, "numba_serial", "Numba, one thread", "host", "host", {"": 0.01}),
)


def write(data_dir: Path, run_id: str = "precisions", *, rounds: int = 20, seed: int = 9) -> Path:
    """Write a run that looks like an H200's recording of the product.

    Returns:
        The folder of the run.
    """
    return write_variants(data_dir, run_id, run_id, VARIANTS, rounds, seed, on_gpu=True)
