"""Functions of a library that nvcc builds: pointers to the device, and the stream that is timed."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from warpladder.workloads.declare.functions.extensions import CallFailed, CFunction, c_function

CODE = """
__global__ void twice(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * x[i];
}
extern "C" int doubled(const float* x, float* out, int n, cudaStream_t stream) {
  twice<<<(n + 255) / 256, 256, 0, stream>>>(x, out, n);
  return cudaGetLastError();
}
"""
ARGS = ("x", "out", "n", "stream")


@pytest.fixture(scope="module")
def doubled(tmp_path_factory: pytest.TempPathFactory) -> CFunction:
    compiler = shutil.which("nvcc") or shutil.which("nvcc", path=os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/bin")
    if compiler is None:
        pytest.skip("nvcc is not installed")
    folder = tmp_path_factory.mktemp("library")
    (folder / "doubled.cu").write_text(CODE)
    command = [compiler, "-shared", "-Xcompiler", "-fPIC", "-o", "libdoubled.so", "doubled.cu"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return c_function("libdoubled.so", "doubled", ARGS, source="doubled.cu", beside=folder)


@pytest.mark.thorough
def test_without_a_gpu_the_launch_fails_with_cuda_s_code(doubled: CFunction) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("is about machines without a GPU; this one has one")
    with pytest.raises(CallFailed, match=r"doubled of libdoubled\.so returned \d+; ") as failed:
        doubled(np.ones(4, np.float32), np.zeros(4, np.float32), 4, None)
    assert failed.value.code in (35, 100)  # cudaErrorInsufficientDriver, cudaErrorNoDevice


@pytest.mark.gpu
def test_on_a_gpu_it_writes_the_output_on_the_given_stream(doubled: CFunction) -> None:
    cupy = pytest.importorskip("cupy")
    x, out = cupy.arange(1000, dtype=cupy.float32), cupy.zeros(1000, cupy.float32)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    doubled(x, out, n=1000, stream=stream)
    stream.synchronize()
    assert cupy.array_equal(out, 2 * x)
