"""Thread block clusters in the emulator, on kernels of a few lines that NVRTC compiles too."""

import numpy as np
import pytest

from tests.emulator.emulator import EmulationError, needs_compiler
from tests.emulator.tiny import emulate, on_hopper
from warpladder.collectors.cuda.compiler import compile_variant
from warpladder.workloads.api import CudaVariant, TensorMap

pytestmark = needs_compiler

ORDERS = pytest.mark.parametrize("order", ["forward", "backward"])


def on_cluster(source, kernel="k", **launch):
    """Runs a launch of a source that NVRTC compiles for sm_90a; gives `y`."""
    whole = on_hopper(source)
    compile_variant(CudaVariant("tiny", "", "rung", source=whole, only_architecture="sm_90a"), [kernel], "sm_90")
    return emulate(whole, kernel, **launch)


NEIGHBOURS = """
template <int blocks>
__global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(32) k(const float* x, float* y) {
  __shared__ float mine[32];
  extern __shared__ float dynamic[];
  mine[threadIdx.x] = x[threadIdx.x] + 100 * cluster_rank();
  dynamic[threadIdx.x] = 1000 * cluster_rank();
  cluster_sync();
  const unsigned next = (cluster_rank() + 1) % blocks;
  const float theirs = of_block(mine, next)[31 - threadIdx.x] + *of_block(&dynamic[threadIdx.x], next);
  *of_block(&dynamic[threadIdx.x], next) = 7 + cluster_rank();
  cluster_sync();
  y[blockIdx.x * 32 + threadIdx.x] = theirs + 10000 * dynamic[threadIdx.x];
}"""


@ORDERS
def test_blocks_of_a_cluster_have_shared_memory_of_their_own_and_reach_that_of_others(order):
    y = on_cluster(NEIGHBOURS, "k<4>", grid=(8, 1, 1), y=np.zeros(256, np.float32), dynamic=128, order=order)
    expected = [
        31 - t + 1100 * ((rank + 1) % 4) + 10000 * (7 + (rank - 1) % 4)
        for _ in range(2)
        for rank in range(4)
        for t in range(32)
    ]
    assert y.tolist() == expected
