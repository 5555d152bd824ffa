"""What the TMA of a GPU does with an element as it copies it."""

import numpy as np
import pytest

from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.installation import ROOT
from warpladder.workloads.api import CudaVariant, Launch, TensorMap, read_source

ONE_ROW = """
__global__ void one_row(const __grid_constant__ TensorMap x, float* y) {
  __shared__ __align__(1024) float box[32];
  __shared__ Mbarrier full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&full, sizeof box);
    tma_load(box, x, 0, 0, &full);
  }
  __syncthreads();
  mbarrier_wait(&full, 0);
  y[threadIdx.x] = box[threadIdx.x];
}"""


@pytest.mark.gpu
@pytest.mark.parametrize("tf32", [False, True])
def test_the_tma_rounds_to_tf32_if_the_map_says_so(tf32: bool) -> None:
    cupy = pytest.importorskip("cupy")
    from warpladder.collectors.cuda.device import current_device
    from warpladder.collectors.cuda.launch import bind, load

    if current_device().arch != "sm_90":
        pytest.skip(f"the kernel runs on sm_90a alone; this GPU is {current_device().arch}")
    # As tests/emulator/test_hopper.py has it: 13 bits of fraction go, ties to even.
    pairs = {0x3F800FFF: 0x3F800000, 0x3F801000: 0x3F800000, 0x3F801001: 0x3F802000, 0xBF803000: 0xBF804000, 0x3FFFFFFF: 0x40000000,
             0x3F806000: 0x3F806000, 0x7F800000: 0x7F800000}  # fmt: skip
    given = np.zeros((1, 32), np.uint32)
    given[0, : len(pairs)] = list(pairs)
    variant = CudaVariant(
        "one_row", "", "rung", source=read_source(ROOT / "workloads" / "hopper.cuh") + ONE_ROW, only_architecture="sm_90a"
    )
    buffers = {"x": cupy.asarray(given.view(np.float32)), "y": cupy.zeros(32, cupy.float32)}
    launch = Launch("one_row", (1, 1, 1), (32, 1, 1), (TensorMap("x", (1, 32), 128, tf32=tf32), "y"))
    bind(launch, load(compile_variant(variant, ["one_row"], "sm_90"))["one_row"], buffers)()
    found = buffers["y"].get().view(np.uint32)[: len(pairs)].tolist()
    assert found == (list(pairs.values()) if tf32 else list(pairs))
