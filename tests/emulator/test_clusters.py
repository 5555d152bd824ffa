"""Thread block clusters in the emulator, on kernels of a few lines that NVRTC compiles too."""

import numpy as np
import pytest

from tests.emulator.emulator import EmulationError, needs_compiler
from tests.emulator.tiny import emulate_on_hopper
from warpladder.workloads.api import TensorMap

pytestmark = needs_compiler

ORDERS = pytest.mark.parametrize("order", ["forward", "backward"])


@ORDERS
def test_blocks_of_a_cluster_have_shared_memory_of_their_own_and_reach_that_of_others(order):
    source = """
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
    y = emulate_on_hopper(source, "k<4>", grid=(8, 1, 1), y=np.zeros(256, np.float32), dynamic=128, order=order)
    of_cluster = [31 - t + 1100 * ((rank + 1) % 4) + 10000 * (7 + (rank - 1) % 4) for rank in range(4) for t in range(32)]
    assert y.tolist() == 2 * of_cluster


STORES = """
__global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(32) k(const float* x, float* y) {
  __shared__ float4 from[3][32];
  __shared__ Mbarrier full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(&full, sizeof from);
  }
  cluster_arrive_relaxed();
  const unsigned rank = cluster_rank();
  const float value = x[threadIdx.x] + 100 * rank;
  cluster_wait();
  for (unsigned other = 1; other < 4; ++other)
    store_remote(&from[other - 1][threadIdx.x], make_float4(value, 1, 2, 3), &full, (rank + other) % 4);
  mbarrier_wait_of_cluster(&full, 0);
  for (int i = 0; i < 3; ++i) {
    const float4 four = from[i][threadIdx.x];
    y[(rank * 3 + i) * 32 + threadIdx.x] = four.x + 1000 * four.y + 10000 * four.z + 100000 * four.w;
  }
}"""


@ORDERS
def test_stores_to_other_blocks_count_on_the_barrier_there(order):
    y = emulate_on_hopper(STORES, grid=(4, 1, 1), y=np.zeros(384, np.float32), order=order)
    assert y.tolist() == [321_000 + t + 100 * ((rank - i) % 4) for rank in range(4) for i in (1, 2, 3) for t in range(32)]


@pytest.mark.parametrize(
    ("left_out", "instead", "what"),
    [
        ("sizeof from", "sizeof from + 16", "deadlock"),
        ("sizeof from", "sizeof from - 16", "16 bytes came to an mbarrier that nobody expected there"),
        ("cluster_wait();", "", "an mbarrier is used that mbarrier_init has not made"),
    ],
)
def test_stores_to_other_blocks_that_are_counted_wrongly_or_come_too_early_are_an_error(left_out, instead, what):
    assert left_out in STORES
    with pytest.raises(EmulationError, match=what):
        emulate_on_hopper(STORES.replace(left_out, instead), grid=(4, 1, 1), y=np.zeros(384, np.float32), compiled=False)


@ORDERS
def test_a_multicast_comes_to_all_blocks_of_its_mask_and_remote_arrivals_free_its_place(order):
    """Each of two blocks brings half of every tile to both; a tile is brought when both are done with the one before."""
    source = """
    __global__ void __launch_bounds__(64) __cluster_dims__(2, 1, 1)
    k(const __grid_constant__ TensorMap x, float* y) {
      __shared__ __align__(1024) float tile[16 * 32];
      __shared__ Mbarrier full, empty;
      const unsigned rank = cluster_rank();
      if (threadIdx.x == 0) {
        mbarrier_init(&full, 1);
        mbarrier_init(&empty, 2);
        fence_mbarrier_init();
      }
      cluster_sync();
      if (threadIdx.x == 0) {
        for (int step = 0; step < 3; ++step) {
          mbarrier_wait(&empty, step % 2 ^ 1);
          mbarrier_arrive_expect(&full, sizeof tile);
          tma_load_multicast(tile + rank * 8 * 32, x, 0, step * 16 + rank * 8, &full, 3);
        }
      } else if (threadIdx.x >= 32) {
        float sum = 0;
        for (int step = 0; step < 3; ++step) {
          mbarrier_wait(&full, step % 2);
          for (int row = 0; row < 16; ++row) sum += (step + 1 + rank) * tile[row * 32 + (threadIdx.x - 32) % 32];
          __syncwarp();
          if (threadIdx.x < 34) mbarrier_arrive_remote(&empty, threadIdx.x - 32);
        }
        y[rank * 32 + threadIdx.x - 32] = sum;
      }
      cluster_sync();
    }"""
    x = np.random.default_rng(1).integers(0, 9, (48, 32)).astype(np.float32)
    y = emulate_on_hopper(
        source,
        grid=(2, 1, 1),
        block=(64, 1, 1),
        x=x,
        y=np.zeros((2, 32), np.float32),
        args=(TensorMap("x", (8, 32)), "y"),
        order=order,
    )
    sums = x.reshape(3, 16, 32).sum(axis=1)
    assert np.array_equal(y, [(np.array([[1], [2], [3]]) + rank).ravel() @ sums for rank in range(2)])


CLUSTER = """
__global__ void __cluster_dims__(2, 1, 1) k(const __grid_constant__ TensorMap x, float* y) {
  __shared__ __align__(128) float mine[32];
  __shared__ Mbarrier barrier;
  if (threadIdx.x == 0) mbarrier_init(&barrier, 1);
  cluster_sync();
STEPS
  y[threadIdx.x] = 1;
}"""


@pytest.mark.parametrize(
    ("steps", "what"),
    [
        (
            "  if (cluster_rank() == 1 && threadIdx.x == 0) mbarrier_wait(&barrier, 0);",
            r"tiny.cu:7: k, block \(1, 0, 0\): deadlock: of 64 threads, .* 1 at a barrier that counts, 0 at the barrier of the cluster, 63",
        ),
        (
            "  if (cluster_rank() == 1) cluster_sync();\n  else __syncthreads(), threadIdx.x ? __syncthreads() : cluster_sync();",
            "deadlock: of 64 threads, 31 wait at __syncthreads.. of line 8, .* 33 at the barrier of the cluster, 0 have",
        ),
        ("  cluster_wait();", "tiny.cu:7: .*cluster_wait.. without cluster_arrive"),
        ("  cluster_arrive();\n  cluster_arrive();", "tiny.cu:8: .*cluster_arrive.. twice without cluster_wait"),
        (
            "  if (cluster_rank() == 1) *of_block(mine, 0) = 1;",
            "block 0 of the cluster has ended, and its shared memory with it",
        ),
        ("  *of_block(mine, 2) = 1;", "tiny.cu:7: .*of_block: block 2 of a cluster of 2"),
        ("  *of_block(y, 1) = 1;", "tiny.cu:7: .*is no address of this block's shared memory"),
        (
            "  tma_load_multicast(mine, x, 0, 0, &barrier, 4);",
            "tiny.cu:7: .*a multicast to the blocks of mask 0x4 in a cluster of 2",
        ),
    ],
)
def test_a_cluster_that_goes_wrong_is_an_error_and_no_hang(steps, what):
    x, args = np.ones((1, 32), np.float32), (TensorMap("x", (1, 32)), "y")
    with pytest.raises(EmulationError, match=what):
        emulate_on_hopper(CLUSTER.replace("STEPS", steps), grid=(2, 1, 1), x=x, args=args, compiled=False)


@pytest.mark.parametrize(
    ("dims", "what"),
    [
        ("2, 1, 1", "3 blocks along x are no multiple of the cluster's 2"),
        ("9, 1, 1", "clusters have 1 to 8 blocks along x"),
        ("1, 3, 1", "clusters have 1 to 8 blocks along x, and 1 along y and z"),
    ],
)
def test_a_cluster_that_the_grid_or_the_emulator_does_not_take_is_an_error(dims, what):
    source = f"__global__ void __cluster_dims__({dims}) k(const float* x, float* y) {{}}"
    with pytest.raises(EmulationError, match=what):
        emulate_on_hopper(source, grid=(3, 1, 1), compiled=False)


@ORDERS
def test_dynamic_shared_memory_declared_outside_of_functions_is_that_of_each_block_of_a_cluster(order):
    source = """
