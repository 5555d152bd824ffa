"""The rules of occupancy, compared with the answers of the driver for the GPU of this machine."""

import random
from typing import Any

import pytest

from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.data.occupancy import limits_of, occupancy
from warpladder.workloads.api import CudaVariant

#: 256 sums of each thread are alive at once, so that the compiler uses as many registers as it may.
SOURCE = """
extern "C" __global__ void sums(const float* x, float* y, int n) {
  float sum[256];
  for (int j = 0; j < 256; ++j) sum[j] = x[j];
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < 256; ++j) sum[j] = sum[j] * x[i] + sum[(j + 1) % 256];
  for (int j = 0; j < 256; ++j) y[j * 1024 + threadIdx.x] = sum[j];
}"""
MOST_REGISTERS = (16, 24, 32, 40, 48, 64, 80, 96, 128, 168, 255)
POINTS = 200


@pytest.mark.gpu
def test_random_launches_have_the_blocks_that_the_driver_reports() -> None:
    pytest.importorskip("cupy")
    from cupy_backends.cuda.api import driver

    from warpladder.collectors.cuda.device import current_device
    from warpladder.collectors.cuda.launch import load

    arch = current_device().arch
    limits = limits_of(arch)
    if limits is None:
        pytest.skip(f"there are no limits for {arch}")
    kernels: list[tuple[int, Any]] = []
    for most in MOST_REGISTERS:
        variant = CudaVariant("sums", "sums", "rung", source=SOURCE, options=(f"--maxrregcount={most}",))
        module = compile_variant(variant, ["sums"], arch)
        kernels.append((module.kernels["sums"].registers, load(module)["sums"]))
        driver.funcSetAttribute(kernels[-1][1].ptr, 8, limits.block_shared_bytes)  # the dynamic shared memory that it may use
    assert len({registers for registers, _ in kernels}) >= 10
    numbers = random.Random(1)
    for _ in range(POINTS):
        registers, kernel = numbers.choice(kernels)
        threads = numbers.randint(1, 1024)
        nbytes = numbers.choice([0, numbers.randint(0, 4096), numbers.randint(0, limits.block_shared_bytes)])
        blocks = driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.ptr, threads, nbytes)
        expected = occupancy(limits, threads, registers, nbytes).blocks
        assert blocks == expected, f"{threads} threads, {registers} registers, {nbytes} bytes"