extern __shared__ float mine[];
    __device__ __forceinline__ void fill(float value) { mine[threadIdx.x] = value; }
    __global__ void __cluster_dims__(2, 1, 1) k(const float* x, float* y) {
      fill(x[threadIdx.x] + 100 * cluster_rank());
      cluster_sync();
      y[blockIdx.x * 32 + threadIdx.x] = mine[threadIdx.x] + 1000 * *of_block(mine + threadIdx.x, 1 - cluster_rank());
      cluster_sync();
    }"""
    y = emulate_on_hopper(source, grid=(2, 1, 1), y=np.zeros(64, np.float32), dynamic=128, order=order)
    assert y.tolist() == [t + 100 * rank + 1000 * (t + 100 * (1 - rank)) for rank in range(2) for t in range(32)]


def test_threads_that_have_returned_are_not_waited_for_at_the_barrier_of_the_cluster():
    source = """
    __global__ void __cluster_dims__(2, 1, 1) k(const float* x, float* y) {
      if (cluster_rank() == 1 && threadIdx.x < 32) return;
      cluster_sync();
      y[threadIdx.x % 32] = cluster_rank();
    }"""
    assert emulate_on_hopper(source, grid=(2, 1, 1), block=(64, 1, 1)).tolist() == [1] * 32
